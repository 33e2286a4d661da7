"""Runs a service, and makes every call that docs/service.md shows.

A constant seed determines the data of both merchants. The service's clock stands still until the
code that makes the calls advances it.
"""

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

from controlplane.sandbox.loading import load
from controlplane.sandbox.plan import Plan
from controlplane.settings import Settings
from controlplane.storage.database import Database
from tests.contract.service.calls import (
    agents,
    devices,
    every_form,
    failures,
    figures,
    retail,
    support,
)
from tests.contract.service.calls.recorder import OTHER_ORGANIZATION, Recorder
from tests.unit.controlplane.running_service import FakeClock, service_on

SETTINGS: Final = Settings(rate_per_s=0, refusal_delay_s=0)


async def record_calls(folder: Path) -> Recorder:
    """Make all calls, and return their recorder. The service has its database in ``folder``."""
    clock = FakeClock()
    today = clock.now.date()
    plan = Plan(days=30, sales_per_day=8, goods=24, until=today, is_awkward=True)
    recent_plan = Plan(
        days=3,
        sales_per_day=60,
        goods=24,
        until=today,
        organization_id=OTHER_ORGANIZATION,
        is_awkward=True,
    )
    with closing(Database(str(folder / "service.db"))) as database:
        for merchant in (plan, recent_plan):
            database.write(partial(load, plan=merchant, until=clock.now))
        async with service_on(database, SETTINGS, clock) as service:
            recorder = Recorder(service)
            for part in (figures, retail, devices, agents, failures, support, every_form):
                await part.record(recorder)
    return recorder
