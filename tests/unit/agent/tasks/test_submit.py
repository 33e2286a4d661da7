"""Tests that a report is sent until the service accepts it or rejects it."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from agent.adapters.storage.outbox import WaitingReport
from agent.config.model import Limits
from agent.errors import BodyRejected, BodyTooLarge, Refused, ServiceUnavailable, Throttled
from agent.rules.lifecycle import Event, State
from agent.rules.reports.sealing import LAST_TIER, report_of, seal
from agent.wire.device_operations import SubmitResultReply, SubmitResultRequest
from tests.fixtures import payloads
from tests.unit.agent.samples import BINDING, report
from tests.unit.agent.tasks.agent_parts import AgentParts, agent_parts, running, settle, until

REPORT_ID = UUID(payloads.REPORT_ID)


def queue_large_report(bound_agent: AgentParts) -> WaitingReport:
    """Queue a large network report for request 1."""
    entry = bound_agent.add_request(Event.ACCEPTED, Event.STARTED)
    request = SubmitResultRequest(
        report_id=REPORT_ID,
        binding_id=BINDING,
        kind="network",
        outcome="completed",
        report=payloads.small_venue(),
        request_id=entry.request_id,
    )
    bound_agent.ledger.hand_over(entry, seal(request, max_bytes=10**6), bound_agent.clock.now())
    bound_agent.journal.note_running_acknowledged(entry.request_id)
    item = bound_agent.outbox.oldest()
    assert item is not None
    return item


def queue_small_report(bound_agent: AgentParts, number: int = 1) -> None:
    sealed = report(number)
    bound_agent.ledger.hand_over(None, sealed, bound_agent.clock.now())


def sent_bodies(bound_agent: AgentParts) -> list[bytes]:
    return bound_agent.client.requests_of("submitResult")


def is_outbox_empty(bound_agent: AgentParts) -> bool:
    return bound_agent.outbox.depth().reports == 0


async def test_a_report_is_sent_as_it_was_sealed(bound_agent: AgentParts) -> None:
    item = queue_large_report(bound_agent)

    async with running(bound_agent.submitter.run):
        await until(lambda: bound_agent.entry().state is State.SUBMITTED)

    assert sent_bodies(bound_agent) == [item.body]
    assert is_outbox_empty(bound_agent)


async def test_a_report_queued_later_is_sent_after_a_wake(bound_agent: AgentParts) -> None:
    async with running(bound_agent.submitter.run):
        await settle()
        queue_small_report(bound_agent)
        bound_agent.submitter.wake()
        await until(lambda: is_outbox_empty(bound_agent))

    assert len(sent_bodies(bound_agent)) == 1


async def test_a_backlog_is_sent_slowly_and_oldest_first(bound_agent: AgentParts) -> None:
    for number in range(1, 6):
        bound_agent.clock.advance(1)
        queue_small_report(bound_agent, number)
    began = bound_agent.clock.elapsed_s
    bound_agent.submitter.apply_limits()
    assert bound_agent.condition_codes() == {"reports-waiting"}

    async with running(bound_agent.submitter.run):
        await until(lambda: is_outbox_empty(bound_agent))
        await settle()

    assert [report_of(body).report_id for body in sent_bodies(bound_agent)] == [
        report(number).report_id for number in range(1, 6)
    ]
    assert bound_agent.clock.elapsed_s - began >= 4 * 0.5, "each pause must be at least 0.5 s"
    assert bound_agent.condition_codes() == set()


@pytest.mark.parametrize(
    "error",
    [
        ServiceUnavailable("timeout", "no reply"),
        Throttled("later", 30),
        ServiceUnavailable("server-error", "500"),
    ],
)
async def test_the_same_bytes_are_sent_until_an_outage_ends(
    bound_agent: AgentParts, error: ServiceUnavailable
) -> None:
    item = queue_large_report(bound_agent)
    bound_agent.client.script["submitResult"].extend([error] * 5)

    async with running(bound_agent.submitter.run):
        await until(lambda: is_outbox_empty(bound_agent))

    assert sent_bodies(bound_agent) == [item.body] * 6
    assert bound_agent.entry().state is State.SUBMITTED


async def test_a_reply_about_another_report_is_ignored_and_the_report_sent_again(
    bound_agent: AgentParts,
) -> None:
    item = queue_large_report(bound_agent)
    other = SubmitResultReply(
        report_id=UUID(int=5), request_id=None, outcome="completed", tracker_status="sent"
    )
    bound_agent.client.script["submitResult"].append(other)

    async with running(bound_agent.submitter.run):
        await until(lambda: is_outbox_empty(bound_agent))

    assert sent_bodies(bound_agent) == [item.body] * 2


async def test_a_report_that_is_too_large_is_sent_smaller_until_it_fits(
    bound_agent: AgentParts,
) -> None:
    item = queue_large_report(bound_agent)
    max_bytes = len(item.body) // 3
    reply = SubmitResultReply(
        report_id=REPORT_ID, request_id=UUID(int=1), outcome="failed", tracker_status="sent"
    )
    bound_agent.client.always["submitResult"] = lambda body: (
        BodyTooLarge("too large") if len(body) > max_bytes else reply
    )

    async with running(bound_agent.submitter.run):
        await until(lambda: is_outbox_empty(bound_agent))

    sizes = [len(body) for body in sent_bodies(bound_agent)]
    assert sizes == sorted(set(sizes), reverse=True)
    assert {report_of(body).report_id for body in sent_bodies(bound_agent)} == {REPORT_ID}
    assert bound_agent.entry().state is State.SUBMITTED
    assert bound_agent.entry().outcome == report_of(sent_bodies(bound_agent)[-1]).outcome
    assert bound_agent.quarantined_files() == []


async def test_report_that_is_always_too_large_is_dropped_and_reported(
    bound_agent: AgentParts,
) -> None:
    queue_large_report(bound_agent)
    bound_agent.client.always["submitResult"] = BodyTooLarge("too large")

    async with running(bound_agent.submitter.run):
        await until(lambda: is_outbox_empty(bound_agent))
        await settle()

    assert 2 <= len(sent_bodies(bound_agent)) <= LAST_TIER + 1
    assert (bound_agent.entry().state, bound_agent.entry().detail) == (State.REJECTED, "too large")
    assert bound_agent.condition_codes() == {"reports-dropped"}
    assert bound_agent.database.counters()["reports_dropped"] == 1


async def test_a_rejected_body_is_quarantined_and_a_failed_report_is_sent_instead(
    bound_agent: AgentParts,
) -> None:
    item = queue_large_report(bound_agent)
    bound_agent.client.script["submitResult"].append(
        BodyRejected(400, "endpoints.0.label: too long")
    )

    async with running(bound_agent.submitter.run):
        await until(lambda: is_outbox_empty(bound_agent))

    first, second = sent_bodies(bound_agent)
    assert first == item.body
    failed = json.loads(second)
    assert failed["outcome"] == "failed"
    assert failed["failureReason"] == "collection-failed"
    assert failed["report"] is None
    assert failed["reportId"] == str(REPORT_ID)
    assert bound_agent.quarantined_files() == [f"rejected-{REPORT_ID}.json"]
    (quarantined,) = bound_agent.state.quarantine_path.iterdir()
    assert quarantined.read_bytes() == item.body
    assert (bound_agent.entry().state, bound_agent.entry().outcome) == (State.SUBMITTED, "failed")


async def test_a_failed_report_that_is_also_rejected_is_dropped(bound_agent: AgentParts) -> None:
    queue_large_report(bound_agent)
    bound_agent.client.always["submitResult"] = BodyRejected(422, "no")

    async with running(bound_agent.submitter.run):
        await until(lambda: is_outbox_empty(bound_agent))

    assert len(sent_bodies(bound_agent)) == 2
    assert bound_agent.entry().state is State.REJECTED
    assert bound_agent.condition_codes() == {"reports-dropped"}


@pytest.mark.parametrize("error", [BodyRejected(400, "no"), BodyTooLarge("no")])
async def test_a_rejected_body_that_cannot_be_parsed_is_dropped(
    bound_agent: AgentParts, error: BodyRejected | BodyTooLarge
) -> None:
    sealed = report()
    bound_agent.ledger.hand_over(None, replace(sealed, body=b"garbage"), bound_agent.clock.now())
    bound_agent.client.always["submitResult"] = error

    async with running(bound_agent.submitter.run):
        await until(lambda: is_outbox_empty(bound_agent))

    assert len(sent_bodies(bound_agent)) == 1
    assert bound_agent.condition_codes() == {"reports-dropped"}


async def test_a_refused_report_of_a_valid_binding_is_quarantined(bound_agent: AgentParts) -> None:
    item = queue_large_report(bound_agent)
    bound_agent.client.always["submitResult"] = Refused(409, None, "other bytes")

    async with running(bound_agent.submitter.run, bound_agent.enrollment.run):
        await until(lambda: is_outbox_empty(bound_agent))

    assert bound_agent.quarantined_files() == [f"refused-{REPORT_ID}.json"]
    (quarantined,) = bound_agent.state.quarantine_path.iterdir()
    assert quarantined.read_bytes() == item.body
    assert (bound_agent.entry().state, bound_agent.entry().detail) == (
        State.REJECTED,
        "other bytes",
    )


async def test_a_report_that_is_refused_after_a_revocation_waits(bound_agent: AgentParts) -> None:
    item = queue_large_report(bound_agent)
    bound_agent.client.script["submitResult"].append(Refused(403, None, "revoked"))
    bound_agent.client.script["current"].extend([bound_agent.client.record, None, None])

    async with running(bound_agent.submitter.run, bound_agent.enrollment.run):
        await until(lambda: bound_agent.binding_state.is_revoked)
        assert bound_agent.outbox.depth().reports == 1
        await until(lambda: is_outbox_empty(bound_agent))

    assert sent_bodies(bound_agent) == [item.body] * 2
    assert bound_agent.entry().state is State.SUBMITTED
    assert bound_agent.quarantined_files() == []


async def test_a_report_that_is_refused_while_the_device_is_revoked_waits(
    bound_agent: AgentParts,
) -> None:
    item = queue_large_report(bound_agent)
    has_binding = True

    async def refuse(_body: bytes) -> Refused:
        nonlocal has_binding
        has_binding = False
        bound_agent.session.request_recheck()
        await until(lambda: bound_agent.binding_state.is_revoked)
        await settle()
        return Refused(403, None, "revoked")

    bound_agent.client.always["current"] = lambda _: (
        bound_agent.client.record if has_binding else None
    )
    bound_agent.client.script["submitResult"].append(refuse)

    async with running(bound_agent.submitter.run, bound_agent.enrollment.run):
        await until(lambda: bound_agent.binding_state.is_revoked)
        await settle(200)
        has_binding = True
        await until(lambda: is_outbox_empty(bound_agent))

    assert sent_bodies(bound_agent) == [item.body] * 2
    assert bound_agent.entry().state is State.SUBMITTED
    assert bound_agent.quarantined_files() == []


async def test_start_is_acknowledged_before_the_result_is_sent(bound_agent: AgentParts) -> None:
    entry = bound_agent.add_request(Event.ACCEPTED, Event.STARTED)
    sealed = report(1, entry.request_id)
    bound_agent.ledger.hand_over(entry, sealed, bound_agent.clock.now())
    bound_agent.client.script["acknowledge"].append(Refused(409, None, "too late"))

    async with running(bound_agent.submitter.run, bound_agent.enrollment.run):
        await until(lambda: is_outbox_empty(bound_agent))

    operations = [name for name, _ in bound_agent.client.calls if name != "current"]
    assert operations == ["acknowledge", "submitResult"]
    assert bound_agent.client.requests_of("acknowledge")[0].status == "running"
    assert bound_agent.entry().running_acknowledged


async def test_a_start_counts_as_acknowledged_only_after_the_service_accepted_it(
    bound_agent: AgentParts,
) -> None:
    entry = bound_agent.add_request(Event.ACCEPTED, Event.STARTED)
    sealed = report(1, entry.request_id)
    bound_agent.ledger.hand_over(entry, sealed, bound_agent.clock.now())
    bound_agent.client.always["acknowledge"] = lambda _request: asyncio.Event().wait()

    async with running(bound_agent.submitter.run):
        await until(lambda: bool(bound_agent.client.requests_of("acknowledge")))

    assert not bound_agent.entry().running_acknowledged, (
        "a start without an answer of the service must not count as acknowledged"
    )


async def test_reports_over_the_outbox_bounds_are_dropped_and_reported(tmp_path: Path) -> None:
    limits = Limits(outbox_max_bytes=100_000, outbox_max_age_days=1)
    with agent_parts(tmp_path, limits=limits) as bound_agent:
        queue_large_report(bound_agent)
        bound_agent.clock.advance(timedelta(days=1, seconds=1).total_seconds())
        queue_small_report(bound_agent, 2)

        bound_agent.submitter.wake()

        assert bound_agent.outbox.depth().reports == 1
        assert bound_agent.condition_codes() == {"reports-dropped"}
        assert bound_agent.entry().state is State.REJECTED
        async with running(bound_agent.submitter.run):
            await until(lambda: is_outbox_empty(bound_agent))
        assert len(sent_bodies(bound_agent)) == 1


async def test_a_report_that_the_service_cannot_process_does_not_block_others(
    bound_agent: AgentParts,
) -> None:
    queue_large_report(bound_agent)
    bound_agent.clock.advance(1)
    queue_small_report(bound_agent, 2)
    failing = ServiceUnavailable("server-error", "500")

    def answer(body: bytes) -> object:
        sent_report = report_of(body)
        is_failing = sent_report.report_id == REPORT_ID and len(sent_bodies(bound_agent)) < 12
        return failing if is_failing else accepting_reply(sent_report)

    bound_agent.client.always["submitResult"] = answer

    async def send_heartbeats() -> None:
        """A failing report is postponed only while other calls succeed."""
        while True:
            await bound_agent.heartbeat.send()
            await bound_agent.clock.sleep(0.2)

    async with running(bound_agent.submitter.run, send_heartbeats):
        await until(lambda: is_outbox_empty(bound_agent))

    order = [report_of(body).report_id == REPORT_ID for body in sent_bodies(bound_agent)]
    assert order.index(False) < len(order) - 1, (
        "the second report must be sent before the service accepts the first one"
    )
    assert bound_agent.entry().state is State.SUBMITTED


def accepting_reply(sent_report: SubmitResultRequest) -> SubmitResultReply:
    return SubmitResultReply(
        report_id=sent_report.report_id,
        request_id=sent_report.request_id,
        outcome=sent_report.outcome,
        tracker_status="disabled",
    )
