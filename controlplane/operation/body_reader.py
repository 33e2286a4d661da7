"""Parses large bodies in a separate process.

Parsing a large body holds the interpreter lock for tens of milliseconds. In a thread of the
service, it would delay all other calls. The process is started for the first large body. It has a
lower priority than the service and is started again if it dies. It ends when the service ends, even
if the service was killed.
"""

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from controlplane.operation.errors import Refusal, unavailable
from controlplane.operation.niceness import lower_priority

LARGE_BYTES = 65_536
"""Bodies above this size are parsed in the process."""
ATTEMPTS = 2
"""Number of attempts to run a call, each with new processes if the previous ones died."""

Result = TypeVar("Result")
Parse = Callable[[bytes], Any]
"""Parses a body: returns the argument of an operation, or raises a refusal. The function, its
result and the refusal must be picklable, because they are passed between processes."""


class RestartedProcesses:
    """Processes that are started when they are needed, and again if one of them died.

    Use this class from the event loop only. ``close`` ends the processes.

    Args:
        start: starts the processes.
        failure: detail of the refusal if they cannot run.
    """

    def __init__(self, start: Callable[[], Executor], failure: str) -> None:
        self._start = start
        self._failure = failure
        self._executor: Executor | None = None

    @property
    def is_running(self) -> bool:
        return self._executor is not None

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)
            self._executor = None

    async def _run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Return the result of ``function`` in one of the processes.

        Raises the refusal ``unavailable`` if the processes cannot run.
        """
        loop = asyncio.get_running_loop()
        for _ in range(ATTEMPTS):
            executor = self._executor = self._executor or self._start()
            try:
                return await loop.run_in_executor(executor, function, *arguments)
            except BrokenProcessPool:
                # Another call may have started new processes already.
                if self._executor is executor:
                    self.close()
        raise unavailable(self._failure)


class BodyReader(RestartedProcesses):
    """Parses bodies in one process."""

    def __init__(self) -> None:
        super().__init__(_start_process, "the body could not be parsed: try again")
        self._turn = asyncio.Lock()

    async def read(self, parse: Parse, body: bytes) -> tuple[Any, float]:
        """Return the result or the refusal of ``parse``, and its processor time in seconds.

        Raises the refusal ``unavailable`` if the process cannot run.
        """
        async with self._turn:
            return await self._run(_read, parse, body)


def _start_process() -> ProcessPoolExecutor:
    spawn = multiprocessing.get_context("spawn")  # forking a process with threads is not safe
    return ProcessPoolExecutor(1, mp_context=spawn, initializer=prepare_child_process)


def prepare_child_process() -> None:
    """Lower this process's priority, ignore SIGINT and SIGTERM, and end with the service.

    The signals are sent to the whole process group. While the service shuts down, it still needs
    this process.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    lower_priority()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)


def _read(parse: Parse, body: bytes) -> tuple[Any, float]:
    began_s = time.process_time()
    try:
        result = parse(body)
    except Refusal as refusal:
        result = refusal
    return result, time.process_time() - began_s
