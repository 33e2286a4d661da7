"""Long calls, such as queries for figures.

Long calls run in separate processes, in rotation between organizations. Computing figures holds the
interpreter lock. In a thread of the service, it would delay all other calls. The processes are
started when they are needed, have a lower priority than the service, and are started again if they
die. They end when the service ends, even if the service was killed.
"""

import gc
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from controlplane.operation.body_reader import RestartedProcesses, prepare_child_process
from controlplane.operation.caller import Caller
from controlplane.operation.fairness import FairQueue
from controlplane.settings import Settings
from controlplane.storage.database import Database


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a long call, or its error.

    ``processor_s`` is its processor time. ``read_s`` is the duration of its transaction.
    """

    result: Any
    error: Exception | None
    processor_s: float
    read_s: float


class LongCall(Protocol):
    """A long call. The call and its answer can be pickled."""

    @property
    def caller(self) -> Caller: ...

    def answer(self, database: Database, thread_time: Callable[[], float]) -> Answer:
        """Run the call, which only reads the database. Returns an error instead of raising it."""


class LongCalls(RestartedProcesses):
    """Runs long calls in threads or processes, in rotation between organizations.

    Args:
        start: starts the threads or processes.
        answer: runs a call in one of them.
    """

    def __init__(
        self,
        settings: Settings,
        start: Callable[[], Executor],
        answer: Callable[[LongCall], Answer],
    ) -> None:
        super().__init__(start, "the result could not be computed: try again")
        self._turns = FairQueue(settings.long_call_processes, settings.organization_long_calls_max)
        self._answer = answer

    @classmethod
    def in_processes(cls, database_url: str, settings: Settings) -> "LongCalls":
        start = partial(_start_processes, settings.long_call_processes, database_url)
        return cls(settings, start, _answer_in_process)

    @classmethod
    def in_threads(
        cls, database: Database, settings: Settings, thread_time: Callable[[], float]
    ) -> "LongCalls":
        """Run calls in threads of this process, for tests."""
        start = partial(ThreadPoolExecutor, settings.long_call_processes, "long calls")
        return cls(settings, start, lambda call: call.answer(database, thread_time))

    async def run(self, call: LongCall) -> Answer:
        """Return the answer of a call.

        Raises a refusal if too many long calls of the organization wait, or if no process can run.
        """
        async with self._turns.turn(call.caller.organization_id):
            return await self._run(self._answer, call)


_database: Database | None = None
"""The database, in a process that runs long calls. None in the process of the service."""


def _start_processes(count: int, database_url: str) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        count,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_prepare_process,
        initargs=(database_url, gc.get_threshold()),  # a new process has the default thresholds
    )


def _prepare_process(database_url: str, gc_threshold: tuple[int, int, int]) -> None:
    global _database  # noqa: PLW0603 - the state of this process
    prepare_child_process()
    gc.set_threshold(*gc_threshold)
    _database = Database(database_url, connections=1)


def _answer_in_process(call: LongCall) -> Answer:
    assert _database is not None  # noqa: S101 - set by `_prepare_process`
    return call.answer(_database, time.thread_time)
