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
from agent.tasks.session.circuit_breaker import Operation
from tests.unit.agent.tasks.harness import Harness, settle, until

DOWN = ServiceUnavailable("connection-refused", "nobody listens")
BUSY = Throttled("later", 30.0)
UNKNOWN_KEY = CredentialRefused("unknown key")


class Service:
    """A fake service. Its first calls raise ``errors`` one after the other; later calls succeed."""

    def __init__(self, home: Harness, *errors: ServiceError) -> None:
        self.home = home
        self.errors = list(errors)
        self.called_at: list[float] = []

    async def ask(self) -> str:
        self.called_at.append(self.home.clock.elapsed_s)
        await asyncio.sleep(0)
        if self.errors:
            raise self.errors.pop(0)
        return "answer"

    def waits(self) -> list[float]:
        times = self.called_at
        return [later - sooner for sooner, later in itertools.pairwise(times)]


async def test_a_successful_call_returns_its_answer(home: Harness) -> None:
    service = Service(home)

    assert await home.breaker.call("heartbeat", service.ask) == "answer"
    assert home.breaker.is_up
    assert home.clock.slept == []


@pytest.mark.parametrize(
    "error", [Refused(403, None, "no"), BodyRejected(400, "no"), BodyTooLarge("no")]
)
async def test_a_refusal_shows_that_the_service_is_reachable(
    home: Harness, error: ServiceError
) -> None:
    with pytest.raises(type(error)):
        await home.breaker.call("heartbeat", Service(home, error).ask)

    assert home.breaker.is_up
    assert home.clock.slept == []


async def test_an_unreadable_key_does_not_show_that_the_service_is_reachable(
    home: Harness,
) -> None:
    for error in (DOWN, ApiKeyUnreadable("the API key cannot be read")):
        with pytest.raises(type(error)):
            await home.breaker.call_once("heartbeat", Service(home, error).ask)
        assert not home.breaker.is_up
    assert "connection-refused" in home.codes()


async def test_waits_grow_until_the_service_answers(home: Harness) -> None:
    service = Service(home, *[DOWN] * 9)

    assert await home.breaker.call("heartbeat", service.ask) == "answer"

    bounds = [1, 2, 4, 8, 16, 24, 24, 24, 24]
    assert len(service.waits()) == len(bounds)
    for wait, most in zip(service.waits(), bounds, strict=True):
        assert most / 2 <= wait <= most
    assert home.breaker.is_up


async def test_condition_is_set_while_calls_fail(home: Harness) -> None:
    codes_at_calls: list[set[str]] = []

    class Watched(Service):
        async def ask(self) -> str:
            codes_at_calls.append(home.codes())
            return await super().ask()

    other = ServiceUnavailable("timeout", "silence")
    await home.breaker.call("heartbeat", Watched(home, DOWN, other, BUSY, UNKNOWN_KEY).ask)

    assert codes_at_calls == [
        set(), {"connection-refused"}, {"timeout"}, {"throttled"}, {"credential-refused"},
    ]  # fmt: skip
    assert home.codes() == set()


@pytest.mark.parametrize("error", [DOWN, UNKNOWN_KEY, Throttled("later", None)])
async def test_one_caller_retries_for_all_callers(home: Harness, error: ServiceError) -> None:
    service = Service(home, *[error] * 6)

    answers = await asyncio.gather(
        *(home.breaker.call("heartbeat", service.ask) for _ in range(10))
    )

    assert answers == ["answer"] * 10
    # The ten concurrent calls fail together. Then one call is repeated until it succeeds, and all
    # other calls continue.
    assert len(service.called_at) <= 6 + 10


class Probe:
    """A fake operation. Its first call fails, and its second call blocks until it is released."""

    def __init__(self) -> None:
        self.is_first = True
        self.is_blocked = asyncio.Event()
        self.may_continue = asyncio.Event()

    async def ask(self) -> str:
        if self.is_first:
            self.is_first = False
            raise DOWN
        self.is_blocked.set()
        await self.may_continue.wait()
        return "answer"


async def test_callers_continue_together_when_the_probe_that_they_waited_for_succeeds(
    home: Harness,
) -> None:
    probe, slow_may_finish = Probe(), asyncio.Event()

    async def slow() -> str:
        await slow_may_finish.wait()
        return "slow"

    probing = asyncio.create_task(home.breaker.call("heartbeat", probe.ask))
    await asyncio.wait_for(probe.is_blocked.wait(), 60)
    first = asyncio.create_task(home.breaker.call("heartbeat", slow))
    second = asyncio.create_task(home.breaker.call("heartbeat", Service(home).ask))
    await settle()
    assert not second.done()
    probe.may_continue.set()

    assert await asyncio.wait_for(second, 60) == "answer"
    slow_may_finish.set()
    assert await first == "slow"
    await probing


async def test_calls_that_fail_together_count_once(home: Harness) -> None:
    service = Service(home, *[DOWN] * 3)

    await asyncio.gather(*(home.breaker.call("heartbeat", service.ask) for _ in range(3)))

    assert [at for at in service.called_at if at == 0] == [0, 0, 0]
    assert sum(home.clock.slept) <= 1.0, "after one failure the wait is at most a second"


async def test_retry_after_of_the_service_determines_the_wait(home: Harness) -> None:
    service = Service(home, BUSY, Throttled("much later", 100_000))

    await home.breaker.call("heartbeat", service.ask)

    first, second = service.waits()
    assert 30 <= first <= 33
    assert 3600 <= second <= 3960


async def test_refused_key_is_retried_with_growing_delays(home: Harness) -> None:
    service = Service(home, *[UNKNOWN_KEY] * 12)

    await home.breaker.call("heartbeat", service.ask)

    bounds = [10, 20, 40, 80, 160, 320, 640, 900, 900, 900, 900, 900]
    for wait, most in zip(service.waits(), bounds, strict=True):
        assert most / 2 <= wait <= most


async def test_a_changed_key_is_tried_at_once(home: Harness) -> None:
    service = Service(home, *[UNKNOWN_KEY] * 12)
    calling = asyncio.create_task(home.breaker.call("heartbeat", service.ask))
    await until(lambda: len(service.errors) == 2)
    service.errors.clear()
    changed_at = home.clock.elapsed_s
    home.key_file.write_text("key-2")

    assert await calling == "answer"
    assert service.called_at[-1] - changed_at <= 5


@pytest.mark.parametrize("content", [None, b"", b"\xff"])
async def test_a_call_is_repeated_soon_after_a_missing_key_appears(
    home: Harness, content: bytes | None
) -> None:
    if content is None:
        home.key_file.unlink()
    else:
        home.key_file.write_bytes(content)
    service = Service(home, *[UNKNOWN_KEY] * 12)
    calling = asyncio.create_task(home.breaker.call("heartbeat", service.ask))
    await until(lambda: len(service.errors) == 4)
    service.errors.clear()
    home.key_file.write_text("key-2")
    appeared_at = home.clock.elapsed_s

    await calling

    assert service.called_at[-1] - appeared_at <= 5


async def test_a_refusal_after_an_outage_resets_the_retry_delay(home: Harness) -> None:
    service = Service(home, *[DOWN] * 20, UNKNOWN_KEY, DOWN)

    await home.breaker.call("heartbeat", service.ask)

    *_, after_refusal, after_down = service.waits()
    assert after_refusal <= 10
    assert after_down <= 1


STATES = {
    "down": DOWN,
    "timeout": ServiceUnavailable("timeout", "silence"),
    "captive-portal": ServiceUnavailable("captive-portal", "a page"),
    "refused-key": UNKNOWN_KEY,
    "throttled": Throttled("later", None),
    "throttled-for-zero-seconds": Throttled("now", 0.0),
}


@pytest.mark.parametrize("error", STATES.values(), ids=STATES)
@pytest.mark.parametrize("callers", [1, 6])
async def test_no_state_of_the_service_causes_more_than_30_calls_a_minute(
    home: Harness, error: ServiceError, callers: int
) -> None:
    home.clock.limit_s = 600
    service = Service(home, *[error] * 5000)
    calling = [
        asyncio.create_task(home.breaker.call("heartbeat", service.ask)) for _ in range(callers)
    ]

    await home.clock.is_at_limit.wait()
    for call in calling:
        call.cancel()
    await asyncio.gather(*calling, return_exceptions=True)

    calls_under_way = callers - 1  # the other calls that began before the first failure
    for minute in range(10):
        calls = [at for at in service.called_at if minute * 60 <= at < minute * 60 + 60]
        assert len(calls) <= 31 + (calls_under_way if minute == 0 else 0)
    assert len([at for at in service.called_at if at <= 180]) <= 91 + calls_under_way


async def test_calls_are_bounded_while_two_errors_alternate(home: Harness) -> None:
    home.clock.limit_s = 600
    service = Service(home, *[DOWN, UNKNOWN_KEY] * 2500)
    calling = asyncio.create_task(home.breaker.call("heartbeat", service.ask))

    await home.clock.is_at_limit.wait()
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)

    for minute in range(10):
        assert len([t for t in service.called_at if minute * 60 <= t < minute * 60 + 60]) <= 30


async def test_a_cancelled_probe_is_taken_over_by_the_next_caller(home: Harness) -> None:
    probe = Probe()
    probing = asyncio.create_task(home.breaker.call("heartbeat", probe.ask))
    await asyncio.wait_for(probe.is_blocked.wait(), 60)
    waiting = asyncio.create_task(home.breaker.call("heartbeat", Service(home).ask))
    await settle()
    assert not waiting.done()

    probing.cancel()

    assert await asyncio.wait_for(waiting, 60) == "answer"
    with pytest.raises(asyncio.CancelledError):
        await probing


async def test_an_unexpected_error_is_raised(home: Harness) -> None:
    async def broken() -> str:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        await home.breaker.call("heartbeat", broken)


async def test_a_wait_for_another_key_ends_when_the_key_changes(home: Harness) -> None:
    began = home.clock.elapsed_s
    await home.breaker.wait_for_another_key(100)
    assert home.clock.elapsed_s - began == 100

    waiting = asyncio.create_task(home.breaker.wait_for_another_key(10_000))
    await asyncio.sleep(0)
    home.key_file.write_text("key-2")
    await waiting

    assert home.clock.elapsed_s - began <= 100 + 2 * 5


async def test_one_failing_operation_does_not_delay_others_and_sets_no_condition(
    home: Harness,
) -> None:
    """While one operation fails, the other operations succeed and need not wait."""
    failing, working = Service(home, *[DOWN] * 5), Service(home)
    others = asyncio.create_task(_call_repeatedly(home, working))

    assert await home.breaker.call("heartbeat", failing.ask) == "answer"

    others.cancel()
    assert sum(failing.waits()) >= 0.5 + 1 + 2
    assert len(working.called_at) > 5
    assert home.codes() == set()


async def _call_repeatedly(home: Harness, service: Service) -> None:
    while True:
        await home.breaker.call("current", service.ask)
        await home.clock.sleep(0.1)


async def test_a_single_failing_call_raises_after_its_maximum_of_attempts(home: Harness) -> None:
    failing = Service(home, *[DOWN] * 99)
    others = asyncio.create_task(_call_repeatedly(home, Service(home)))

    with pytest.raises(ServiceUnavailable):
        await home.breaker.call("heartbeat", failing.ask, alone_max=4)

    others.cancel()
    assert "partly-failing" not in home.codes(), "the condition must end with the last call"


async def test_retry_now_ends_the_wait(home: Harness) -> None:
    home.clock.limit_s = 100
    service = Service(home, *[DOWN] * 20)
    calling = asyncio.create_task(home.breaker.call("heartbeat", service.ask))
    await home.clock.is_at_limit.wait()
    calls_before = len(service.called_at)

    home.breaker.retry_now()
    await until(lambda: len(service.called_at) > calls_before)

    assert service.called_at[-1] <= 100
    calling.cancel()


async def test_retry_now_keeps_a_wait_that_the_service_requested(home: Harness) -> None:
    home.clock.limit_s = 100
    service = Service(home, *[Throttled("later", 3600)] * 3)
    calling = asyncio.create_task(home.breaker.call("heartbeat", service.ask))
    await home.clock.is_at_limit.wait()

    home.breaker.retry_now()
    await settle()

    assert len(service.called_at) == 1
    calling.cancel()


REFUSALS = [
    ServiceUnavailable("server-error", "503"),
    ServiceUnavailable("captive-portal", "a page"),
    ServiceUnavailable("bad-reply", "nonsense"),
    Throttled("later", 3600.0),
    UNKNOWN_KEY,
]


@pytest.mark.parametrize("error", REFUSALS, ids=lambda e: type(e).__name__)
async def test_a_refused_operation_does_not_delay_other_operations(
    home: Harness, error: ServiceError
) -> None:
    failing, working = Service(home, *[error] * 99), Service(home)
    calling = asyncio.create_task(home.breaker.call("submitResult", failing.ask))
    await until(lambda: len(failing.called_at) == 1)
    await settle(5)
    began = home.clock.elapsed_s

    for _ in range(20):
        await home.breaker.call("heartbeat", working.ask)

    assert home.clock.elapsed_s == began, "calls of other operations must not be delayed"
    assert home.breaker.is_up
    assert len(home.codes()) == 1
    await until(lambda: len(failing.called_at) == 4)
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)
    assert home.codes() == set(), "the condition must end with the last call"


async def test_a_timeout_delays_other_operations_once(home: Harness) -> None:
    """After a time-out, the whole service might be down, so all operations wait. One successful
    call of a different operation shows that the service is up.
    """
    failing, working = (
        Service(home, *[ServiceUnavailable("timeout", "silence")] * 99),
        Service(home),
    )
    calling = asyncio.create_task(home.breaker.call("onCommands", failing.ask))
    others = asyncio.create_task(_call_repeatedly(home, working))

    await until(lambda: len(failing.called_at) >= 8)

    for task in (calling, others):
        task.cancel()
    assert max(working.waits()) <= 1.2
    bounds = [1, 2, 4, 8, 16]
    assert all(w >= b / 4 for w, b in zip(failing.waits()[1:], bounds, strict=False))


async def test_only_one_operation_calls_the_service_during_an_outage(home: Harness) -> None:
    home.clock.limit_s = 180
    service = Service(home, *[DOWN] * 999)
    operations: tuple[Operation, ...] = (
        "heartbeat", "onCommands", "onCommands as a stream", "acknowledge", "submitResult",
    )  # fmt: skip
    calling = [asyncio.create_task(home.breaker.call(o, service.ask)) for o in operations]

    await home.clock.is_at_limit.wait()
    for call in calling:
        call.cancel()
    await asyncio.gather(*calling, return_exceptions=True)

    assert len(service.called_at) <= 25 + len(operations)


async def test_the_method_once_raises_every_error_and_waits_between_calls(home: Harness) -> None:
    service = Service(home, *[ServiceUnavailable("server-error", "503")] * 4)
    for _ in range(4):
        with pytest.raises(ServiceUnavailable):
            await home.breaker.call_once("onCommands", service.ask)

    assert home.breaker.wait_left_s("onCommands") >= 4
    assert await home.breaker.call_once("onCommands", service.ask) == "answer"
    assert sum(service.waits()) >= (1 + 2 + 4 + 8) / 2
    assert home.breaker.wait_left_s("onCommands") == 0


# ---------------------------------------------------------------- a service with many devices


async def test_waits_are_spread_over_the_requested_reconnect_time(home: Harness) -> None:
    home.breaker.set_reconnect_time(40)
    service = Service(home, *[DOWN] * 20)

    await home.breaker.call("current", service.ask)

    assert all(20 <= wait <= 60 for wait in service.waits())
    assert max(service.waits()) - min(service.waits()) > 20


async def test_a_heartbeat_is_sent_again_after_another_operation_succeeded(home: Harness) -> None:
    home.breaker.set_reconnect_time(40)
    heartbeat, query = Service(home, DOWN), Service(home, *[DOWN] * 2)

    await asyncio.gather(
        home.breaker.call("heartbeat", heartbeat.ask), home.breaker.call("current", query.ask)
    )

    assert len(heartbeat.called_at) == 2
    assert 0 < heartbeat.called_at[-1] - query.called_at[-1] <= 40


async def test_a_heartbeat_is_retried_if_no_other_operation_is_called(home: Harness) -> None:
    home.breaker.set_reconnect_time(40)
    heartbeat = Service(home, *[DOWN] * 3)

    assert await home.breaker.call("heartbeat", heartbeat.ask) == "answer"
    # Four times the reconnect time, plus at most the longest delay of the breaker.
    assert all(160 <= wait <= 160 + 60 for wait in heartbeat.waits())
