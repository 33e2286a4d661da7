"""Runs the tests of the lab with a higher priority than the other processes of the machine.

On a busy machine the simulated network must not become slow, because a host that answers too late
counts as missing. If this user has no right to real-time scheduling (sched(7)), the tests run with
the normal priority. On a very busy machine they may then fail because hosts seem to be missing.
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
