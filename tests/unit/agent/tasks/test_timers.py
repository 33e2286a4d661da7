"""Tests of the scheduler, the writer of the status file, the detection of time jumps, and the check
of the disk space.
"""

import asyncio
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from agent.adapters.storage.state import StateDirectory
from agent.adapters.storage.status_file import (
    BindingStatus,
    DaemonStatus,
    StatusFile,
)
from agent.config.model import Schedule
from agent.rules.connectivity.events import DISK_FLOOR_BYTES
from agent.rules.health import Problem
from agent.rules.time_jump import TimeJump
from agent.tasks.disk_floor import DiskFloor
from agent.tasks.schedule import Scheduler
from agent.tasks.status import StatusWriter, describe
from agent.tasks.timekeeper import watch_clocks
from agent.wire.sd_notify import Notifier
from agent.wire.vocabulary import Kind
from tests.fakes.fake_clock import FakeClock
from tests.unit.agent.tasks.agent_parts import AgentParts, running, settle, until

STATUS = DaemonStatus(
    version="0.1.0", pid=1, phase="running", started_at="", written_at="", config_path=None
)
BOUND = BindingStatus(
    instance_id="i", binding_id="b", organization_id="o", location_id="loc-0001", base_url="u"
)
PROBLEM = Problem(code="c", severity="error", title="broken", detail="d", fix="f", since="s")


# --------------------------------------------------------------- schedule


class HeartbeatCounter:
    def __init__(self) -> None:
        self.count = 0
        self.has_three = asyncio.Event()

    async def send_heartbeat(self) -> None:
        self.count += 1
        if self.count == 3:
            self.has_three.set()


def scheduler(
    heartbeats: HeartbeatCounter, interval_s: float, **crontabs: str
) -> tuple[Scheduler, list[Kind]]:
    """Return a scheduler, and a list to which it adds the kind of each report that is due."""
    requested_kinds: list[Kind] = []
    timers = Scheduler(
        send_heartbeat=heartbeats.send_heartbeat,
        interval_s=interval_s,
        request_report=requested_kinds.append,
        schedule=Schedule(**crontabs),
    )
    return timers, requested_kinds


async def test_heartbeats_are_sent_until_the_scheduler_stops() -> None:
    heartbeats = HeartbeatCounter()
    timers, _ = scheduler(heartbeats, 0.001)

    timers.start()
    await asyncio.wait_for(heartbeats.has_three.wait(), 5)
    timers.stop()
    timers.stop()
    count = heartbeats.count
    await settle(2000)  # takes several intervals

    assert heartbeats.count == count


async def test_reschedule_sends_a_heartbeat_and_plans_the_reports_again() -> None:
    heartbeats = HeartbeatCounter()
    timers, requested_kinds = scheduler(
        heartbeats, 3600, network="0 4 * * *", application="*/5 * * * *"
    )
    timers.reschedule()  # must have no effect before the start
    timers.start()
    wrong_time = datetime.now().astimezone() + timedelta(days=365)
    for kind in ("network", "application"):
        timers._scheduler.modify_job(kind, next_run_time=wrong_time)

    for _ in range(3):
        before = heartbeats.count
        timers.reschedule()
        while heartbeats.count == before:  # noqa: ASYNC110 - APScheduler sends the heartbeat
            await asyncio.sleep(0.001)
    jobs = timers._scheduler.get_jobs()
    assert len(jobs) == 3
    assert all(job.next_run_time < wrong_time for job in jobs)
    timers.stop()

    assert heartbeats.count == 3
    assert requested_kinds == []


def seconds_to_next_heartbeat(timers: Scheduler) -> float:
    (job,) = timers._scheduler.get_jobs()
    left: timedelta = job.next_run_time - datetime.now().astimezone()
    return left.total_seconds()


async def send_heartbeat_now(timers: Scheduler) -> None:
    """Request an immediate heartbeat, and wait until the scheduler has processed the request."""
    timers.send_heartbeat_now()
    while seconds_to_next_heartbeat(timers) < 60:  # noqa: ASYNC110 - APScheduler's timer
        await asyncio.sleep(0.001)
    await settle()


async def test_immediate_heartbeat_restarts_the_period() -> None:
    heartbeats = HeartbeatCounter()
    timers, _ = scheduler(heartbeats, 3600)
    timers.send_heartbeat_now()  # must have no effect before the start
    timers.start()
    await settle()
    assert heartbeats.count == 0

    for count in (1, 2, 3):
        await send_heartbeat_now(timers)
        assert heartbeats.count == count
        # The test itself takes less than 10 s.
        assert 3600 * 0.9 - 10 <= seconds_to_next_heartbeat(timers) <= 3600 * 1.1
    timers.stop()
    timers.send_heartbeat_now()
    await settle()

    assert heartbeats.count == 3


async def test_heartbeats_do_not_overlap() -> None:
    began: list[int] = []
    may_end = asyncio.Event()

    async def send_heartbeat() -> None:
        began.append(1)
        await may_end.wait()

    timers = Scheduler(
        send_heartbeat=send_heartbeat,
        interval_s=3600,
        request_report=lambda kind: None,
        schedule=Schedule(),
    )
    timers.start()
    for _ in range(5):
        await send_heartbeat_now(timers)
    assert len(began) == 1

    may_end.set()
    await settle()
    await send_heartbeat_now(timers)
    timers.stop()

    assert len(began) == 2


async def test_a_heartbeat_cancelled_by_the_stop_is_not_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    has_begun, was_cancelled = asyncio.Event(), asyncio.Event()

    async def send_heartbeat() -> None:
        has_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            was_cancelled.set()

    timers = Scheduler(
        send_heartbeat=send_heartbeat,
        interval_s=3600,
        request_report=lambda kind: None,
        schedule=Schedule(),
    )
    timers.start()
    timers.send_heartbeat_now()
    await has_begun.wait()

    timers.stop()
    await was_cancelled.wait()
    await settle()

    assert caplog.records == []


# --------------------------------------------------------------- status


@pytest.mark.parametrize(
    ("changes", "description"),
    [
        ({}, "enrolling"),
        ({"binding": BOUND}, "enrolled at loc-0001; idle"),
        ({"binding": BOUND, "activity": "collecting"}, "enrolled at loc-0001; collecting"),
        ({"binding": BOUND, "problems": (PROBLEM,)}, "idle; broken: d"),
    ],
)
def test_status_is_described(changes: dict[str, object], description: str) -> None:
    assert describe(STATUS.model_copy(update=changes)) == description


async def test_changes_in_quick_succession_are_written_once(tmp_path: Path) -> None:
    clock, polls = FakeClock(), []

    def read_status() -> DaemonStatus:
        polls.append(clock.elapsed_s)
        return STATUS

    file = StatusFile(StateDirectory(tmp_path))
    writer = StatusWriter(file, Notifier({}), clock, read_status)
    async with running(writer.run):
        await settle()
        assert polls == []
        for _ in range(5):
            writer.note_change()
        await until(lambda: len(polls) == 1)
        await settle()
        assert len(polls) == 1
        writer.note_change()
        await until(lambda: len(polls) == 2)

    assert file.read() == STATUS


async def test_an_unwritable_status_file_is_logged_and_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = StatusFile(StateDirectory(tmp_path / "none"))
    writer = StatusWriter(file, Notifier({}), FakeClock(), lambda: STATUS)

    writer.write_now()

    assert "the status file cannot be written: No such file or directory" in caplog.text


# --------------------------------------------------------------- time and disk


class JumpyClock(FakeClock):
    """The clock of a machine that is suspended after calls of `sleep`.

    ``suspensions_s`` are the durations of the suspensions after the first calls, in seconds.
    """

    def __init__(self, suspensions_s: list[float]) -> None:
        super().__init__()
        self.suspensions_s = suspensions_s

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        if self.suspensions_s:
            self.advance(self.suspensions_s.pop(0))


async def test_a_sleep_of_the_machine_is_detected_once() -> None:
    clock = JumpyClock([0, 5, 600, 0, 0])
    clock.limit_s = 900
    jumps: list[TimeJump] = []

    async with running(partial(watch_clocks, clock, jumps.append)):
        await clock.is_at_limit.wait()

    assert jumps == [TimeJump(slept_s=600)]


class FakeDisk(StateDirectory):
    """A state directory on a disk whose free space is ``free_space_bytes``."""

    free_space_bytes = 0

    def free_bytes(self) -> int:
        return self.free_space_bytes


async def test_scheduled_reports_stop_when_disk_space_is_scarce(bound_agent: AgentParts) -> None:
    disk, requested_kinds = FakeDisk(bound_agent.state.path), []
    floor = DiskFloor(disk, bound_agent.health, requested_kinds.append)

    floor.start_or_skip("network")
    floor.start_or_skip("application")
    assert requested_kinds == []
    (problem,) = bound_agent.health.problems()
    assert problem.code == "disk-scarce"
    assert problem.detail == "0 MiB are free, scheduled reports skipped: 2"

    disk.free_space_bytes = DISK_FLOOR_BYTES
    floor.start_or_skip("network")
    assert requested_kinds == ["network"]
    assert bound_agent.condition_codes() == set()
    assert bound_agent.state.free_bytes() > 0
