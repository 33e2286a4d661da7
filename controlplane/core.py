"""What every endpoint shares: the database in worker threads, the limits, the bell, the clock."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy.orm import Session

from controlplane.bell import Bell
from controlplane.clock import Clock
from controlplane.database import Database, DatabaseBusyError
from controlplane.problems import unavailable
from controlplane.rate_limit import RateLimit
from controlplane.settings import Settings

Result = TypeVar("Result")


class Core:
    """Owns its threads; ``close`` ends them. The database is the caller's."""

    def __init__(self, database: Database, settings: Settings, clock: Clock) -> None:
        self.settings = settings
        self.clock = clock
        self.bell = Bell()
        self.rate_limit = RateLimit(settings.rate_per_s, settings.burst, time.monotonic)
        self._database = database
        self._threads = ThreadPoolExecutor(settings.worker_threads, "database")

    async def read(self, work: Callable[[Session], Result]) -> Result:
        return await self._in_thread(lambda: self._database.read(work))

    async def write(self, work: Callable[[Session], Result]) -> Result:
        return await self._in_thread(lambda: self._database.write(work))

    def close(self) -> None:
        self.bell.close()
        self._threads.shutdown()

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except DatabaseBusyError as error:
            raise unavailable(str(error)) from error
