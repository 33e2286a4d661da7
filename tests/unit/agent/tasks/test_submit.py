"""Tests that a report is sent until the service accepts it or rejects it."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from agent.adapters.storage.outbox import Item
from agent.config.model import Limits
from agent.errors import BodyRejected, BodyTooLarge, Refused, ServiceUnavailable, Throttled
from agent.rules.lifecycle import Event, State
from agent.rules.reports.sealing import LAST_TIER, report_of, seal
from agent.wire.device_operations import SubmitResultReply, SubmitResultRequest
from tests.fixtures import payloads
from tests.unit.agent.samples import BINDING, report
from tests.unit.agent.tasks.harness import Harness, harness, running, settle, until

REPORT_ID = UUID(payloads.REPORT_ID)


def queue_large(home: Harness) -> Item:
    """Queue a large network report for request 1."""
    entry = home.requested(Event.ACCEPTED, Event.STARTED)
    request = SubmitResultRequest(
        report_id=REPORT_ID,
        binding_id=BINDING,
        kind="network",
        outcome="completed",
        report=payloads.small_venue(),
        request_id=entry.request_id,
    )
    home.ledger.hand_over(entry, seal(request, 10**6), home.clock.now())
    home.journal.note_running_acknowledged(entry.request_id)
    item = home.outbox.oldest()
    assert item is not None
    return item


def queue_small(home: Harness, number: int = 1) -> None:
    sealed = report(number)
    home.ledger.hand_over(None, sealed, home.clock.now())


def sent_bodies(home: Harness) -> list[bytes]:
    return home.client.named("submitResult")


def is_empty(home: Harness) -> bool:
    return home.outbox.depth().reports == 0


async def test_a_report_is_sent_as_it_was_sealed(home: Harness) -> None:
    item = queue_large(home)

    async with running(home.submitter.run):
        await until(lambda: home.entry().state is State.SUBMITTED)

    assert sent_bodies(home) == [item.body]
    assert is_empty(home)


async def test_a_report_queued_later_is_sent_after_a_wake(home: Harness) -> None:
    async with running(home.submitter.run):
        await settle()
        queue_small(home)
        home.submitter.wake()
        await until(lambda: is_empty(home))

    assert len(sent_bodies(home)) == 1


async def test_a_backlog_is_sent_slowly_and_oldest_first(home: Harness) -> None:
    for number in range(1, 6):
        home.clock.advance(1)
        queue_small(home, number)
    began = home.clock.elapsed_s
    home.submitter.apply_limits()
    assert home.codes() == {"reports-waiting"}

    async with running(home.submitter.run):
        await until(lambda: is_empty(home))
        await settle()

    assert [report_of(body).report_id.int & 0xFF for body in sent_bodies(home)] == [1, 2, 3, 4, 5]
    assert home.clock.elapsed_s - began >= 4 * 0.5
    assert home.codes() == set()


@pytest.mark.parametrize(
    "error",
    [
        ServiceUnavailable("timeout", "silence"),
        Throttled("later", 30),
        ServiceUnavailable("server-error", "500"),
    ],
)
async def test_the_same_bytes_are_sent_until_an_outage_ends(
    home: Harness, error: ServiceUnavailable
) -> None:
    item = queue_large(home)
    home.client.script["submitResult"].extend([error] * 5)

    async with running(home.submitter.run):
        await until(lambda: is_empty(home))

    assert sent_bodies(home) == [item.body] * 6
    assert home.entry().state is State.SUBMITTED


async def test_a_reply_about_another_report_is_ignored_and_the_report_sent_again(
    home: Harness,
) -> None:
    item = queue_large(home)
    other = SubmitResultReply(
        report_id=UUID(int=5), request_id=None, outcome="completed", tracker_status="sent"
    )
    home.client.script["submitResult"].append(other)

    async with running(home.submitter.run):
        await until(lambda: is_empty(home))

    assert sent_bodies(home) == [item.body] * 2


async def test_a_report_that_is_too_large_is_sent_smaller_until_it_fits(home: Harness) -> None:
    item = queue_large(home)
    max_bytes = len(item.body) // 3
    reply = SubmitResultReply(
        report_id=REPORT_ID, request_id=UUID(int=1), outcome="failed", tracker_status="sent"
    )
    home.client.always["submitResult"] = lambda body: (
        BodyTooLarge("too large") if len(body) > max_bytes else reply
    )

    async with running(home.submitter.run):
        await until(lambda: is_empty(home))

    sizes = [len(body) for body in sent_bodies(home)]
    assert sizes == sorted(set(sizes), reverse=True)
    assert {report_of(body).report_id for body in sent_bodies(home)} == {REPORT_ID}
    assert home.entry().state is State.SUBMITTED
    assert home.entry().outcome == report_of(sent_bodies(home)[-1]).outcome
    assert home.quarantined_files() == []


async def test_report_that_is_always_too_large_is_dropped_and_reported(home: Harness) -> None:
    queue_large(home)
    home.client.always["submitResult"] = BodyTooLarge("too large")

    async with running(home.submitter.run):
        await until(lambda: is_empty(home))
        await settle()

    assert 2 <= len(sent_bodies(home)) <= LAST_TIER + 1
    assert (home.entry().state, home.entry().detail) == (State.REJECTED, "too large")
    assert home.codes() == {"reports-dropped"}
    assert home.database.counters()["reports_dropped"] == 1


async def test_a_rejected_body_is_quarantined_and_a_failed_report_is_sent_instead(
    home: Harness,
) -> None:
    item = queue_large(home)
    home.client.script["submitResult"].append(BodyRejected(400, "endpoints.0.label: too long"))

    async with running(home.submitter.run):
        await until(lambda: is_empty(home))

    first, second = sent_bodies(home)
    assert first == item.body
    failed = json.loads(second)
    assert failed["outcome"] == "failed"
    assert failed["failureReason"] == "collection-failed"
    assert failed["report"] is None
    assert failed["reportId"] == str(REPORT_ID)
    assert home.quarantined_files() == [f"rejected-{REPORT_ID}.json"]
    (quarantined,) = home.state.quarantine_path.iterdir()
    assert quarantined.read_bytes() == item.body
    assert (home.entry().state, home.entry().outcome) == (State.SUBMITTED, "failed")


async def test_a_failed_report_that_is_also_rejected_is_dropped(home: Harness) -> None:
    queue_large(home)
    home.client.always["submitResult"] = BodyRejected(422, "no")

    async with running(home.submitter.run):
        await until(lambda: is_empty(home))

    assert len(sent_bodies(home)) == 2
    assert home.entry().state is State.REJECTED
    assert home.codes() == {"reports-dropped"}


@pytest.mark.parametrize("error", [BodyRejected(400, "no"), BodyTooLarge("no")])
async def test_a_rejected_body_that_cannot_be_parsed_is_dropped(
    home: Harness, error: BodyRejected | BodyTooLarge
) -> None:
    sealed = report()
    home.ledger.hand_over(None, replace(sealed, body=b"garbage"), home.clock.now())
    home.client.always["submitResult"] = error

    async with running(home.submitter.run):
        await until(lambda: is_empty(home))

    assert len(sent_bodies(home)) == 1
    assert home.codes() == {"reports-dropped"}


async def test_a_refused_report_of_a_valid_binding_is_quarantined(home: Harness) -> None:
    item = queue_large(home)
    home.client.always["submitResult"] = Refused(409, None, "other bytes")

    async with running(home.submitter.run, home.enrollment.run):
        await until(lambda: is_empty(home))

    assert home.quarantined_files() == [f"refused-{REPORT_ID}.json"]
    (quarantined,) = home.state.quarantine_path.iterdir()
    assert quarantined.read_bytes() == item.body
    assert (home.entry().state, home.entry().detail) == (State.REJECTED, "other bytes")


async def test_a_report_that_is_refused_after_a_revocation_waits(home: Harness) -> None:
    item = queue_large(home)
    home.client.script["submitResult"].append(Refused(403, None, "revoked"))
    home.client.script["current"].extend([home.client.record, None, None])

    async with running(home.submitter.run, home.enrollment.run):
        await until(lambda: home.binding_state.is_revoked)
        assert home.outbox.depth().reports == 1
        await until(lambda: is_empty(home))

    assert sent_bodies(home) == [item.body] * 2
    assert home.entry().state is State.SUBMITTED
    assert home.quarantined_files() == []


async def test_a_report_that_is_refused_while_the_device_is_revoked_waits(home: Harness) -> None:
    item = queue_large(home)
    has_binding = True

    async def refuse(_body: bytes) -> Refused:
        nonlocal has_binding
        has_binding = False
        home.session.request_recheck()
        await until(lambda: home.binding_state.is_revoked)
        await settle()
        return Refused(403, None, "revoked")

    home.client.always["current"] = lambda _: home.client.record if has_binding else None
    home.client.script["submitResult"].append(refuse)

    async with running(home.submitter.run, home.enrollment.run):
        await until(lambda: home.binding_state.is_revoked)
        await settle(200)
        has_binding = True
        await until(lambda: is_empty(home))

    assert sent_bodies(home) == [item.body] * 2
    assert home.entry().state is State.SUBMITTED
    assert home.quarantined_files() == []


async def test_start_is_acknowledged_before_the_result_is_sent(home: Harness) -> None:
    entry = home.requested(Event.ACCEPTED, Event.STARTED)
    sealed = report(1, entry.request_id)
    home.ledger.hand_over(entry, sealed, home.clock.now())
    home.client.script["acknowledge"].append(Refused(409, None, "too late"))

    async with running(home.submitter.run, home.enrollment.run):
        await until(lambda: is_empty(home))

    operations = [name for name, _ in home.client.calls if name != "current"]
    assert operations == ["acknowledge", "submitResult"]
    assert home.client.named("acknowledge")[0].status == "running"
    assert home.entry().running_acknowledged


async def test_a_start_counts_as_acknowledged_only_after_the_service_accepted_it(
    home: Harness,
) -> None:
    entry = home.requested(Event.ACCEPTED, Event.STARTED)
    sealed = report(1, entry.request_id)
    home.ledger.hand_over(entry, sealed, home.clock.now())
    home.client.always["acknowledge"] = lambda _request: asyncio.Event().wait()

    async with running(home.submitter.run):
        await until(lambda: bool(home.client.named("acknowledge")))

    assert not home.entry().running_acknowledged, (
        "a start without an answer of the service must not count as acknowledged"
    )


async def test_reports_over_the_outbox_bounds_are_dropped_and_reported(tmp_path: Path) -> None:
    limits = Limits(outbox_max_bytes=100_000, outbox_max_age_days=1)
    with harness(tmp_path, limits=limits) as home:
        queue_large(home)
        home.clock.advance(timedelta(days=1, seconds=1).total_seconds())
        queue_small(home, 2)

        home.submitter.wake()

        assert home.outbox.depth().reports == 1
        assert home.codes() == {"reports-dropped"}
        assert home.entry().state is State.REJECTED
        async with running(home.submitter.run):
            await until(lambda: is_empty(home))
        assert len(sent_bodies(home)) == 1


async def test_a_report_that_the_service_cannot_process_does_not_block_others(
    home: Harness,
) -> None:
    queue_large(home)
    home.clock.advance(1)
    queue_small(home, 2)
    failing = ServiceUnavailable("server-error", "500")

    def answer(body: bytes) -> object:
        sent_report = report_of(body)
        is_failing = sent_report.report_id == REPORT_ID and len(sent_bodies(home)) < 12
        return failing if is_failing else accepting_reply(sent_report)

    home.client.always["submitResult"] = answer

    async def send_heartbeat() -> None:
        while True:
            await home.heartbeat.send()
            await home.clock.sleep(0.2)

    async with running(home.submitter.run, send_heartbeat):
        await until(lambda: is_empty(home))

    order = [report_of(body).report_id == REPORT_ID for body in sent_bodies(home)]
    assert order.index(False) < len(order) - 1, (
        "the second report must be sent before the service accepts the first one"
    )
    assert home.entry().state is State.SUBMITTED


def accepting_reply(sent_report: SubmitResultRequest) -> SubmitResultReply:
    return SubmitResultReply(
        report_id=sent_report.report_id,
        request_id=sent_report.request_id,
        outcome=sent_report.outcome,
        tracker_status="disabled",
    )
