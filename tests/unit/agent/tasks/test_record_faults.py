"""Tests of the recorder with faults that do not concern the connection, in virtual time."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from agent.adapters.storage.record import Record
from agent.config.local_hours import parse_local_hours
from agent.presentation.connectivity.sentences import connection_sentence
from agent.rules.connectivity.cause import LinkState, Sample
from agent.rules.connectivity.local_faults import LocalReading, LocalState
from agent.tasks.local_faults import READ_EVERY_S, LocalFaultRecorder
from agent.tasks.record import SILENT_PROBES_MAX, Recorder
from agent.wire.payloads.history import Cause
from tests.fakes.fake_clock import START, FakeClock
from tests.fakes.fake_path import HEARTBEAT_S, FakePath, Fault
from tests.unit.agent.tasks.test_record import (
    FIRST_FAULT_S,
    TOLERANCE_S,
    record_in,
    recorder_of,
    seconds,
)

Span = tuple[Cause, str, float, float]


@dataclass
class FakeLocalFaults:
    """Simulates local faults. Each span is a cause, a subject, and its begin and end in seconds.

    ``throttles`` is how often the processor was throttled. ``reads`` are the times of all reads.
    """

    clock: FakeClock
    spans: Sequence[Span] = ()
    throttles: int | None = None
    reads: list[float] = field(default_factory=list)

    async def read(self) -> LocalReading:
        now_s = self.clock.elapsed_s
        self.reads.append(now_s)
        states = {
            (cause, name): LocalState("stopped" if begin <= now_s < end else None)
            for cause, name, begin, end in self.spans
        }
        return LocalReading(states, throttle_count=self.throttles)


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return record_in(tmp_path)


@contextlib.asynccontextmanager
async def running(
    path: FakePath, local: FakeLocalFaults, record: Record, **options: object
) -> AsyncIterator[Recorder]:
    recorder = recorder_of(path, record, local=LocalFaultRecorder(local.read), **options)
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_each_local_fault_is_an_incident_and_not_an_interruption(record: Record) -> None:
    path = FakePath(FakeClock())
    spans: list[Span] = [
        ("queue-stopped", "receipts", 1000.0, 3000.0),
        ("queue-stopped", "kitchen", 1000.0, 5000.0),
        ("page-missing", "kiosk", 2000.0, 2900.0),
        ("device-absent", "card", 4000.0, 99_999.0),
    ]
    local = FakeLocalFaults(path.clock, spans)
    async with running(path, local, record) as recorder:
        await path.play(recorder, 7200.0)
        history = recorder.history(START)
    for cause, name, begin_s, end_s in spans:
        (incident,) = (incident for incident in history.incidents if incident.subject == name)
        assert incident.cause == cause
        assert 0 <= seconds(incident.began_at) - begin_s <= READ_EVERY_S + HEARTBEAT_S
        if end_s > 7200.0:
            assert incident.ended_at is None
        else:
            assert 0 <= seconds(incident.ended_at) - end_s <= READ_EVERY_S + HEARTBEAT_S
    assert connection_sentence(history, path.clock.now()).startswith("no interruption since")


async def test_local_faults_are_read_every_five_minutes_with_a_heartbeat(record: Record) -> None:
    path = FakePath(FakeClock())
    local = FakeLocalFaults(path.clock)
    async with running(path, local, record) as recorder:
        await path.play(recorder, 7200.0)
    intervals_s = [after - before for before, after in itertools.pairwise(local.reads)]
    assert local.reads[0] >= 60.0  # not in the minute after the start
    assert all(
        READ_EVERY_S <= interval_s <= READ_EVERY_S + HEARTBEAT_S + 1 for interval_s in intervals_s
    )
    assert len(intervals_s) >= 7200 // (READ_EVERY_S + HEARTBEAT_S) - 1
    # The recorder has no timer of its own: only the simulated path sleeps.
    assert path.clock.slept.count(READ_EVERY_S) == 0


async def test_local_faults_are_read_during_an_interruption(record: Record) -> None:
    path = FakePath(FakeClock(), [Fault("provider", FIRST_FAULT_S, 3000.0)])
    local = FakeLocalFaults(path.clock, [("queue-stopped", "receipts", 1500.0, 2500.0)])
    async with running(path, local, record) as recorder:
        await path.play(recorder, 7200.0)
        incidents = recorder.history(START).incidents
    assert [incident.cause for incident in incidents] == ["provider-down", "queue-stopped"]
    assert abs(incidents[0].downtime_s - 3000.0) <= 2 * TOLERANCE_S


async def test_a_lasting_fault_is_written_when_it_begins_and_once_an_hour(record: Record) -> None:
    path = FakePath(FakeClock())
    local = FakeLocalFaults(path.clock, [("queue-stopped", "spare", 0.0, 999_999.0)])
    writes = 0
    write = record.write

    def count_write(**arguments: object) -> None:
        nonlocal writes
        writes += 1
        write(**arguments)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(record, "write", count_write)
        async with running(path, local, record) as recorder:
            await path.play(recorder, 6 * 3600.0)
    assert writes <= 6 + 3  # one per hour, and a few for the start and for the begin of the fault
    (incident,) = record.history(START, path.clock.now()).incidents
    assert incident.downtime_s >= 4.9 * 3600.0


async def test_a_clean_stop_ends_local_faults_and_a_reload_continues_them(record: Record) -> None:
    path = FakePath(FakeClock())
    local = FakeLocalFaults(path.clock, [("page-missing", "kiosk", 100.0, 99_999.0)])
    for until_s, is_reload in ((1200.0, True), (2400.0, True), (3600.0, False)):
        async with running(path, local, record, run_id="one") as recorder:
            await path.play(recorder, until_s)
        recorder.stop(is_reload=is_reload)
        (incident,) = record.history(START, path.clock.now()).incidents
        assert (incident.ended_at is None) is is_reload
    assert seconds(incident.ended_at) == pytest.approx(3600.0, abs=1.0)


async def test_a_local_fault_ends_when_quiet_hours_begin(record: Record) -> None:
    clock = FakeClock()
    local_time = (START + timedelta(hours=1)).astimezone()
    hours = parse_local_hours(f"{local_time:%H:%M}-{local_time + timedelta(hours=1):%H:%M}")
    path = FakePath(clock)
    local = FakeLocalFaults(clock, [("queue-stopped", "receipts", 1800.0, 99_999.0)])
    async with running(path, local, record, quiet_hours=hours) as recorder:
        await path.play(recorder, 7000.0)
        (incident,) = recorder.history(START).incidents
    assert 0 <= seconds(incident.ended_at) - 3600.0 <= READ_EVERY_S + HEARTBEAT_S


async def test_processor_throttling_is_an_event(record: Record) -> None:
    path = FakePath(FakeClock())
    local = FakeLocalFaults(path.clock, throttles=5)
    async with running(path, local, record) as recorder:
        await path.play(recorder, 900.0)
        local.throttles = 25
        await path.play(recorder, 1800.0)
        (event,) = recorder.history(START).events
    assert (event.kind, event.detail) == ("processor-throttled", "20 times")


async def test_a_gateway_that_never_answers_is_probed_only_a_few_times(record: Record) -> None:
    class SilentGatewayPath(FakePath):
        async def probe(self, link: LinkState) -> Sample:
            return replace(await FakePath.probe(self, link), gateway_answers=None)

    path = SilentGatewayPath(FakeClock())
    async with running(path, FakeLocalFaults(path.clock), record) as recorder:
        await path.play(recorder, 4 * 3600.0)
        path.faults = [Fault("cable", path.clock.elapsed_s + 1.0, 20.0)]
        probes_before = path.probes
        await path.play(recorder, 8 * 3600.0)
    assert probes_before == SILENT_PROBES_MAX
    assert path.probes <= 2 * SILENT_PROBES_MAX + 10


@pytest.mark.parametrize("fault", ["provider", "service"])
async def test_a_conflict_of_the_gateways_address_is_the_cause(fault: str, record: Record) -> None:
    class ConflictingGatewayPath(FakePath):
        def read_link(self) -> LinkState:
            number = int(self.clock.elapsed_s // 300) % 2
            link = FakePath.read_link(self)
            mac = f"02:00:00:00:00:0{number}" if link.gateway else None
            return LinkState(
                link.interface, link.has_link, link.addresses, link.has_route, link.gateway, mac
            )

    path = ConflictingGatewayPath(FakeClock(), [Fault(fault, 3000.0, 120.0)])  # type: ignore[arg-type]
    async with running(path, FakeLocalFaults(path.clock), record) as recorder:
        await path.play(recorder, 3600.0)
        history = recorder.history(START)
    (incident,) = history.incidents
    assert (incident.cause, incident.evidence) == (
        "address-conflict", "another machine also uses 192.168.1.1",
    )  # fmt: skip
    kinds = [event.kind for event in history.events]
    assert kinds.count("gateway-conflict") == 1
    assert kinds.count("gateway-changed") <= 3
