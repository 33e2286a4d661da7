"""Tests that the circuit breaker limits how often the agent calls a failing service, for all
operations together.
"""

import asyncio
import itertools

import pytest

from agent.errors import (
    ApiKeyUnreadable,
    BodyRejected,
    BodyTooLarge,
    CredentialRefused,
    Refused,
    ServiceError,
    ServiceUnavailable,
    Throttled,
)
from agent.tasks.session.circuit_breaker import KEY_CHECK_S, Operation
from tests.unit.agent.tasks.agent_parts import AgentParts, settle, until

DOWN = ServiceUnavailable("connection-refused", "nobody listens")
TIMEOUT = ServiceUnavailable("timeout", "no reply")
BUSY = Throttled("later", 30.0)
UNKNOWN_KEY = CredentialRefused("unknown key")


class Service:
    """A fake service. Its first calls raise ``errors`` one after the other; later calls succeed."""

    def __init__(self, bound_agent: AgentParts, *errors: ServiceError) -> None:
        self.bound_agent = bound_agent
        self.errors = list(errors)
        self.called_at: list[float] = []

    async def answer(self) -> str:
        self.called_at.append(self.bound_agent.clock.elapsed_s)
        await asyncio.sleep(0)
        if self.errors:
            raise self.errors.pop(0)
        return "answer"

    def waits(self) -> list[float]:
        """Return the time between each call and the next, in seconds."""
        return [later - sooner for sooner, later in itertools.pairwise(self.called_at)]


async def test_a_successful_call_returns_its_answer(bound_agent: AgentParts) -> None:
    service = Service(bound_agent)

    assert await bound_agent.breaker.call("heartbeat", service.answer) == "answer"
    assert bound_agent.breaker.is_up
    assert bound_agent.clock.slept == []


@pytest.mark.parametrize(
    "error", [Refused(403, None, "no"), BodyRejected(400, "no"), BodyTooLarge("no")]
)
async def test_a_refusal_shows_that_the_service_is_reachable(
    bound_agent: AgentParts, error: ServiceError
) -> None:
    with pytest.raises(type(error)):
        await bound_agent.breaker.call("heartbeat", Service(bound_agent, error).answer)

    assert bound_agent.breaker.is_up
    assert bound_agent.clock.slept == []


async def test_an_unreadable_key_does_not_show_that_the_service_is_reachable(
    bound_agent: AgentParts,
) -> None:
    for error in (DOWN, ApiKeyUnreadable("the API key cannot be read")):
        with pytest.raises(type(error)):
            await bound_agent.breaker.call_once("heartbeat", Service(bound_agent, error).answer)
        assert not bound_agent.breaker.is_up
    assert "connection-refused" in bound_agent.condition_codes()


async def test_waits_grow_until_the_service_answers(bound_agent: AgentParts) -> None:
    service = Service(bound_agent, *[DOWN] * 9)

    assert await bound_agent.breaker.call("heartbeat", service.answer) == "answer"

    bounds = [1, 2, 4, 8, 16, 24, 24, 24, 24]
    assert len(service.waits()) == len(bounds)
    for wait, most in zip(service.waits(), bounds, strict=True):
        assert most / 2 <= wait <= most
    assert bound_agent.breaker.is_up


async def test_condition_is_set_while_calls_fail(bound_agent: AgentParts) -> None:
    codes_at_calls: list[set[str]] = []

    class Watched(Service):
        async def answer(self) -> str:
            codes_at_calls.append(bound_agent.condition_codes())
            return await super().answer()

    await bound_agent.breaker.call(
        "heartbeat", Watched(bound_agent, DOWN, TIMEOUT, BUSY, UNKNOWN_KEY).answer
    )

    assert codes_at_calls == [
        set(), {"connection-refused"}, {"timeout"}, {"throttled"}, {"credential-refused"},
    ]  # fmt: skip
    assert bound_agent.condition_codes() == set()


@pytest.mark.parametrize("error", [DOWN, UNKNOWN_KEY, Throttled("later", None)])
async def test_one_caller_retries_for_all_callers(
    bound_agent: AgentParts, error: ServiceError
) -> None:
    service = Service(bound_agent, *[error] * (10 + 6))

    answers = await asyncio.gather(
        *(bound_agent.breaker.call("heartbeat", service.answer) for _ in range(10))
    )

    assert answers == ["answer"] * 10
    # The ten concurrent calls fail together. Then one caller repeats its call: six times without
    # success, and then with success.
    first_calls, repeated, last_calls = (
        service.called_at[:10], service.called_at[10:17], service.called_at[17:],
    )  # fmt: skip
    assert first_calls == [0.0] * 10
    assert all(wait >= 0.5 for wait in service.waits()[9:16]), "callers must not retry on their own"
    assert last_calls == [repeated[-1]] * 9, "the other callers must continue at once"


class Probe:
    """A fake operation. Its first call fails, and its second call blocks until it is released."""

    def __init__(self) -> None:
        self.is_first = True
        self.is_blocked = asyncio.Event()
        self.may_continue = asyncio.Event()

    async def answer(self) -> str:
        if self.is_first:
            self.is_first = False
            raise DOWN
        self.is_blocked.set()
        await self.may_continue.wait()
        return "answer"


async def test_callers_continue_together_when_the_probe_that_they_waited_for_succeeds(
    bound_agent: AgentParts,
) -> None:
    probe, slow_may_finish = Probe(), asyncio.Event()

    async def slow() -> str:
        await slow_may_finish.wait()
        return "slow"

    probing = asyncio.create_task(bound_agent.breaker.call("heartbeat", probe.answer))
    await asyncio.wait_for(probe.is_blocked.wait(), 60)
    first = asyncio.create_task(bound_agent.breaker.call("heartbeat", slow))
    second = asyncio.create_task(bound_agent.breaker.call("heartbeat", Service(bound_agent).answer))
    await settle()
    assert not second.done()
    probe.may_continue.set()

    assert await asyncio.wait_for(second, 60) == "answer"
    slow_may_finish.set()
    assert await first == "slow"
    await probing


async def test_calls_that_fail_together_count_once(bound_agent: AgentParts) -> None:
    service = Service(bound_agent, *[DOWN] * 3)

    await asyncio.gather(*(bound_agent.breaker.call("heartbeat", service.answer) for _ in range(3)))

    assert [at for at in service.called_at if at == 0] == [0, 0, 0]
    assert sum(bound_agent.clock.slept) <= 1.0, "after one failure the wait is at most a second"


async def test_retry_after_of_the_service_determines_the_wait(bound_agent: AgentParts) -> None:
    service = Service(bound_agent, BUSY, Throttled("much later", 100_000))

    await bound_agent.breaker.call("heartbeat", service.answer)

    first, second = service.waits()
    assert 30 <= first <= 33
    assert 3600 <= second <= 3960


async def test_refused_key_is_retried_with_growing_delays(bound_agent: AgentParts) -> None:
    service = Service(bound_agent, *[UNKNOWN_KEY] * 12)

    await bound_agent.breaker.call("heartbeat", service.answer)

    bounds = [10, 20, 40, 80, 160, 320, 640, 900, 900, 900, 900, 900]
    for wait, most in zip(service.waits(), bounds, strict=True):
        assert most / 2 <= wait <= most


async def test_a_changed_key_is_tried_at_once(bound_agent: AgentParts) -> None:
    service = Service(bound_agent, *[UNKNOWN_KEY] * 12)
    calling = asyncio.create_task(bound_agent.breaker.call("heartbeat", service.answer))
    await until(lambda: len(service.errors) == 2)
    service.errors.clear()
    changed_at = bound_agent.clock.elapsed_s
    bound_agent.key_file.write_text("key-2")

    assert await calling == "answer"
    assert service.called_at[-1] - changed_at <= KEY_CHECK_S


@pytest.mark.parametrize("content", [None, b"", b"\xff"])
async def test_a_call_is_repeated_soon_after_a_missing_or_unreadable_key_is_replaced(
    bound_agent: AgentParts, content: bytes | None
) -> None:
    if content is None:
        bound_agent.key_file.unlink()
    else:
        bound_agent.key_file.write_bytes(content)
    service = Service(bound_agent, *[UNKNOWN_KEY] * 12)
    calling = asyncio.create_task(bound_agent.breaker.call("heartbeat", service.answer))
    await until(lambda: len(service.errors) == 4)
    service.errors.clear()
    bound_agent.key_file.write_text("key-2")
    replaced_at = bound_agent.clock.elapsed_s

    await calling

    assert service.called_at[-1] - replaced_at <= KEY_CHECK_S


async def test_a_refused_key_after_an_outage_resets_the_retry_delay(
    bound_agent: AgentParts,
) -> None:
    service = Service(bound_agent, *[DOWN] * 20, UNKNOWN_KEY, DOWN)

    await bound_agent.breaker.call("heartbeat", service.answer)

    *_, after_refused_key, after_second_outage = service.waits()
    assert after_refused_key <= 10
    assert after_second_outage <= 1


STATES = {
    "down": DOWN,
    "timeout": TIMEOUT,
    "captive-portal": ServiceUnavailable("captive-portal", "a page"),
    "refused-key": UNKNOWN_KEY,
    "throttled": Throttled("later", None),
    "throttled-for-zero-seconds": Throttled("now", 0.0),
}


@pytest.mark.parametrize("error", STATES.values(), ids=STATES)
@pytest.mark.parametrize("callers", [1, 6])
async def test_no_state_of_the_service_causes_more_than_30_calls_a_minute(
    bound_agent: AgentParts, error: ServiceError, callers: int
) -> None:
    bound_agent.clock.limit_s = 600
    service = Service(bound_agent, *[error] * 5000)
    calling = [
        asyncio.create_task(bound_agent.breaker.call("heartbeat", service.answer))
        for _ in range(callers)
    ]

    await bound_agent.clock.is_at_limit.wait()
    for call in calling:
        call.cancel()
    await asyncio.gather(*calling, return_exceptions=True)

    calls_under_way = callers - 1  # the other calls that began before the first failure
    for minute in range(10):
        calls = [at for at in service.called_at if minute * 60 <= at < minute * 60 + 60]
        assert len(calls) <= 31 + (calls_under_way if minute == 0 else 0)
    assert len([at for at in service.called_at if at <= 180]) <= 91 + calls_under_way


async def test_calls_are_bounded_while_two_errors_alternate(bound_agent: AgentParts) -> None:
    bound_agent.clock.limit_s = 600
    service = Service(bound_agent, *[DOWN, UNKNOWN_KEY] * 2500)
    calling = asyncio.create_task(bound_agent.breaker.call("heartbeat", service.answer))

    await bound_agent.clock.is_at_limit.wait()
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)

    for minute in range(10):
        assert len([t for t in service.called_at if minute * 60 <= t < minute * 60 + 60]) <= 30


async def test_a_cancelled_probe_is_taken_over_by_the_next_caller(bound_agent: AgentParts) -> None:
    probe = Probe()
    probing = asyncio.create_task(bound_agent.breaker.call("heartbeat", probe.answer))
    await asyncio.wait_for(probe.is_blocked.wait(), 60)
    waiting = asyncio.create_task(
        bound_agent.breaker.call("heartbeat", Service(bound_agent).answer)
    )
    await settle()
    assert not waiting.done()

    probing.cancel()

    assert await asyncio.wait_for(waiting, 60) == "answer"
    with pytest.raises(asyncio.CancelledError):
        await probing


async def test_an_unexpected_error_is_raised(bound_agent: AgentParts) -> None:
    async def broken() -> str:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        await bound_agent.breaker.call("heartbeat", broken)


async def test_a_wait_for_another_key_ends_when_the_key_changes(bound_agent: AgentParts) -> None:
    began = bound_agent.clock.elapsed_s
    await bound_agent.breaker.wait_for_another_key(100)
    assert bound_agent.clock.elapsed_s - began == 100

    waiting = asyncio.create_task(bound_agent.breaker.wait_for_another_key(10_000))
    await asyncio.sleep(0)
    bound_agent.key_file.write_text("key-2")
    await waiting

    assert bound_agent.clock.elapsed_s - began <= 100 + 2 * KEY_CHECK_S


async def test_one_failing_operation_does_not_delay_others_and_sets_no_condition(
    bound_agent: AgentParts,
) -> None:
    """While one operation fails, the other operations succeed and need not wait."""
    failing, working = Service(bound_agent, *[DOWN] * 5), Service(bound_agent)
    others = asyncio.create_task(_call_repeatedly(bound_agent, working))

    assert await bound_agent.breaker.call("heartbeat", failing.answer) == "answer"

    others.cancel()
    assert sum(failing.waits()) >= 0.5 + 1 + 2
    assert len(working.called_at) > 5
    assert bound_agent.condition_codes() == set()


async def _call_repeatedly(bound_agent: AgentParts, service: Service) -> None:
    while True:
        await bound_agent.breaker.call("current", service.answer)
        await bound_agent.clock.sleep(0.1)


async def test_a_single_failing_call_raises_after_its_maximum_of_attempts(
    bound_agent: AgentParts,
) -> None:
    failing = Service(bound_agent, *[DOWN] * 99)
    others = asyncio.create_task(_call_repeatedly(bound_agent, Service(bound_agent)))

    with pytest.raises(ServiceUnavailable):
        await bound_agent.breaker.call("heartbeat", failing.answer, alone_max=4)

    others.cancel()
    assert "partly-failing" not in bound_agent.condition_codes(), (
        "the condition must end with the last call"
    )


async def test_retry_now_ends_the_wait(bound_agent: AgentParts) -> None:
    bound_agent.clock.limit_s = 100
    service = Service(bound_agent, *[DOWN] * 20)
    calling = asyncio.create_task(bound_agent.breaker.call("heartbeat", service.answer))
    await bound_agent.clock.is_at_limit.wait()
    calls_before = len(service.called_at)

    bound_agent.breaker.retry_now()
    await until(lambda: len(service.called_at) > calls_before)

    assert service.called_at[-1] <= 100
    calling.cancel()


async def test_retry_now_keeps_a_wait_that_the_service_requested(bound_agent: AgentParts) -> None:
    bound_agent.clock.limit_s = 100
    service = Service(bound_agent, *[Throttled("later", 3600)] * 3)
    calling = asyncio.create_task(bound_agent.breaker.call("heartbeat", service.answer))
    await bound_agent.clock.is_at_limit.wait()

    bound_agent.breaker.retry_now()
    await settle()

    assert len(service.called_at) == 1
    calling.cancel()


ERROR_REPLIES = [
    ServiceUnavailable("server-error", "503"),
    ServiceUnavailable("captive-portal", "a page"),
    ServiceUnavailable("bad-reply", "nonsense"),
    Throttled("later", 3600.0),
    UNKNOWN_KEY,
]


@pytest.mark.parametrize("error", ERROR_REPLIES, ids=lambda e: type(e).__name__)
async def test_an_error_reply_to_one_operation_does_not_delay_other_operations(
    bound_agent: AgentParts, error: ServiceError
) -> None:
    failing, working = Service(bound_agent, *[error] * 99), Service(bound_agent)
    calling = asyncio.create_task(bound_agent.breaker.call("submitResult", failing.answer))
    await until(lambda: len(failing.called_at) == 1)
    await settle(5)
    began = bound_agent.clock.elapsed_s

    for _ in range(20):
        await bound_agent.breaker.call("heartbeat", working.answer)

    assert bound_agent.clock.elapsed_s == began, "calls of other operations must not be delayed"
    assert bound_agent.breaker.is_up
    assert len(bound_agent.condition_codes()) == 1
    await until(lambda: len(failing.called_at) == 4)
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)
    assert bound_agent.condition_codes() == set(), "the condition must end with the last call"


async def test_a_timeout_delays_other_operations_once(bound_agent: AgentParts) -> None:
    """After a time-out, the whole service might be down, so all operations wait. One successful
    call of a different operation shows that the service is up.
    """
    failing, working = (
        Service(bound_agent, *[TIMEOUT] * 99),
        Service(bound_agent),
    )
    calling = asyncio.create_task(bound_agent.breaker.call("onCommands", failing.answer))
    others = asyncio.create_task(_call_repeatedly(bound_agent, working))

    await until(lambda: len(failing.called_at) >= 8)

    for task in (calling, others):
        task.cancel()
    # The first delay is at most 1 s, and the calls of the other operation have a pause of 0.1 s.
    assert max(working.waits()) <= 1.2
    bounds = [1, 2, 4, 8, 16]
    assert all(w >= b / 2 for w, b in zip(failing.waits()[1:], bounds, strict=False))


async def test_only_one_operation_calls_the_service_during_an_outage(
    bound_agent: AgentParts,
) -> None:
    bound_agent.clock.limit_s = 180
    service = Service(bound_agent, *[DOWN] * 999)
    operations: tuple[Operation, ...] = (
        "heartbeat", "onCommands", "onCommands as a stream", "acknowledge", "submitResult",
    )  # fmt: skip
    calling = [asyncio.create_task(bound_agent.breaker.call(o, service.answer)) for o in operations]

    await bound_agent.clock.is_at_limit.wait()
    for call in calling:
        call.cancel()
    await asyncio.gather(*calling, return_exceptions=True)

    assert len(service.called_at) <= 25 + len(operations)


async def test_call_once_raises_every_error_and_waits_between_calls(
    bound_agent: AgentParts,
) -> None:
    service = Service(bound_agent, *[ServiceUnavailable("server-error", "503")] * 4)
    for _ in range(4):
        with pytest.raises(ServiceUnavailable):
            await bound_agent.breaker.call_once("onCommands", service.answer)

    assert bound_agent.breaker.wait_left_s("onCommands") >= 4
    assert await bound_agent.breaker.call_once("onCommands", service.answer) == "answer"
    assert sum(service.waits()) >= (1 + 2 + 4 + 8) / 2
    assert bound_agent.breaker.wait_left_s("onCommands") == 0


# ---------------------------------------------------------------- a service with many devices


async def test_waits_are_spread_over_the_requested_reconnect_time(bound_agent: AgentParts) -> None:
    bound_agent.breaker.set_reconnect_time(40)
    service = Service(bound_agent, *[DOWN] * 20)

    await bound_agent.breaker.call("current", service.answer)

    assert all(20 <= wait <= 60 for wait in service.waits())
    assert max(service.waits()) - min(service.waits()) > 20


async def test_a_heartbeat_is_sent_again_after_another_operation_succeeded(
    bound_agent: AgentParts,
) -> None:
    bound_agent.breaker.set_reconnect_time(40)
    heartbeat, query = Service(bound_agent, DOWN), Service(bound_agent, *[DOWN] * 2)

    await asyncio.gather(
        bound_agent.breaker.call("heartbeat", heartbeat.answer),
        bound_agent.breaker.call("current", query.answer),
    )

    assert len(heartbeat.called_at) == 2
    assert 0 < heartbeat.called_at[-1] - query.called_at[-1] <= 40


async def test_a_heartbeat_is_retried_if_no_other_operation_is_called(
    bound_agent: AgentParts,
) -> None:
    bound_agent.breaker.set_reconnect_time(40)
    heartbeat = Service(bound_agent, *[DOWN] * 3)

    assert await bound_agent.breaker.call("heartbeat", heartbeat.answer) == "answer"
    # Four times the reconnect time, plus at most the longest delay of the breaker.
    assert all(160 <= wait <= 160 + 60 for wait in heartbeat.waits())
