"""What every endpoint shares: the database in worker threads, the limits, the bell, the clock."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy.orm import Session

from controlplane.accounts.sign_in_links import SignInLinks
from controlplane.clock import Clock
from controlplane.http.errors import unavailable
from controlplane.http.rate_limit import RateLimit
from controlplane.settings import Settings
from controlplane.storage.database import Database, DatabaseBusyError
from controlplane.storage.notifications import Notifications

Result = TypeVar("Result")


class Core:
    """Owns its threads; ``close`` ends them. The database is the caller's."""

    def __init__(self, database: Database, settings: Settings, clock: Clock) -> None:
        self.settings = settings
        self.clock = clock
        self.notifications = Notifications()
        self.sign_in_links = SignInLinks()
        self.rate_limit = RateLimit(settings.rate_per_s, settings.burst, time.monotonic)
        self._database = database
        self._threads = ThreadPoolExecutor(settings.worker_threads, "database")

    async def read(self, work: Callable[[Session], Result]) -> Result:
        return await self.run(lambda database: database.read(work))

    async def write(self, work: Callable[[Session], Result]) -> Result:
        return await self.run(lambda database: database.write(work))

    async def run(self, job: Callable[[Database], Result]) -> Result:
        """Run ``job`` in a thread: what it does before its transaction holds up no other."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, job, self._database)
        except DatabaseBusyError as error:
            raise unavailable(str(error)) from error

    def close(self) -> None:
        self.notifications.close()
        self._threads.shutdown()
