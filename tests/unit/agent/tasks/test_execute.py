"""Tests that a request is executed once, and that its report and its new state are stored together.
After a crash, the agent continues the unfinished requests at its next start.
"""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from agent.adapters.collector_process import CollectedFacts
from agent.adapters.failpoints import Failpoint
from agent.adapters.storage.printer_memory import PrinterMemory
from agent.config.model import LocalConfig
from agent.errors import Refused, ServiceUnavailable
from agent.reporting import describe_environment
from agent.rules.clock_skew import ClockSkew
from agent.rules.learned_printers import RememberedPrinters
from agent.rules.lifecycle import Event, State
from agent.rules.reports.jobs import application_job, network_job
from agent.rules.reports.payload import payload_of
from agent.tasks.collection import Collection
from agent.tasks.execute import IDLE, Executor
from agent.wire.codec import decode
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import NetworkPayload
from collectors.contract import (
    ApplicationFacts,
    ApplicationJob,
    Failure,
    Field,
    Job,
    LearnedPrinter,
    NetworkFacts,
    NetworkJob,
    WatchedDevice,
)
from tests.fakes.collectors.fake_collectors import FakeCollectors, good_facts, no_facts_error
from tests.unit.agent.rules.reports.test_network import CONTEXT
from tests.unit.agent.samples import BINDING, NOW, command, config
from tests.unit.agent.tasks.agent_parts import AgentParts, agent_parts, running, settle, until

ENVIRONMENT = describe_environment(LocalConfig())
MIN_INTERVAL_S = LocalConfig().limits.min_collection_interval_seconds


@dataclass
class ExecutorRig:
    """The state of an agent, and the executor that runs its requests with fake collectors."""

    parts: AgentParts
    executor: Executor
    work: asyncio.Event
    collectors: FakeCollectors
    status_lines: list[str]
    submitter_wakes: list[int]

    def report(self) -> dict[str, Any]:
        """Return the parsed body of the oldest report in the outbox."""
        item = self.parts.outbox.oldest()
        assert item is not None
        document: dict[str, Any] = json.loads(item.body)
        return document

    def acknowledged_statuses(self) -> list[str]:
        return [sent.status for sent in self.parts.client.requests_of("acknowledge")]


def make_rig(parts: AgentParts, settings: LocalConfig) -> ExecutorRig:
    collectors, work, status_lines, submitter_wakes = FakeCollectors(), asyncio.Event(), [], []

    def collection() -> Collection:
        return Collection(
            collectors=collectors,  # type: ignore[arg-type]
            config=settings,
            binding_state=parts.binding_state,
            environment=ENVIRONMENT,
            agent_fields=lambda: (Field("agent.version", "agent", "available", "0.1.0"),),
            memory=PrinterMemory(parts.state),
            health=parts.health,
            clock=parts.clock,
            on_activity=status_lines.append,
        )

    executor = Executor(
        collection=collection,
        limits=settings.limits,
        session=parts.session,
        ledger=parts.ledger,
        work=work,
        clock=parts.clock,
        wake_submitter=lambda: submitter_wakes.append(1),
        on_activity=status_lines.append,
    )
    return ExecutorRig(parts, executor, work, collectors, status_lines, submitter_wakes)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[ExecutorRig]:
    with agent_parts(tmp_path) as bound_agent:
        yield make_rig(bound_agent, config())


async def test_a_request_is_run_and_reported(rig: ExecutorRig) -> None:
    rig.parts.add_request(Event.ACCEPTED)

    async with running(rig.executor.run):
        await until(lambda: rig.parts.entry().state is State.REPORTED)

    entry, report = rig.parts.entry(), rig.report()
    assert (entry.attempt, entry.outcome, entry.running_acknowledged) == (1, "completed", True)
    assert report["reportId"] == str(entry.report_id) == report["report"]["reportId"]
    assert report["requestId"] == str(entry.request_id)
    assert report["bindingId"] == str(BINDING)
    assert report["report"]["identity"] == {
        "organizationId": "org-0001",
        "locationId": "loc-0001",
        "installId": "install-1",
    }
    assert rig.acknowledged_statuses() == ["running"]
    assert rig.collectors.jobs == [network_job(config())]
    decode(json.dumps(report["report"]), NetworkPayload)


async def test_learned_printers_are_sent_with_the_next_job(rig: ExecutorRig) -> None:
    seen_at = rig.parts.clock.now().isoformat()
    kitchen = LearnedPrinter("cups:kitchen", "192.168.1.50", seen_at, mac_address="00:1b:a9:0:0:1")
    facts = good_facts("network")
    assert isinstance(facts, NetworkFacts)
    learned = CollectedFacts(replace(facts, learned=(kitchen,)))
    # The printers of an interrupted collection are not learned.
    broken = CollectedFacts(
        replace(facts, learned=(replace(kitchen, address="?"),)), "it was killed"
    )
    rig.collectors.script.extend([learned, broken])
    results = [await rig.executor.collection().collect("network") for _ in range(3)]

    jobs = [job for job in rig.collectors.jobs if isinstance(job, NetworkJob)]
    assert [job.learned for job in jobs] == [(), (kitchen,), (kitchen,)]
    for result in results:
        assert result.payload is not None
        assert "00:1b:a9:0:0:1" not in result.payload.model_dump_json()


async def test_macs_of_watched_devices_are_sent_with_the_next_snapshot(
    unbound_agent: AgentParts,
) -> None:
    watched = [{"name": "Bar", "kind": "payment-terminal", "address": "192.168.1.40"}]
    rig = make_rig(unbound_agent, config(watched_devices=watched))
    seen_at = rig.parts.clock.now().isoformat()
    bar = LearnedPrinter("device:Bar", "192.168.1.40", seen_at, mac_address="00:11:22:0:0:1")
    facts = good_facts("application")
    assert isinstance(facts, ApplicationFacts)
    rig.collectors.script.append(CollectedFacts(replace(facts, learned=(bar,))))
    for _ in range(2):
        await rig.executor.collection().collect("application")

    jobs = [job for job in rig.collectors.jobs if isinstance(job, ApplicationJob)]
    assert [job.learned for job in jobs] == [(), (bar,)]
    assert [[device.name for device in job.devices] for job in jobs] == [["Bar"]] * 2


async def test_unreadable_printer_memory_is_quarantined(rig: ExecutorRig) -> None:
    (rig.parts.state.path / "printers.json").write_bytes(b"garbage")
    rig.parts.add_request(Event.ACCEPTED)

    async with running(rig.executor.run):
        await until(lambda: rig.parts.entry().state is State.REPORTED)

    (line,) = rig.report()["report"]["limitations"]
    assert line.startswith("the details of printers from earlier reports cannot be read: ")
    memory, reason = PrinterMemory(rig.parts.state).load()
    # The agent has created the file again.
    assert (memory.printers, reason) == ((), None)
    (copy,) = rig.parts.state.quarantine_path.iterdir()
    assert copy.read_bytes() == b"garbage"


async def test_a_printer_forgotten_during_a_collection_stays_forgotten(
    rig: ExecutorRig,
) -> None:
    memory = PrinterMemory(rig.parts.state)
    seen_at = rig.parts.clock.now().isoformat()
    memory.write(RememberedPrinters((LearnedPrinter("cups:kitchen", seen_at=seen_at),)))
    rig.collectors.waits_for_release = True
    collecting = asyncio.create_task(rig.executor.collection().collect("network"))
    await until(lambda: bool(rig.collectors.jobs))
    memory.write(RememberedPrinters())
    rig.collectors.release.set()
    await collecting
    assert memory.load() == (RememberedPrinters(), None)


async def test_status_lines_report_the_progress_of_a_collection(rig: ExecutorRig) -> None:
    rig.parts.add_request(Event.ACCEPTED)

    async with running(rig.executor.run):
        await until(lambda: rig.parts.entry().state is State.REPORTED)

    assert rig.status_lines == [
        "collecting network", "collecting: disks 1 of 2", "collecting: ports 3", IDLE,
    ]  # fmt: skip
    assert rig.status_lines[-1] == IDLE


async def test_requests_run_one_at_a_time_in_their_order(rig: ExecutorRig) -> None:
    async with running(rig.executor.run):
        await settle()
        for number in (1, 2, 3):
            rig.parts.clock.advance(1)
            rig.parts.add_request(Event.ACCEPTED, number=number)
        rig.work.set()
        await until(lambda: len(rig.parts.journal.in_state(State.REPORTED)) == 3)

    assert rig.collectors.most_at_once == 1
    acknowledgements = rig.parts.client.requests_of("acknowledge")
    assert [sent.request_id.int for sent in acknowledgements] == [1, 2, 3]


async def test_waiting_requests_and_a_scheduled_report_share_one_collection(
    rig: ExecutorRig,
) -> None:
    for number in range(1, 21):
        rig.parts.add_request(Event.ACCEPTED, number=number)
    rig.executor.schedule("network")
    async with running(rig.executor.run):
        await until(lambda: rig.parts.outbox.depth().reports == 21)

    assert len(rig.collectors.jobs) == 1
    items = []
    while (item := rig.parts.outbox.oldest({i.report_id for i in items})) is not None:
        items.append(item)
    bodies = [json.loads(item.body) for item in items]
    assert len({body["reportId"] for body in bodies}) == 21
    assert all(body["report"]["reportId"] == body["reportId"] for body in bodies)
    assert {body.get("requestId") for body in bodies} == {
        None, *(str(UUID(int=number)) for number in range(1, 21)),
    }  # fmt: skip
    for body in bodies:
        del body["reportId"], body["report"]["reportId"]
        body.pop("requestId", None)
    assert all(body == bodies[0] for body in bodies)


async def test_a_minimum_time_passes_between_two_collections_of_one_kind(
    rig: ExecutorRig,
) -> None:
    bound_agent, began = rig.parts, rig.parts.clock.elapsed_s
    bound_agent.add_request(Event.ACCEPTED)
    async with running(rig.executor.run):
        await until(lambda: bound_agent.entry().state is State.REPORTED)
        assert bound_agent.clock.elapsed_s == began, "a first request must not wait"
        bound_agent.add_request(Event.ACCEPTED, number=2)
        bound_agent.journal.add(command(3, "application"), bound_agent.clock.now())
        bound_agent.journal.move(bound_agent.entry(3), Event.ACCEPTED, bound_agent.clock.now())
        rig.work.set()
        await until(lambda: bound_agent.entry(3).state is State.REPORTED)
        assert bound_agent.clock.elapsed_s == began, "a request of another kind must not wait"
        await until(lambda: bound_agent.entry(2).state is State.REPORTED)

    assert bound_agent.clock.elapsed_s - began == MIN_INTERVAL_S


async def test_a_second_collection_waits_for_pending_acknowledgements(
    rig: ExecutorRig,
) -> None:
    bound_agent = rig.parts
    bound_agent.add_request(Event.ACCEPTED)
    async with running(rig.executor.run):
        await until(lambda: bound_agent.entry().state is State.REPORTED)
        bound_agent.add_request(Event.ACCEPTED, number=2)
        unacknowledged = bound_agent.add_request(number=3)
        rig.work.set()
        await until(lambda: bound_agent.clock.elapsed_s >= MIN_INTERVAL_S)
        await settle(10)
        assert bound_agent.entry(2).state is State.ACKNOWLEDGED
        bound_agent.journal.move(unacknowledged, Event.ACCEPTED, bound_agent.clock.now())
        rig.work.set()
        await until(lambda: bound_agent.entry(2).state is State.REPORTED)
        await until(lambda: bound_agent.entry(3).state is State.REPORTED)
        assert len(rig.collectors.jobs) == 2
        bound_agent.add_request(Event.ACCEPTED, number=4)
        bound_agent.add_request(number=5)  # is never acknowledged
        rig.work.set()
        await until(lambda: bound_agent.entry(4).state is State.REPORTED)

    assert len(rig.collectors.jobs) == 3


async def test_a_report_waits_until_the_outbox_has_room(tmp_path: Path) -> None:
    settings = config(limits={"outbox_max_bytes": 100_000})
    with agent_parts(tmp_path, limits=settings.limits) as bound_agent:
        rig = make_rig(bound_agent, settings)
        many = tuple(Field(f"key{n}", "source", "available", "v" * 200) for n in range(100))
        rig.collectors.script.append(
            CollectedFacts(replace(good_facts("application"), fields=many))
        )
        for number in range(1, 21):
            bound_agent.journal.add(command(number, "application"), NOW)
            bound_agent.journal.move(bound_agent.entry(number), Event.ACCEPTED, NOW)
        largest_bytes = 0
        async with running(rig.executor.run):
            for _ in range(20):  # deliver one report at a time
                await until(lambda: bound_agent.outbox.depth().reports > 0)
                await settle(300)
                bound_agent.submitter.apply_limits()
                largest_bytes = max(largest_bytes, bound_agent.outbox.depth().size_bytes)
                item = bound_agent.outbox.oldest()
                assert item is not None
                bound_agent.ledger.settle(item, bound_agent.clock.now())
                rig.work.set()
        assert 50_000 < largest_bytes <= 100_000
        assert len(bound_agent.journal.in_state(State.SUBMITTED)) == 20
        assert len(rig.collectors.jobs) == 1
        assert "reports-dropped" not in bound_agent.condition_codes()


async def test_requests_without_a_report_stay_acknowledged_after_a_stop(
    rig: ExecutorRig,
) -> None:
    for number in range(1, 201):
        rig.parts.add_request(Event.ACCEPTED, number=number)
    async with running(rig.executor.run):
        await until(lambda: rig.parts.outbox.depth().reports >= 3)

    reported = len(rig.parts.journal.in_state(State.REPORTED))
    waiting = rig.parts.journal.in_state(State.ACKNOWLEDGED)
    assert 3 <= reported < 200
    assert reported + len(waiting) == 200
    assert {entry.attempt for entry in waiting} == {0}


async def test_an_organization_id_longer_than_the_report_limit_is_clipped(tmp_path: Path) -> None:
    with agent_parts(tmp_path) as bound_agent:
        assert bound_agent.client.record is not None
        bound_agent.binding_state.adopt(
            bound_agent.client.record.model_copy(update={"organization_id": "ü" * 2000}), "loc-0001"
        )
        rig = make_rig(bound_agent, config())
        bound_agent.add_request(Event.ACCEPTED)
        async with running(rig.executor.run):
            await until(lambda: bound_agent.entry().state is State.REPORTED)

        organization_id = rig.report()["report"]["identity"]["organizationId"]
        assert organization_id == "ü" * 1023 + "…"


async def test_a_scheduled_report_has_no_request(rig: ExecutorRig) -> None:
    async with running(rig.executor.run):
        await settle()
        rig.executor.schedule("application")
        rig.executor.schedule("application")
        await until(lambda: rig.parts.outbox.depth().reports == 1)
        await settle()

    report = rig.report()
    assert "requestId" not in report
    assert report["kind"] == "application"
    assert len(rig.collectors.jobs) == 1, "a report scheduled twice must be made once"
    payload = decode(json.dumps(report["report"]), ApplicationPayload)
    assert payload.snapshot.fields[0].key == "agent.version"


async def test_requests_are_run_before_scheduled_reports(rig: ExecutorRig) -> None:
    rig.parts.add_request(Event.ACCEPTED)
    rig.executor.schedule("application")

    async with running(rig.executor.run):
        await until(lambda: rig.parts.outbox.depth().reports == 2)

    assert [job.kind for job in rig.collectors.jobs] == ["network", "application"]


async def test_an_expired_request_is_not_run(rig: ExecutorRig) -> None:
    async with running(rig.executor.run):
        await settle()
        rig.parts.add_request(Event.ACCEPTED)
        rig.parts.client.skew = ClockSkew(timedelta(hours=1))
        rig.work.set()
        await until(lambda: rig.parts.entry().state is State.EXPIRED)

    assert rig.collectors.jobs == []


async def test_a_request_that_was_withdrawn_is_not_run(rig: ExecutorRig) -> None:
    rig.parts.add_request(Event.ACCEPTED)
    rig.parts.client.script["acknowledge"].append(Refused(409, None, "withdrawn"))

    async with running(rig.executor.run):
        await until(lambda: rig.parts.entry().state is State.REJECTED)

    assert rig.parts.entry().detail == "withdrawn"
    assert rig.collectors.jobs == []


async def test_a_collection_starts_although_its_acknowledgement_times_out(rig: ExecutorRig) -> None:
    rig.parts.add_request(Event.ACCEPTED)
    rig.parts.client.always["acknowledge"] = TimeoutError()

    async with running(rig.executor.run):
        await until(lambda: rig.parts.entry().state is State.REPORTED)

    assert not rig.parts.entry().running_acknowledged


async def test_collection_without_facts_is_a_failed_report(rig: ExecutorRig) -> None:
    rig.parts.add_request(Event.ACCEPTED)
    rig.collectors.script.append(no_facts_error())

    async with running(rig.executor.run):
        await until(lambda: rig.parts.entry().state is State.REPORTED)

    report = rig.report()
    assert (report["outcome"], report["failureReason"]) == ("failed", "collection-failed")
    assert report["report"] is None
    assert rig.parts.entry().outcome == "failed"
    assert rig.parts.condition_codes() == {"collector-failed"}


async def test_an_interrupted_collection_is_a_partial_report(rig: ExecutorRig) -> None:
    broken = replace(good_facts("network"), failures=(Failure("collector", "killed"),))
    rig.collectors.script.append(CollectedFacts(broken, "killed"))
    rig.parts.add_request(Event.ACCEPTED)

    async with running(rig.executor.run):
        await until(lambda: rig.parts.entry().state is State.REPORTED)
        assert rig.report()["outcome"] == "partial"
        assert rig.parts.condition_codes() == {"collector-failed"}
        rig.executor.schedule("network")
        await until(lambda: rig.parts.outbox.depth().reports == 2)

    assert rig.parts.condition_codes() == set()


@pytest.mark.parametrize("kind", ["network", "application"])
async def test_a_request_of_a_disabled_kind_is_answered_with_a_limited_report(
    tmp_path: Path, kind: Any
) -> None:
    with agent_parts(tmp_path) as bound_agent:
        rig = make_rig(bound_agent, config(**{kind: {"enabled": False}}))
        bound_agent.journal.add(command(1, kind), NOW)
        bound_agent.journal.move(bound_agent.entry(), Event.ACCEPTED, NOW)
        async with running(rig.executor.run):
            await until(lambda: bound_agent.entry().state is State.REPORTED)

        report = rig.report()
        assert rig.collectors.jobs == []
        assert report["outcome"] == "completed"
        assert report["report"]["completeness"] == "limited"
        (line,) = report["report"]["limitations"]
        assert "switched off in this machine's configuration" in line
        if kind == "network":
            assert report["report"]["unavailable"] == {"interfaces": line}
            for part in ("discovery", "printers", "networkMap"):
                assert report["report"][part] is None


async def test_a_report_that_is_too_large_is_sealed_smaller(tmp_path: Path) -> None:
    with agent_parts(tmp_path) as bound_agent:
        rig = make_rig(bound_agent, config(limits={"max_report_bytes": 10_000}))
        collected = good_facts("application")
        many = tuple(Field(f"key{n}", "source", "available", "v" * 200) for n in range(200))
        rig.collectors.script.append(CollectedFacts(replace(collected, fields=many)))
        async with running(rig.executor.run):
            await settle()
            rig.executor.schedule("application")
            await until(lambda: bound_agent.outbox.depth().reports == 1)

        item = bound_agent.outbox.oldest()
        assert item is not None
        assert len(item.body) <= 10_000
        assert item.outcome == "completed"
        snapshot = json.loads(item.body)["report"]["snapshot"]
        assert [field["key"] for field in snapshot["fields"]] == [f"key{n}" for n in range(16)]


async def test_report_that_cannot_be_made_small_enough_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with agent_parts(tmp_path) as bound_agent:
        rig = make_rig(bound_agent, config(limits={"max_report_bytes": 10_000}))
        many = tuple(Field("\u20ac" * 1000, "s", "available", "\u20ac" * 1000) for _ in range(9))
        facts = replace(good_facts("application"), fields=many)
        rig.collectors.script.append(CollectedFacts(facts))
        async with running(rig.executor.run):
            await settle()
            rig.executor.schedule("application")
            await until(lambda: bound_agent.outbox.depth().reports == 1)

        item = bound_agent.outbox.oldest()
        assert item is not None
        assert item.outcome == "failed"
    assert "the application report is larger than limits.max_report_bytes (10000)" in caplog.text


# --------------------------------------------------------------- stops and crashes


async def test_a_collection_ended_by_a_clean_stop_does_not_count_as_an_attempt(
    rig: ExecutorRig,
) -> None:
    rig.parts.add_request(Event.ACCEPTED)
    rig.collectors.waits_for_release = True
    async with running(rig.executor.run):
        await until(lambda: rig.collectors.at_once == 1)

    entry = rig.parts.entry()
    assert (entry.state, entry.attempt) == (State.ACKNOWLEDGED, 0)
    assert rig.parts.outbox.depth().reports == 0
    assert rig.status_lines[-1] == IDLE


async def test_a_stop_during_the_acknowledgement_of_the_start_counts_no_attempt(
    rig: ExecutorRig,
) -> None:
    rig.parts.add_request(Event.ACCEPTED)

    async def never_answer(_: object) -> None:
        await asyncio.Event().wait()

    rig.parts.client.always["acknowledge"] = never_answer
    async with running(rig.executor.run):
        await until(lambda: rig.acknowledged_statuses() == ["running"])

    assert (rig.parts.entry().state, rig.parts.entry().attempt) == (
        State.ACKNOWLEDGED,
        0,
    )
    assert rig.collectors.jobs == []


@pytest.mark.parametrize(
    ("events", "is_expired", "expected_state", "collections", "outcome"),
    [
        ((), False, State.RECEIVED, 0, None),
        ((), True, State.EXPIRED, 0, None),
        ((Event.ACCEPTED,), False, State.REPORTED, 1, "completed"),
        ((Event.ACCEPTED,), True, State.EXPIRED, 0, None),
        ((Event.ACCEPTED, Event.STARTED), False, State.REPORTED, 1, "completed"),
        ((Event.ACCEPTED, Event.STARTED), True, State.REPORTED, 0, "failed"),
        (
            (Event.ACCEPTED, Event.STARTED, Event.RETRIED, Event.STARTED),
            False,
            State.REPORTED,
            0,
            "failed",
        ),
        ((Event.EXPIRED,), False, State.EXPIRED, 0, None),
        ((Event.REFUSED,), True, State.REJECTED, 0, None),
    ],
)
async def test_each_request_in_the_journal_gets_the_boot_action_of_its_state(  # noqa: PLR0917
    rig: ExecutorRig,
    events: tuple[Event, ...],
    is_expired: bool,
    expected_state: State,
    collections: int,
    outcome: str | None,
) -> None:
    rig.parts.add_request(*events)
    if is_expired:
        rig.parts.client.skew = ClockSkew(timedelta(hours=1))

    async with running(rig.executor.run):
        await until(lambda: rig.parts.entry().state is expected_state)
        await settle()

    assert rig.parts.entry().state is expected_state
    assert len(rig.collectors.jobs) == collections
    assert rig.parts.outbox.depth().reports == (outcome is not None)
    if outcome is not None:
        report = rig.report()
        assert report["outcome"] == outcome
        assert report.get("failureReason") == (
            "execution-interrupted" if outcome == "failed" else None
        )


async def test_a_stored_report_is_sent_and_not_created_again(
    rig: ExecutorRig,
) -> None:
    rig.parts.add_request(Event.ACCEPTED)
    async with running(rig.executor.run):
        await until(lambda: rig.parts.entry().state is State.REPORTED)
    first_report = rig.report()
    restarted = make_rig(rig.parts, config())

    async with running(restarted.executor.run):
        await settle()

    assert restarted.collectors.jobs == []
    assert restarted.submitter_wakes, "the submitter must be woken"
    assert rig.report() == first_report


async def test_requests_are_not_executed_without_a_binding(rig: ExecutorRig) -> None:
    rig.parts.add_request(Event.ACCEPTED)
    rig.parts.binding_state.revoke()

    async with running(rig.executor.run):
        await settle()
        assert rig.collectors.jobs == []
        rig.parts.binding_state.confirm()
        await until(lambda: rig.parts.entry().state is State.REPORTED)


async def test_a_revocation_while_idle_stops_the_work(rig: ExecutorRig) -> None:
    async with running(rig.executor.run):
        await settle()
        rig.parts.binding_state.revoke()
        rig.parts.add_request(Event.ACCEPTED)
        rig.work.set()
        await settle()
        first_state = rig.parts.entry().state
        rig.parts.add_request(Event.ACCEPTED, number=2)
        rig.work.set()
        await settle()

    assert first_state is State.ACKNOWLEDGED
    assert rig.collectors.jobs == []


async def test_a_finished_request_creates_no_second_report(rig: ExecutorRig) -> None:
    rig.parts.add_request(Event.ACCEPTED)
    async with running(rig.executor.run):
        await until(lambda: rig.parts.entry().state is State.REPORTED)
    item = rig.parts.outbox.oldest()
    assert item is not None
    rig.parts.ledger.settle(item, NOW)

    async with running(rig.executor.run):
        await settle()

    assert rig.parts.entry().state is State.SUBMITTED
    assert rig.parts.outbox.oldest() is None


async def test_a_collection_that_returns_facts_of_another_kind_is_repeated_only_once(
    rig: ExecutorRig,
) -> None:
    """A bug that makes a collector return the wrong facts must not cause endless collections."""
    rig.parts.add_request(Event.ACCEPTED)
    wrong = CollectedFacts(good_facts("application"))
    rig.collectors.script.extend([wrong, wrong, wrong])

    for _ in range(2):
        with pytest.raises(TypeError, match="returned application facts"):
            await asyncio.wait_for(rig.executor.run(), 5)
    async with running(rig.executor.run):
        await until(lambda: rig.parts.entry().state is State.REPORTED)

    assert rig.report()["failureReason"] == "execution-interrupted"


async def test_a_request_whose_report_cannot_be_stored_is_run_again(
    rig: ExecutorRig,
) -> None:
    rig.parts.add_request(Event.ACCEPTED)
    with rig.parts.database.transaction(Failpoint.COUNTED) as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, 'no room'); END"
        )

    with pytest.raises(sqlite3.Error, match="no room"):
        await asyncio.wait_for(rig.executor.run(), 5)
    assert rig.parts.entry().state is State.RUNNING
    with rig.parts.database.transaction(Failpoint.COUNTED) as connection:
        connection.execute("DROP TRIGGER full")
    async with running(rig.executor.run):
        await until(lambda: rig.parts.entry().state is State.REPORTED)

    assert rig.report()["outcome"] == "completed"


async def test_an_outage_during_the_collection_does_not_prevent_the_report(
    rig: ExecutorRig,
) -> None:
    rig.parts.add_request(Event.ACCEPTED)
    rig.parts.client.script["acknowledge"].extend([ServiceUnavailable("timeout", "no reply")] * 3)

    async with running(rig.executor.run):
        await until(lambda: rig.parts.entry().state is State.REPORTED)


# --------------------------------------------------------------- jobs and payloads


def test_jobs_follow_the_configuration() -> None:
    settings = config(
        network={"ports": [80], "max_hosts": 7, "device_only": True, "subnets": ["10.0.0.0/24"]},
        printers=[{"id": "bar", "name": "Bar", "transport": "usb"}],
        watched_devices=[
            {"name": "Bar", "kind": "payment-terminal", "mac": "00-11-22-33-44-5A"},
            {"name": "Hall", "address": "192.168.1.41"},
            {"name": "Bar", "address": "192.168.1.42"},  # left out: the name is already used
            {"name": "neither"},  # left out: it has neither a MAC nor an address
        ],
        application={"watch_processes": ["pos-till"]},
    )

    network, application = network_job(settings), application_job(settings)

    assert (network.ports, network.max_hosts, network.device_only) == ((80,), 7, True)
    assert network.subnets == ("10.0.0.0/24",)
    assert (network.printers[0].id, network.printers[0].transport) == ("bar", "usb")
    assert application.watch_processes == ("pos-till",)
    assert application.device_only
    assert network.devices == application.devices
    assert network.devices == (
        WatchedDevice("Bar", "payment-terminal", None, "00:11:22:33:44:5a"),
        WatchedDevice("Hall", "other", "192.168.1.41"),
    )
    assert application.service_url == "http://127.0.0.1:9"
    assert application_job(LocalConfig()).service_url == ""
    assert not application.has_proxy
    proxied = settings.service.model_copy(update={"proxy": "http://user:secret@proxy:3128"})
    assert application_job(settings.model_copy(update={"service": proxied})) == replace(
        application, has_proxy=True
    )


@pytest.mark.parametrize(
    ("job", "kind"),
    [
        (application_job(LocalConfig()), "network"),
        (network_job(LocalConfig()), "application"),
    ],
)
def test_facts_of_another_kind_raise_an_error(job: Job, kind: str) -> None:
    with pytest.raises(TypeError, match=f"a {job.kind} job returned {kind} facts"):
        payload_of(job, good_facts(kind), (), CONTEXT)


async def test_a_scheduled_report_without_a_binding_raises_an_error(
    unbound_agent: AgentParts,
) -> None:
    rig = make_rig(unbound_agent, config())
    collection = rig.executor.collection()

    with pytest.raises(RuntimeError, match="needs a binding"):
        collection.report(await collection.collect("network"), None)


async def test_reports_of_one_collection_have_distinct_ids(rig: ExecutorRig) -> None:
    collection = rig.executor.collection()

    result = await collection.collect("application")
    reports = [collection.report(result, None) for _ in range(3)]

    assert len({report.report_id for report in reports}) == 3
