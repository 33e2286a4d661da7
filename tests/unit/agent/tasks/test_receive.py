"""Tests that the receiver stores each command in the journal once, whether a stream or a poll
delivers it.
"""

from pathlib import Path
from uuid import UUID

import pytest

from agent.adapters.failpoints import Failpoint
from agent.adapters.service_client import CommandStream
from agent.config.model import LocalConfig
from agent.errors import (
    BodyRejected,
    BodyTooLarge,
    CredentialRefused,
    Refused,
    ServiceError,
    ServiceUnavailable,
    Throttled,
)
from agent.rules.command_frames import Frame
from agent.rules.lifecycle import Event, State
from agent.tasks.receive import STREAM_RENEWED_AFTER_S, UNFINISHED_MAX, UNREADABLE_MAX
from agent.tasks.session.device_session import LONG_POLL_S
from agent.wire.device_operations import Command
from tests.fakes.fake_service_client import frames_then_end, frames_then_wait
from tests.unit.agent.samples import BINDING, OTHER_BINDING, command
from tests.unit.agent.tasks.agent_parts import AgentParts, agent_parts, running, settle, until

POLL_INTERVAL_S = LocalConfig().commands.poll_interval_seconds


def frame(*commands: Command, rejected: tuple[str, ...] = ()) -> Frame:
    return Frame(commands, rejected)


def poll_reply(*frames: Frame | Exception) -> CommandStream:
    return CommandStream(is_stream=False, frames=frames_then_end(*frames))


def ending_stream(*frames: Frame | Exception) -> CommandStream:
    return CommandStream(is_stream=True, frames=frames_then_end(*frames))


def open_stream(*frames: Frame) -> CommandStream:
    return CommandStream(is_stream=True, frames=frames_then_wait(*frames))


def received_ids(bound_agent: AgentParts) -> list[int]:
    return [entry.request_id.int for entry in bound_agent.journal.in_state(State.RECEIVED)]


@pytest.mark.parametrize("answer", [poll_reply, ending_stream, open_stream])
async def test_received_commands_are_stored_in_the_journal(
    bound_agent: AgentParts, answer: object
) -> None:
    bound_agent.client.script["onCommands"].append(
        answer(frame(command(1), command(2)), frame(), frame(command(3)))  # type: ignore[operator]
    )

    async with running(bound_agent.receiver.run):
        await until(lambda: bound_agent.receiver.received == 3)

    assert received_ids(bound_agent) == [1, 2, 3]
    assert bound_agent.receiver.ignored == 0
    assert bound_agent.condition_codes() == set()


async def test_a_repeated_command_is_stored_once(bound_agent: AgentParts) -> None:
    for _ in range(3):
        bound_agent.receiver.process(frame(command(1)))

    assert bound_agent.receiver.received == 1
    assert received_ids(bound_agent) == [1]


async def test_a_request_whose_acknowledgement_was_lost_waits_to_be_acknowledged_again(
    bound_agent: AgentParts,
) -> None:
    bound_agent.add_request(Event.ACCEPTED)

    bound_agent.receiver.process(frame(command(1)))

    assert bound_agent.entry().state is State.RECEIVED


STARTED = (Event.ACCEPTED, Event.STARTED)
REPORTED = (*STARTED, Event.REPORT_SEALED)
SUBMITTED = (*REPORTED, Event.REPORT_ACCEPTED)


@pytest.mark.parametrize(
    ("events", "status", "expected"),
    [
        ((), "queued", []),
        ((Event.ACCEPTED,), "received", []),
        (STARTED, "queued", ["running"]),
        (STARTED, "received", ["running"]),
        (STARTED, "running", []),
        (REPORTED, "queued", ["running"]),
        (SUBMITTED, "queued", ["running"]),
        (SUBMITTED, "received", ["running"]),
        (SUBMITTED, "completed", []),
        ((Event.EXPIRED,), "queued", []),
        ((Event.REFUSED,), "queued", []),
    ],
)
async def test_a_known_request_never_runs_again_and_a_lost_acknowledgement_is_repeated(
    bound_agent: AgentParts, events: tuple[Event, ...], status: str, expected: list[str]
) -> None:
    before = bound_agent.add_request(*events)

    if before.state is State.RECEIVED:
        bound_agent.receiver.process(frame(command(1).model_copy(update={"status": status})))
        assert bound_agent.entry() == before
        return
    async with running(bound_agent.acknowledger.run):
        await settle()
        for _ in range(5):
            bound_agent.receiver.process(frame(command(1).model_copy(update={"status": status})))
            await settle()

    assert bound_agent.entry() == before
    assert [sent.status for sent in bound_agent.client.requests_of("acknowledge")] == expected
    assert bound_agent.receiver.received == 0


async def test_a_request_delivered_repeatedly_is_acknowledged_once_a_minute(
    bound_agent: AgentParts,
) -> None:
    bound_agent.add_request(*SUBMITTED)
    async with running(bound_agent.acknowledger.run):
        for _ in range(600):
            bound_agent.receiver.process(frame(command(1)))
            await settle(5)
            bound_agent.clock.advance(1)

    assert len(bound_agent.client.requests_of("acknowledge")) == 10


async def test_a_refused_repeated_acknowledgement_causes_no_recheck(
    bound_agent: AgentParts,
) -> None:
    bound_agent.add_request(*SUBMITTED)
    bound_agent.client.always["acknowledge"] = Refused(409, None, "finished")
    async with running(bound_agent.acknowledger.run, bound_agent.enrollment.run):
        bound_agent.receiver.process(frame(command(1)))
        await until(lambda: len(bound_agent.client.requests_of("acknowledge")) == 1)
        await settle()

    assert len(bound_agent.client.requests_of("current")) == 1, (
        "the only recheck must be the one at the start"
    )
    assert bound_agent.entry().state is State.SUBMITTED


async def test_commands_for_other_bindings_are_counted_and_ignored(bound_agent: AgentParts) -> None:
    bound_agent.receiver.process(frame(command(1, binding_id=OTHER_BINDING), command(2)))

    assert received_ids(bound_agent) == [2]
    assert (bound_agent.receiver.for_others, bound_agent.receiver.ignored) == (1, 1)
    assert bound_agent.condition_codes() == set()


async def test_unreadable_commands_are_counted_and_reported_once(bound_agent: AgentParts) -> None:
    for number in range(100):
        bound_agent.receiver.process(frame(command(2), rejected=(f"kind: unknown {number}",)))

    assert (bound_agent.receiver.unreadable, bound_agent.receiver.ignored) == (100, 100)
    (problem,) = bound_agent.health.problems()
    assert problem.code == "commands-unreadable"
    assert problem.detail == "the first entry: kind: unknown 0"
    assert bound_agent.changes == 1


async def test_an_expired_command_is_counted_and_not_stored(bound_agent: AgentParts) -> None:
    bound_agent.receiver.process(frame(command(1, expires_at=bound_agent.clock.now())))

    assert bound_agent.journal.get(UUID(int=1)) is None
    assert (bound_agent.receiver.expired, bound_agent.receiver.received) == (1, 0)


REFUSALS: list[ServiceError] = [
    ServiceUnavailable("server-error", "503"),
    Throttled("later", 100.0),
    ServiceUnavailable("captive-portal", "a page"),
    Refused(404, None, "no"),
    BodyRejected(405, "no"),
]


@pytest.mark.parametrize("error", REFUSALS, ids=[str(e) for e in REFUSALS])
async def test_a_refused_stream_is_replaced_by_polling_and_tried_again(
    bound_agent: AgentParts, error: ServiceError
) -> None:
    bound_agent.client.always["onCommands"] = lambda stream: error if stream else poll_reply()
    bound_agent.clock.limit_s = 1500
    async with running(bound_agent.receiver.run):
        await bound_agent.clock.is_at_limit.wait()

    requests = bound_agent.client.requests_of("onCommands")
    assert requests[:2] == [True, False], "polling must start at once"
    assert 2 <= requests.count(True) <= 4
    assert requests.count(False) >= 80
    assert bound_agent.receiver.delivery == "poll"
    assert bound_agent.condition_codes() == set()


@pytest.mark.parametrize(
    "error",
    [*REFUSALS, CredentialRefused("401"), ServiceUnavailable("timeout", "no reply")],
    ids=str,
)
async def test_the_delivery_is_unknown_after_calls_for_commands_fail(
    tmp_path: Path, error: ServiceError
) -> None:
    with agent_parts(tmp_path, delivery="stream") as bound_agent:
        bound_agent.client.script["onCommands"].extend([ending_stream(), error])
        bound_agent.client.always["onCommands"] = error
        bound_agent.clock.limit_s = 60
        async with running(bound_agent.receiver.run):
            await bound_agent.clock.is_at_limit.wait()

        assert bound_agent.receiver.delivery is None


async def test_delivery_by_stream_never_polls(tmp_path: Path) -> None:
    with agent_parts(tmp_path, delivery="stream") as bound_agent:
        bound_agent.client.always["onCommands"] = ServiceUnavailable("server-error", "503")
        bound_agent.clock.limit_s = 600
        async with running(bound_agent.receiver.run):
            await bound_agent.clock.is_at_limit.wait()

        assert set(bound_agent.client.requests_of("onCommands")) == {True}
        assert bound_agent.breaker.is_up
        assert bound_agent.condition_codes() == {"server-error"}


async def test_a_stream_of_unreadable_commands_is_closed(bound_agent: AgentParts) -> None:
    def garbage() -> CommandStream:
        return open_stream(*[frame(rejected=("no",) * 17) for _ in range(UNREADABLE_MAX)])

    bound_agent.client.always["onCommands"] = lambda _: garbage()
    async with running(bound_agent.receiver.run):
        await until(lambda: len(bound_agent.client.requests_of("onCommands")) == 7)

    assert bound_agent.receiver.unreadable == 6 * (UNREADABLE_MAX + 1), (
        "exactly three frames of each stream must be read"
    )
    # The shortest waits after rejections: half of 8, 16, 32 and 64 s.
    assert bound_agent.clock.elapsed_s >= 4 + 8 + 16 + 32
    assert bound_agent.condition_codes() == {"commands-unreadable"}


async def test_a_received_command_wakes_the_acknowledger(bound_agent: AgentParts) -> None:
    async with running(bound_agent.acknowledger.run):
        await settle()
        bound_agent.receiver.process(frame(command(1)))
        await until(lambda: bound_agent.entry().state is State.ACKNOWLEDGED)

    assert bound_agent.client.requests_of("acknowledge")[0].binding_id == BINDING


async def test_poll_intervals_differ_by_at_most_a_tenth_from_the_configured_interval(
    bound_agent: AgentParts,
) -> None:
    bound_agent.clock.limit_s = 600
    async with running(bound_agent.receiver.run):
        await bound_agent.clock.is_at_limit.wait()

    assert all(0.9 <= wait / POLL_INTERVAL_S <= 1.1 for wait in bound_agent.clock.slept)
    assert len(set(bound_agent.clock.slept)) > 10, "the intervals must differ from each other"
    assert bound_agent.receiver.delivery == "poll"
    assert bound_agent.client.open_streams == 0


@pytest.mark.parametrize(
    ("delivery", "is_stream"), [("auto", True), ("stream", True), ("poll", False)]
)
async def test_receiver_requests_the_configured_delivery(
    tmp_path: Path, delivery: str, is_stream: bool
) -> None:
    with agent_parts(tmp_path, delivery=delivery) as bound_agent:
        async with running(bound_agent.receiver.run):
            await until(lambda: bool(bound_agent.client.calls))

        assert bound_agent.client.calls[0] == ("onCommands", is_stream)


async def test_streams_that_end_at_once_are_reopened_with_growing_delays(
    bound_agent: AgentParts,
) -> None:
    bound_agent.client.always["onCommands"] = lambda _: ending_stream()
    bound_agent.clock.limit_s = 600
    async with running(bound_agent.receiver.run):
        await bound_agent.clock.is_at_limit.wait()

    waits = bound_agent.clock.slept
    for wait, most in zip(waits, (0.5, 1, 2, 4, 8, 15, 15), strict=False):
        assert most / 2 <= wait <= most
    assert len([True for wait in waits if wait < 7.5]) <= 6
    assert bound_agent.receiver.delivery == "stream"


async def test_a_poll_between_streams_resets_the_delay(bound_agent: AgentParts) -> None:
    answers = [*[ending_stream() for _ in range(5)], poll_reply(), ending_stream(), open_stream()]
    bound_agent.client.script["onCommands"].extend(answers)
    async with running(bound_agent.receiver.run):
        await until(lambda: len(bound_agent.clock.slept) == 7)

    after_fifth_stream_s, _, after_sixth_stream_s = bound_agent.clock.slept[4:]
    assert after_fifth_stream_s >= 4
    assert after_sixth_stream_s <= 0.5


async def test_a_stream_that_was_open_for_an_hour_is_opened_again_at_once(
    bound_agent: AgentParts,
) -> None:
    def wait_an_hour(_: object) -> CommandStream:
        bound_agent.clock.advance(3600)
        return ending_stream()

    bound_agent.client.always["onCommands"] = wait_an_hour
    async with running(bound_agent.receiver.run):
        await until(lambda: len(bound_agent.clock.slept) >= 20)

    assert all(wait <= 0.5 for wait in bound_agent.clock.slept[:20])


async def test_reconnects_of_streams_that_ended_together_are_spread_over_the_requested_time(
    bound_agent: AgentParts,
) -> None:
    def wait_an_hour(_: object) -> CommandStream:
        bound_agent.clock.advance(3600)
        return ending_stream(Frame(reconnect_s=40))

    bound_agent.client.always["onCommands"] = wait_an_hour
    async with running(bound_agent.receiver.run):
        await until(lambda: len(bound_agent.clock.slept) >= 40)

    assert max(bound_agent.clock.slept) > 30
    assert min(bound_agent.clock.slept) < 10
    assert all(wait <= 40 for wait in bound_agent.clock.slept)


async def test_a_stream_that_the_agent_renews_is_opened_again_at_once(
    bound_agent: AgentParts,
) -> None:
    bound_agent.breaker.set_reconnect_time(60)
    bound_agent.client.always["onCommands"] = lambda _: open_stream()
    async with running(bound_agent.receiver.run):
        await until(lambda: len(bound_agent.client.calls) >= 5)

    assert bound_agent.clock.elapsed_s <= 4 * (STREAM_RENEWED_AFTER_S * 1.2 + 0.5)
    assert [wait for wait in bound_agent.clock.slept if 0.5 < wait < STREAM_RENEWED_AFTER_S] == []


async def test_commands_received_before_a_stream_breaks_are_kept(bound_agent: AgentParts) -> None:
    broken = ending_stream(frame(command(1)), ServiceUnavailable("connection-lost", "cut"))
    bound_agent.client.script["onCommands"].extend([broken, ending_stream(frame(command(2)))])

    async with running(bound_agent.receiver.run):
        await until(lambda: bound_agent.receiver.received == 2)

    assert received_ids(bound_agent) == [1, 2]
    assert bound_agent.breaker.is_up


async def test_no_long_poll_is_sent_during_an_outage(bound_agent: AgentParts) -> None:
    """During an outage, one call at a time tests whether the service replies, and the other calls
    wait for its result. Such a test call must not be a long poll.
    """
    bound_agent.client.script["onCommands"].extend(
        [poll_reply(), ServiceUnavailable("timeout", "no reply"), poll_reply()]
    )

    async with running(bound_agent.receiver.run):
        await until(lambda: len(bound_agent.client.answer_timeouts_s) >= 4)

    assert bound_agent.client.answer_timeouts_s[:4] == [LONG_POLL_S, LONG_POLL_S, None, LONG_POLL_S]


async def test_commands_are_received_after_an_outage(bound_agent: AgentParts) -> None:
    bound_agent.client.script["onCommands"].extend(
        [ServiceUnavailable("timeout", "no reply")] * 4 + [poll_reply(frame(command(1)))]
    )

    async with running(bound_agent.receiver.run):
        await until(lambda: bound_agent.receiver.received == 1)

    assert bound_agent.condition_codes() == set()


@pytest.mark.parametrize(
    "error", [Refused(403, None, "no"), BodyRejected(400, "no"), BodyTooLarge("no")]
)
async def test_polling_slows_down_after_refusals(
    bound_agent: AgentParts, error: ServiceError
) -> None:
    bound_agent.client.always["onCommands"] = error
    bound_agent.clock.limit_s = 600
    async with running(bound_agent.receiver.run, bound_agent.enrollment.run):
        await bound_agent.clock.is_at_limit.wait()

    assert len(bound_agent.client.calls) <= 30 * 10  # 30 calls a minute
    assert len(bound_agent.client.requests_of("onCommands")) <= 15, "the intervals must grow"
    if isinstance(error, Refused):
        assert len(bound_agent.client.requests_of("current")) > 5, (
            "each refusal must request a recheck"
        )


async def test_commands_are_not_received_without_a_binding(unbound_agent: AgentParts) -> None:
    async with running(unbound_agent.receiver.run):
        await settle()

    assert unbound_agent.client.calls == []


async def test_the_stream_of_a_lost_binding_is_closed(bound_agent: AgentParts) -> None:
    bound_agent.client.always["onCommands"] = lambda _: open_stream()
    async with running(bound_agent.receiver.run):
        await until(lambda: bound_agent.client.open_streams == 1)
        bound_agent.clock.limit_s = bound_agent.clock.elapsed_s + 60
        bound_agent.binding_state.revoke()
        await until(lambda: bound_agent.client.open_streams == 0)
        await settle()
        assert len(bound_agent.client.calls) == 1, "a revoked device must not open a stream"
        bound_agent.binding_state.confirm()
        await until(lambda: bound_agent.client.open_streams == 1)

    assert len(bound_agent.client.calls) == 2
    assert bound_agent.client.open_streams == 0


async def test_an_unexpected_error_of_a_stream_is_raised(bound_agent: AgentParts) -> None:
    bound_agent.client.always["onCommands"] = lambda _: ending_stream(KeyError("a bug"))

    with pytest.raises(KeyError):
        await bound_agent.receiver.run()

    assert bound_agent.client.open_streams == 0


async def test_an_old_stream_is_renewed(bound_agent: AgentParts) -> None:
    bound_agent.client.always["onCommands"] = lambda _: open_stream()
    async with running(bound_agent.receiver.run):
        await until(lambda: len(bound_agent.client.calls) >= 3)

    assert bound_agent.clock.elapsed_s >= 2 * STREAM_RENEWED_AFTER_S
    assert bound_agent.client.open_streams == 0


async def test_reconnect_replaces_the_stream_at_once(bound_agent: AgentParts) -> None:
    bound_agent.client.always["onCommands"] = lambda _: open_stream()
    async with running(bound_agent.receiver.run):
        await until(lambda: bound_agent.client.open_streams == 1)
        bound_agent.clock.limit_s = bound_agent.clock.elapsed_s + 60
        bound_agent.receiver.reconnect()
        await until(lambda: len(bound_agent.client.calls) == 2)


async def test_repeatedly_broken_streams_set_a_condition(bound_agent: AgentParts) -> None:
    cut = ServiceUnavailable("connection-lost", "cut")
    bound_agent.client.script["onCommands"].extend([ending_stream(cut) for _ in range(10)])

    async with running(bound_agent.receiver.run):
        await until(lambda: "stream-broken" in bound_agent.condition_codes())
        await until(lambda: "stream-broken" not in bound_agent.condition_codes())


async def test_rejections_set_a_condition_until_a_call_succeeds(bound_agent: AgentParts) -> None:
    bound_agent.client.script["onCommands"].extend([BodyRejected(400, "no")] * 3)

    async with running(bound_agent.receiver.run):
        await until(lambda: "commands-rejected" in bound_agent.condition_codes())
        await until(lambda: "commands-rejected" not in bound_agent.condition_codes())


async def test_requests_beyond_the_maximum_are_ignored_and_set_a_condition(
    bound_agent: AgentParts,
) -> None:
    with bound_agent.database.transaction(Failpoint.REQUEST_ADDED) as connection:
        connection.executemany(
            "INSERT INTO requests (request_id, binding_id, kind, expires_at, state, received_at,"
            " updated_at) VALUES (?, ?, 'network', ?, 'received', ?, ?)",
            [
                (str(UUID(int=n)), str(BINDING), *[bound_agent.clock.now().isoformat()] * 3)
                for n in range(UNFINISHED_MAX)
            ],
        )

    bound_agent.receiver.process(frame(command(999_999), command(1)))

    assert bound_agent.journal.get(UUID(int=999_999)) is None
    assert bound_agent.condition_codes() == {"requests-flooding"}
    bound_agent.journal.move(bound_agent.entry(1), Event.REFUSED, bound_agent.clock.now())
    bound_agent.receiver.process(frame(command(999_999)))
    assert bound_agent.journal.get(UUID(int=999_999)) is not None
    assert bound_agent.condition_codes() == set()
