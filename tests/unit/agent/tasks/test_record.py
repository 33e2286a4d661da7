"""Tests of the recorder with simulated faults of the network path, in virtual time."""

import asyncio
import itertools
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from agent.adapters.storage.database import NAME, Database
from agent.adapters.storage.record import Record
from agent.adapters.storage.state import StateDirectory
from agent.config.local_hours import parse_local_hours
from agent.tasks.record import Recorder
from agent.wire.payloads.history import History, Hour
from tests.fakes.fake_clock import START, FakeClock
from tests.fakes.fake_path import (
    CAUSE_OF,
    TIMEOUT_S,
    FakePath,
    Fault,
    FaultKind,
    nearest_causes,
)
from tests.sizes import amount, large_except

FAULT_LENGTHS_S = (3.0, 10.0, 60.0, 300.0, 1200.0)
LINK_FAULTS: frozenset[FaultKind] = frozenset({"cable", "wifi", "address", "lease", "no-route"})
FIRST_FAULT_S = 600.0
TOLERANCE_S = 10.0
UNWRITTEN_MAX_S = 60.0 + TOLERANCE_S  # an open incident is written once a minute
SILENT_FAULTS: frozenset[FaultKind] = frozenset({"cable", "address", "gateway", "provider"})
"""Faults of four different parts of the path. Nothing beyond the failed part answers."""
SHORTEST_S: dict[FaultKind, float] = {
    **dict.fromkeys(CAUSE_OF, 10.0),
    **dict.fromkeys(LINK_FAULTS, 3.0),
    "service-refused": 3.0,
    "name-servers": 61.0,
    "key": 61.0,
}
"""The shortest length in seconds at which each fault is always noticed. Most faults are noticed
when the command stream breaks, some seconds after they began. Faults of this machine's link, and
refused connections, are noticed at once. Faults of the key and of name servers are noticed at a
heartbeat, because only heartbeats use the API key and resolve the service's name."""


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return record_in(tmp_path)


def record_in(directory: Path) -> Record:
    state = StateDirectory(directory)
    state.prepare()
    return Record(Database(state))


def recorder_of(path: FakePath, record: Record, **options: object) -> Recorder:
    keep = timedelta(days=30)
    return Recorder(sensors=path, record=record, clock=path.clock, keep=keep, **options)  # type: ignore[arg-type]


@asynccontextmanager
async def running(path: FakePath, record: Record, **options: object) -> AsyncIterator[Recorder]:
    recorder = recorder_of(path, record, **options)
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        recorder.stop()


async def play_without_stop(path: FakePath, recorder: Recorder, until_s: float) -> None:
    """Run the recorder until ``until_s``, and end it without a call of `Recorder.stop`."""
    task = asyncio.create_task(recorder.run())
    await path.play(recorder, until_s)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def history_of(faults: Sequence[Fault], record: Record, until_s: float = 0.0) -> History:
    """Run the recorder until ``until_s``, and return its history.

    By default, it runs until 300 s after the last fault.
    """
    path = FakePath(FakeClock(limit_s=40 * 86_400.0), faults)
    until_s = until_s or max(fault.ends_s for fault in faults) + 300.0
    async with running(path, record) as recorder:
        await path.play(recorder, until_s)
    return record.history(START, path.clock.now())


def seconds(at: datetime | None) -> float:
    """Return the time from START until ``at``."""
    assert at is not None
    return (at - START).total_seconds()


@pytest.mark.parametrize(
    ("kind", "length_s"),
    large_except(
        set(itertools.product(CAUSE_OF, (3.0, 10.0, 60.0))),
        itertools.product(CAUSE_OF, FAULT_LENGTHS_S),
    ),
)
async def test_a_single_fault_is_one_incident_with_its_cause(
    kind: FaultKind, length_s: float, record: Record
) -> None:
    fault = Fault(kind, FIRST_FAULT_S + 37, length_s)  # begins between two heartbeats
    incidents = (await history_of([fault], record)).incidents
    if length_s < SHORTEST_S[kind] and not incidents:
        return  # a short fault can go unnoticed
    (incident,) = incidents
    assert incident.cause == CAUSE_OF[kind]
    assert abs(seconds(incident.ended_at) - fault.ends_s) <= TOLERANCE_S
    delay_s = seconds(incident.began_at) - fault.at_s
    assert -TOLERANCE_S <= delay_s <= max(TOLERANCE_S, SHORTEST_S[kind])


async def test_faults_of_three_seconds_on_this_machine_are_recorded(record: Record) -> None:
    kinds = sorted(LINK_FAULTS) * 8
    faults = [Fault(kind, FIRST_FAULT_S + 900 * i, 3.0) for i, kind in enumerate(kinds)]
    history = await history_of(faults, record)
    assert [(i.cause, i.downtime_s) for i in history.incidents] == [
        (CAUSE_OF[kind], 3.0) for kind in kinds
    ]


async def test_the_nearest_of_two_simultaneous_faults_is_almost_always_the_cause(
    tmp_path: Path,
) -> None:
    rng, correct, pairs = Random(20261123), 0, amount(small=10, medium=20, large=400)
    for number in range(pairs):
        first, second = rng.sample(sorted(SILENT_FAULTS), 2)
        faults = [
            Fault(first, FIRST_FAULT_S + rng.uniform(0, 60), rng.choice(FAULT_LENGTHS_S[2:])),
            Fault(second, FIRST_FAULT_S + rng.uniform(0, 60), rng.choice(FAULT_LENGTHS_S[2:])),
        ]
        history = await history_of(faults, record_in(tmp_path / str(number)))
        expected = nearest_causes([(CAUSE_OF[f.kind], f.at_s, f.ends_s) for f in faults])
        actual = [
            entry.cause for entry in sorted(history.incidents, key=lambda entry: entry.began_at)
        ]
        correct += actual == expected
    assert correct >= 0.95 * pairs


async def test_a_healthy_month_has_no_incident(record: Record) -> None:
    clock = FakeClock(limit_s=40 * 86_400.0)
    path = FakePath(clock)
    for day in range(days := amount(small=2, medium=2, large=30)):
        async with running(path, record, boot_id=f"boot {day // 7}") as recorder:
            await path.play(recorder, day * 86_400.0 + 43_200.0)
            # Wi-Fi is down for 4 s after the machine has slept for two hours.
            path.faults = [Fault("wifi", clock.elapsed_s + 7200.0, 4.0)]
            clock.advance(7200.0)
            clock.suspended_s += 7200.0
            path.on_change()
            await path.play(recorder, (day + 1) * 86_400.0 - 60.0)
        clock.advance(60.0)
    history = record.history(START, clock.now())
    assert history.incidents == ()
    kinds = Counter(event.kind for event in history.events)
    assert kinds["slept"] == days
    assert kinds["agent-started"] + kinds["machine-started"] == days - 1
    assert len(history.hours) >= days * 20


async def test_a_healthy_day_writes_at_most_100_kib_and_deletes_old_hours(tmp_path: Path) -> None:
    record, clock = record_in(tmp_path), FakeClock(limit_s=40 * 86_400.0)
    path, wal = FakePath(clock), tmp_path / f"{NAME}-wal"
    record.write(
        hours=[Hour(START - timedelta(hours=hours_ago), 60) for hours_ago in range(30 * 24)]
    )
    async with running(path, record) as recorder:
        await path.play(recorder, 7200.0)
        before = wal.stat().st_size
        await path.play(recorder, 7200.0 + 86_400.0)
        written = wal.stat().st_size - before
    assert 0 < written <= 100 * 1024
    oldest = clock.now() - timedelta(days=40)
    hours = {hour.at for hour in record.history(oldest, clock.now()).hours}
    assert 30 * 24 <= len(hours) <= 33 * 24  # old hours are deleted every three days
    assert max(hours) >= clock.now() - timedelta(hours=1)


async def test_many_short_interruptions_in_an_hour_are_one_incident_with_a_count(
    record: Record,
) -> None:
    faults = [Fault("wifi", FIRST_FAULT_S + 240 * i, 5.0) for i in range(14)]
    (incident,) = (await history_of(faults, record)).incidents
    assert (incident.count, incident.downtime_s) == (14, 70.0)
    assert seconds(incident.ended_at) == faults[-1].ends_s


async def test_interruptions_within_a_minute_are_one_incident(record: Record) -> None:
    faults = [Fault("cable", FIRST_FAULT_S, 5.0), Fault("cable", FIRST_FAULT_S + 30, 5.0)]
    (incident,) = (await history_of(faults, record)).incidents
    assert (incident.count, incident.downtime_s) == (2, 10.0)


async def test_quiet_hours_have_no_incidents(record: Record) -> None:
    clock = FakeClock()
    local = (START + timedelta(seconds=FIRST_FAULT_S)).astimezone()
    hours = parse_local_hours(f"{local - timedelta(minutes=5):%H:%M}-{local:%H:%M}")
    path = FakePath(
        clock, [Fault("cable", FIRST_FAULT_S - 200, 100.0), Fault("cable", FIRST_FAULT_S + 99, 9)]
    )
    async with running(path, record, quiet_hours=hours) as recorder:
        await path.play(recorder, FIRST_FAULT_S + 300)
    (incident,) = record.history(START, clock.now()).incidents
    assert seconds(incident.began_at) == FIRST_FAULT_S + 99


async def test_a_refused_key_is_one_incident_although_the_operation_current_succeeds(
    record: Record,
) -> None:
    path = FakePath(FakeClock(), [Fault("key", FIRST_FAULT_S, 300.0)])
    async with running(path, record) as recorder:
        for _ in range(8):
            await path.play(recorder, path.clock.elapsed_s + FIRST_FAULT_S / 4)
            recorder.note_attempt("current", None, 0.02)
    (incident,) = record.history(START, path.clock.now()).incidents
    assert (incident.cause, incident.count) == ("service-refuses", 1)


async def test_an_incident_that_ends_between_rare_calls_has_an_uncertain_end(
    record: Record,
) -> None:
    path = FakePath(FakeClock(), [Fault("key", FIRST_FAULT_S, 1000.0)])
    async with running(path, record) as recorder:
        await path.play(recorder, FIRST_FAULT_S + 300)
        await path.clock.sleep(900.0)  # the agent tries a refused key ever less often
        recorder.note_attempt("heartbeat", None, 0.02)
        await path.clock.sleep(60.0)
    (incident,) = record.history(START, path.clock.now()).incidents
    assert seconds(incident.ended_at) == pytest.approx(FIRST_FAULT_S + 1200.0, abs=1.0)
    assert incident.evidence == (
        "the service does not accept the API key; the end may be up to 15 min earlier"
    )


async def test_an_incident_survives_a_killed_agent(record: Record) -> None:
    path = FakePath(FakeClock(), [Fault("gateway", FIRST_FAULT_S, 4000.0)])
    recorder = recorder_of(path, record, boot_id="one")
    await play_without_stop(path, recorder, FIRST_FAULT_S + 900)
    (incident,) = record.history(START, path.clock.now()).incidents
    assert (incident.cause, incident.ended_at) == ("gateway-silent", None)
    assert incident.downtime_s >= 900 - UNWRITTEN_MAX_S
    path.faults = ()
    async with running(path, record, boot_id="two") as recorder:
        await path.play(recorder, FIRST_FAULT_S + 1200)
    history = record.history(START, path.clock.now())
    (incident,) = history.incidents
    assert incident.cause == "gateway-silent"
    assert seconds(incident.ended_at) >= FIRST_FAULT_S + 900 - UNWRITTEN_MAX_S
    assert [event.kind for event in history.events] == ["power-lost"]


async def test_a_recorder_that_runs_again_after_an_error_continues_the_open_incident(
    record: Record,
) -> None:
    path = FakePath(FakeClock(), [Fault("gateway", FIRST_FAULT_S, 600.0)])
    recorder = recorder_of(path, record)
    failing = asyncio.create_task(recorder.run())
    await path.play(recorder, FIRST_FAULT_S + 300)
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(path, "read_link", lambda: 1 / 0)
        path.on_change()
        with pytest.raises(ZeroDivisionError):
            await failing
    await play_without_stop(path, recorder, FIRST_FAULT_S + 900)
    history = record.history(START, path.clock.now())
    (incident,) = history.incidents
    assert abs(incident.downtime_s - 600.0) < TOLERANCE_S
    assert history.events == ()


async def test_incidents_are_written_later_if_the_disk_is_full(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = FakePath(FakeClock(), [Fault("cable", FIRST_FAULT_S, 10.0)])
    async with running(path, record) as recorder:
        await path.play(recorder, FIRST_FAULT_S - 10)
        with monkeypatch.context() as full:
            full.setattr(record, "write", _disk_error)
            await path.play(recorder, FIRST_FAULT_S + 100)
    (incident,) = record.history(START, path.clock.now()).incidents
    assert incident.downtime_s == 10.0


async def test_the_start_of_the_record_is_written_later_if_the_disk_is_full(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = FakePath(FakeClock())
    async with running(path, record) as recorder:
        with monkeypatch.context() as full:
            full.setattr(record, "write", _disk_error)
            await path.play(recorder, 60.0)
        assert seconds(recorder.history(START).since) == 0.0


async def test_stopping_a_recorder_that_has_not_run_keeps_the_record(record: Record) -> None:
    path = FakePath(FakeClock(), [Fault("cable", 100.0, 4000.0)])
    recorder = recorder_of(path, record, boot_id="one")
    await play_without_stop(path, recorder, 200.0)
    recorder_of(path, record, boot_id="one").stop()
    async with running(path, record, boot_id="one"):
        await path.clock.sleep(1.0)
    history = record.history(START, path.clock.now())
    assert [incident.cause for incident in history.incidents] == ["link-down"]
    assert [event.kind for event in history.events] == ["agent-killed"]


async def test_a_failed_read_of_the_record_keeps_the_open_incident(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = FakePath(FakeClock(), [Fault("cable", 100.0, 4000.0)])
    recorder = recorder_of(path, record, boot_id="one")
    await play_without_stop(path, recorder, 200.0)
    next_recorder = recorder_of(path, record, boot_id="one")
    with monkeypatch.context() as failing:
        failing.setattr(record, "open_incidents", _disk_error)
        with pytest.raises(sqlite3.OperationalError):
            await next_recorder.run()
    (incident,) = next_recorder.history(START).incidents
    assert (incident.cause, incident.ended_at) == ("link-down", None)


def _disk_error(**_: object) -> None:
    raise sqlite3.OperationalError("database or disk is full")


async def test_a_working_connection_is_probed_only_once(record: Record) -> None:
    path = FakePath(FakeClock())
    async with running(path, record) as recorder:
        await path.play(recorder, 7200.0)
    assert path.probes == 1


async def test_an_interruption_continues_when_the_configuration_is_reloaded(record: Record) -> None:
    path = FakePath(FakeClock(), [Fault("gateway", FIRST_FAULT_S, 300.0)])
    for until_s in (FIRST_FAULT_S + 100, FIRST_FAULT_S + 200, FIRST_FAULT_S + 600):
        recorder = recorder_of(path, record, run_id="one", boot_id="one")
        await play_without_stop(path, recorder, until_s)
        recorder.stop(is_reload=True)
    history = record.history(START, path.clock.now())
    assert history.events == ()
    (incident,) = history.incidents
    assert (incident.cause, incident.count) == ("gateway-silent", 1)
    assert incident.downtime_s == pytest.approx(300, abs=TOLERANCE_S)


async def test_a_restart_of_the_recorder_is_not_recorded_as_a_start_of_the_agent(
    record: Record,
) -> None:
    path = FakePath(FakeClock())
    recorder = recorder_of(path, record, boot_id="one")
    for _ in range(2):
        await play_without_stop(path, recorder, path.clock.elapsed_s + 60)
    assert record.history(START, path.clock.now()).events == ()


async def test_the_figures_of_an_hour_include_the_time_before_a_restart(record: Record) -> None:
    path = FakePath(FakeClock())
    for until_s in (600.0, 1200.0, 1800.0):
        async with running(path, record) as recorder:
            await path.play(recorder, until_s)
            (hour,) = recorder.history(START).hours
            assert hour.heartbeats == pytest.approx(until_s / 60, abs=3)
    assert record.history(START, path.clock.now()).hours == (hour,)


@pytest.mark.parametrize("stepped_s", [86_400.0, -7200.0])
async def test_setting_the_clock_does_not_change_the_length_of_an_interruption(
    stepped_s: float, record: Record
) -> None:
    path = FakePath(
        FakeClock(), [Fault("cable", FIRST_FAULT_S, 100.0), Fault("cable", FIRST_FAULT_S + 400, 9)]
    )
    async with running(path, record) as recorder:
        await path.play(recorder, FIRST_FAULT_S + 50)
        path.clock.stepped_s = stepped_s
        recorder.note_clock_set(stepped_s)
        await path.play(recorder, FIRST_FAULT_S + 300)
        (incident,) = recorder.history(START - timedelta(days=1)).incidents
        assert incident.downtime_s == 100.0
        await path.play(recorder, FIRST_FAULT_S + 600)
        incidents = recorder.history(START - timedelta(days=1)).incidents
    assert [incident.downtime_s for incident in incidents] == [100.0, 9.0]


async def test_the_start_of_a_record_is_corrected_if_the_clock_was_set_back(record: Record) -> None:
    path = FakePath(FakeClock())
    path.clock.stepped_s = 86_400.0
    async with running(path, record):
        await path.clock.sleep(1.0)
    path.clock.stepped_s = 0.0
    async with running(path, record):
        await path.clock.sleep(1.0)
    assert record.history(START, path.clock.now()).since <= path.clock.now()


async def test_an_interruption_during_quiet_hours_is_recorded_from_their_end(
    record: Record,
) -> None:
    clock = FakeClock()
    local = (START + timedelta(seconds=FIRST_FAULT_S)).astimezone()
    hours = parse_local_hours(f"{local - timedelta(minutes=5):%H:%M}-{local:%H:%M}")
    path = FakePath(clock, [Fault("provider", FIRST_FAULT_S - 200, 300.0)])
    async with running(path, record, quiet_hours=hours) as recorder:
        await path.play(recorder, FIRST_FAULT_S + 300)
    (incident,) = record.history(START, clock.now()).incidents
    assert abs(seconds(incident.began_at) - FIRST_FAULT_S) <= TIMEOUT_S


async def test_a_broken_stream_during_an_interruption_does_not_begin_another_interruption(
    record: Record,
) -> None:
    """The link is lost from 100 s to 110 s, and from 120 s to 130 s. The stream breaks at 105 s."""
    path = FakePath(FakeClock(), [Fault("cable", 100.0, 10.0), Fault("cable", 120.0, 10.0)])
    async with running(path, record) as recorder:
        await path.clock.sleep(90.0)
        calls = asyncio.create_task(path._notify())
        await path.clock.sleep(15.0)
        recorder.note_stream_broken()
        await path.clock.sleep(60.0)
        await calls
    (incident,) = record.history(START, path.clock.now()).incidents
    assert (incident.count, incident.downtime_s) == (2, 20.0)


async def test_events_are_written_although_there_are_no_heartbeats(record: Record) -> None:
    path = FakePath(FakeClock())
    async with running(path, record) as recorder:
        await path.clock.sleep(1.0)
        recorder.note_clock_set(10.0)
        await path.clock.sleep(120.0)
        (event,) = record.history(START, path.clock.now()).events
    assert event.kind == "clock-set"
