"""The lab has a higher priority than the other processes of the machine.

A busy machine must not make the simulated network slow: a host that answers too late counts as
missing. If this user may not use real-time scheduling (sched(7)), the lab runs like any other
process, and on a very busy machine its hosts may seem to be missing.
"""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="package")
def _real_time_scheduling() -> Iterator[None]:
    """Run this thread, and all processes that a test starts, with real-time scheduling."""
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        yield
        return
    yield
    os.sched_setscheduler(0, policy, parameters)
