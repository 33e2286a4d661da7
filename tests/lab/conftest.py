"""The lab runs ahead of whatever else keeps the machine busy.

A network is not slow because a machine on it is: an answer that comes late is an answer of a host
that is not there. Where this user may not ask for real-time scheduling (sched(7)), the lab runs
like any other process, and on a very busy machine its hosts may seem to be missing.
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
