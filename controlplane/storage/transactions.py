"""Transactions whose duration is measured."""

import time
from collections.abc import Callable
from typing import Literal, Protocol, TypeVar

from sqlalchemy.orm import Session

from controlplane.storage.database import Database

Result = TypeVar("Result")
Work = Callable[[Session], Result]


class Observer(Protocol):
    """Receives each transaction. ``tries`` is 0 if the work did not start."""

    def __call__(
        self, kind: Literal["read", "write"], waited_s: float, took_s: float, tries: int
    ) -> None: ...


class Transactions:
    """Runs transactions. ``asked_s`` is the time of the call, by `time.perf_counter`."""

    def __init__(self, database: Database, observe: Observer, asked_s: float) -> None:
        self._database = database
        self._observe = observe
        self._asked_s = asked_s

    def read(self, work: Work[Result]) -> Result:
        return self._measured("read", self._database.read, work)

    def write(self, work: Work[Result]) -> Result:
        return self._measured("write", self._database.write, work)

    def _measured(
        self,
        kind: Literal["read", "write"],
        transact: Callable[[Work[Result]], Result],
        work: Work[Result],
    ) -> Result:
        begun_s: list[float] = []

        def begin(session: Session) -> Result:
            begun_s.append(time.perf_counter())
            return work(session)

        try:
            return transact(begin)
        finally:
            ended_s = time.perf_counter()
            first_s = begun_s[0] if begun_s else ended_s
            self._observe(kind, first_s - self._asked_s, ended_s - first_s, len(begun_s))
