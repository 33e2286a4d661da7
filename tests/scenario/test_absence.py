"""Tests outages that last from minutes to a month, sleep of the machine, and clock changes.

A medium run simulates 12 short outages and one of 4 hours. A large run simulates 24 short outages
and one of 3 days. `make test-absence` simulates 100 short outages and one of a month.
"""

import asyncio
import contextlib
import gc
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from agent.adapters import failpoints
from agent.adapters.failpoints import Failpoint
from agent.adapters.storage.outbox import WaitingReport
from agent.config.model import Schedule
from agent.errors import ServiceUnavailable
from agent.rules.lifecycle import State
from agent.tasks.schedule import HEARTBEAT, Scheduler
from agent.tasks.timekeeper import CHECK_EVERY_S
from tests import sizes
from tests.fakes.hostile_service import HostileService, hang
from tests.fakes.virtual_clock import VirtualClock, VirtualTimeLoop, run_in_virtual_time
from tests.scenario.simulated_agent import SimulatedApp, config_for, simulated_agent

DAY_S = 86_400.0
CALLS = {failpoint for failpoint in Failpoint if failpoint.endswith("-called")} | {
    Failpoint.COMMANDS_OPENED
}
"""The failpoints of all calls to the service."""


@dataclass(frozen=True, slots=True)
class EnrolledAgent:
    clock: VirtualClock
    service: HostileService
    app: SimulatedApp

    async def request_report(self, *, expires_in_s: float) -> str:
        """Request a network report that expires this long after the current virtual time."""
        # The fake service counts from the start of the virtual clock.
        return await self.service.request_report(
            "network", expires_in_s=self.clock.passed_s + expires_in_s
        )

    async def until_answered(self, request_id: str, within_s: float) -> None:
        """Wait in virtual time until the service has the report."""
        await self.service.until(lambda: self.service.report_for(request_id) is not None, within_s)


@contextlib.asynccontextmanager
async def enrolled_agent(
    home: Path, seed: int = 0, **sections: dict[str, object]
) -> AsyncIterator[EnrolledAgent]:
    """Run an agent that has a binding and an open stream."""
    clock = VirtualClock()
    async with HostileService(clock.true_time) as service:
        config = config_for(home, service.base_url, **sections)
        async with simulated_agent(config, home, clock, seed) as app:
            await service.until(lambda: "onCommands" in service.calls and service.heartbeats > 0)
            yield EnrolledAgent(clock, service, app)


@contextlib.contextmanager
def record_calls() -> Iterator[list[Failpoint]]:
    """Record each attempt of a call, whether or not the service replies."""
    calls: list[Failpoint] = []

    def listener(failpoint: Failpoint, is_over: bool) -> None:
        if failpoint in CALLS and not is_over:
            calls.append(failpoint)

    failpoints.set_listener(listener)
    try:
        yield calls
    finally:
        failpoints.set_listener(lambda failpoint, is_over: None)


OUTAGES = sizes.amount(medium=12, large=24, variable="OUTAGES")
OUTAGE_S = 180.0


async def _measure_outages(home: Path, seed: int, count: int) -> list[tuple[int, float]]:
    """Return for each outage the number of attempts, and the time from its end until a report.

    The report answers a request that was created when the service came back.
    """
    rng, outages = Random(seed), []
    async with enrolled_agent(home, seed) as agent:
        for _ in range(count):
            await asyncio.sleep(rng.uniform(5, 120))
            with record_calls() as calls:
                await agent.service.go_away()
                await asyncio.sleep(OUTAGE_S)
            await agent.service.come_back()
            request_id = await agent.request_report(expires_in_s=600)
            began = agent.clock.passed_s
            await agent.until_answered(request_id, 120)
            outages.append((len(calls), agent.clock.passed_s - began))
    return outages


def test_outage_of_three_minutes_costs_few_attempts_and_reports_resume_quickly(
    memory_home: Path,
) -> None:
    outages = [
        outage
        for seed in range(4)
        for outage in run_in_virtual_time(
            _measure_outages(memory_home / str(seed), seed, OUTAGES // 4)
        )
    ]
    attempts = [count for count, _ in outages]
    recovery_s = sorted(duration_s for _, duration_s in outages)
    median, percentile_95 = recovery_s[OUTAGES // 2], recovery_s[OUTAGES * 95 // 100 - 1]
    print(
        f"{min(attempts)} to {max(attempts)} attempts; back in {median:.1f} s, 95 % in "
        f"{percentile_95:.1f} s"
    )
    assert len(outages) == OUTAGES
    assert max(attempts) <= 25
    assert min(attempts) >= 5
    assert percentile_95 <= 30


REPORTS = sizes.amount(medium=32, large=72, variable="ABSENCE_REPORTS")
REPORT_EVERY_S = sizes.amount(medium=450, large=3600)
"""Seconds between two reports of the long outage. The outage has `REPORTS` reports, so it lasts 4
hours in a medium run and 3 days in a large run."""
OUTBOX_MAX_BYTES = 100_000
REQUESTS = 20


async def _play_long_outage(home: Path) -> None:
    # The maximum age is so long that only the limit of bytes applies.
    limits: dict[str, object] = {"outbox_max_bytes": OUTBOX_MAX_BYTES, "outbox_max_age_days": 365}
    async with enrolled_agent(home, limits=limits) as agent:
        app, service = agent.app, agent.service
        requests = []
        service.faults["submitResult"] = hang
        for number in range(REQUESTS):
            kind = ("network", "application")[number % 2]
            requests.append(
                await service.request_report(kind, expires_in_s=REPORTS * REPORT_EVERY_S)
            )
        # Each request is acknowledged as received and as running.
        await service.until(lambda: len(service.acknowledged) == 2 * REQUESTS, 600)
        service.faults.clear()
        # Calls fail as if nothing listened at the address. Real connections over a simulated month
        # would take too long.
        post, commands = app.client._post, app.client.commands
        await service.go_away()
        app.client._post = _refuse_call  # type: ignore[method-assign]
        app.client.commands = _refuse_stream  # type: ignore[method-assign,assignment]
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        largest, memory = 0, []
        with loop.without_sockets():
            for number in range(REPORTS):
                await asyncio.sleep(REPORT_EVERY_S)
                app._executor.schedule("network" if number % 2 else "application")
                await asyncio.sleep(1)
                largest = max(largest, app._ledger.outbox.depth().size_bytes)
                if number >= REPORTS - 12:
                    memory.append(_traced_bytes())
        tracemalloc.stop()
        assert "internal-error" not in app.conditions_seen
        assert largest <= OUTBOX_MAX_BYTES
        # In a large run, the agent makes about 2,400 attempts between the first and the last
        # measurement, so a leak of 25 bytes per attempt would be detected.
        assert max(memory[-3:]) - max(memory[:3]) < 60_000, memory
        waiting = [report.request_id for report in _waiting_reports(app)]
        assert sum(request_id is not None for request_id in waiting) == REQUESTS
        dropped = app._database.counters()["reports_dropped"]
        assert dropped == REPORTS + REQUESTS - len(waiting)
        assert app.health.is_set("reports-dropped")
        # The service is back. All reports in the outbox arrive, oldest first, at a limited rate.
        queued_ids = [str(report.report_id) for report in _waiting_reports(app)]
        app.client._post, app.client.commands = post, commands  # type: ignore[method-assign]
        before = len(service.called_at)
        await service.come_back()
        await service.until(lambda: len(service.reports) == len(queued_ids), 600)
        assert [report["reportId"] for report in service.reports] == queued_ids
        submit_times = [
            at for at, operation in service.called_at[before:] if operation == "submitResult"
        ]
        assert len(submit_times) / (submit_times[-1] - submit_times[0]) <= 2.0
        assert all(service.report_for(request_id) is not None for request_id in requests)
        assert service.violations == []


async def _refuse_call(path: str, body: bytes) -> bytes:
    raise ServiceUnavailable("connection-refused", "the service is not running")


@contextlib.asynccontextmanager
async def _refuse_stream(
    *, stream: bool, answer_within_s: float | None = None
) -> AsyncIterator[None]:
    raise ServiceUnavailable("connection-refused", "the service is not running")
    yield


def _traced_bytes() -> int:
    if not tracemalloc.is_tracing():
        tracemalloc.start()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _waiting_reports(app: SimulatedApp) -> list[WaitingReport]:
    reports, skip = [], set()
    while (report := app._ledger.outbox.oldest(skip)) is not None:
        reports.append(report)
        skip.add(report.report_id)
    return reports


def test_outbox_stays_within_limits_in_a_long_outage_and_is_sent_afterwards(
    memory_home: Path,
) -> None:
    run_in_virtual_time(_play_long_outage(memory_home))


async def _sleep_through_the_night(home: Path) -> None:
    async with enrolled_agent(home) as agent:
        streams = agent.service.calls.count("onCommands")
        # A real service drops the stream during such a sleep, and the agent cannot detect that. But
        # it detects the sleep, and must then open a new stream.
        agent.clock.suspend(8 * 3600)
        await agent.service.until(
            lambda: agent.service.calls.count("onCommands") > streams, CHECK_EVERY_S + 5
        )
        request_id = await agent.request_report(expires_in_s=60)
        await agent.until_answered(request_id, 30)


def test_a_new_stream_is_opened_at_once_after_the_machine_slept(memory_home: Path) -> None:
    run_in_virtual_time(_sleep_through_the_night(memory_home))


async def _sleep_after_an_outage(home: Path) -> float:
    async with enrolled_agent(home) as agent:
        await agent.service.go_away()
        await asyncio.sleep(600)  # after this time, the waits between attempts are at their maximum
        await agent.service.come_back()
        agent.clock.suspend(3600)
        request_id = await agent.request_report(expires_in_s=600)
        began = agent.clock.passed_s
        await agent.until_answered(request_id, 60)
        return agent.clock.passed_s - began


def test_sleep_of_the_machine_ends_an_old_retry_delay(memory_home: Path) -> None:
    assert run_in_virtual_time(_sleep_after_an_outage(memory_home)) <= CHECK_EVERY_S + 5


async def _change_the_clock(home: Path, step_s: float) -> None:
    async with enrolled_agent(home) as agent:
        running_id = await agent.service.request_report("network", expires_in_s=600)
        agent.app.collectors.may_end.clear()
        await agent.service.until(lambda: len(agent.service.acknowledged) == 2)
        waiting_id = await agent.service.request_report("network", expires_in_s=900)
        short_id = await agent.service.request_report("application", expires_in_s=300)
        # The request that runs was acknowledged twice, and each request that waits once.
        await agent.service.until(lambda: len(agent.service.acknowledged) == 4)
        agent.clock.step(step_s)
        # From now on, no reply contains the service's time. The agent has only its own clocks.
        for operation in ("heartbeat", "onCommands"):
            agent.service.faults[operation] = hang
        await asyncio.sleep(400)
        agent.app.collectors.may_end.set()
        await agent.until_answered(running_id, 300)
        await agent.until_answered(waiting_id, 300)
        await asyncio.sleep(60)
        states = [
            _state(agent.app, request_id) for request_id in (running_id, waiting_id, short_id)
        ]
        assert states == [State.SUBMITTED, State.SUBMITTED, State.EXPIRED]
        agent.service.faults.clear()
        count = agent.service.heartbeats
        await agent.service.until(lambda: agent.service.heartbeats > count + 2, 300)
        assert agent.service.violations == []


def _state(app: SimulatedApp, request_id: str) -> State | None:
    entry = app.entry(request_id)
    return None if entry is None else entry.state


@pytest.mark.parametrize(
    "step_s",
    sizes.large_except(
        {-DAY_S, 7.0, 400 * DAY_S},
        [-DAY_S, -3600.0, 7.0, 3600.0, DAY_S, 400 * DAY_S],
    ),
)
def test_clock_change_does_not_change_when_requests_expire(
    step_s: float, memory_home: Path
) -> None:
    run_in_virtual_time(_change_the_clock(memory_home, step_s))


async def _change_the_clock_while_a_report_waits(home: Path, step_s: float) -> None:
    async with enrolled_agent(home) as agent:
        agent.service.faults["submitResult"] = hang
        agent.app._executor.schedule("network")
        await agent.service.until(
            lambda: any(name == "submitResult" for _, name in agent.service.called_at)
        )
        agent.clock.step(step_s)
        await asyncio.sleep(2 * CHECK_EVERY_S)
        agent.app._submitter.apply_limits()
        assert agent.app._ledger.outbox.depth().reports == 1
        agent.service.faults.clear()
        await agent.service.until(lambda: len(agent.service.reports) == 1, 300)


@pytest.mark.parametrize("step_s", [-DAY_S, DAY_S, 60 * DAY_S])
def test_clock_change_does_not_age_reports(step_s: float, memory_home: Path) -> None:
    run_in_virtual_time(_change_the_clock_while_a_report_waits(memory_home, step_s))


async def test_timers_are_rescheduled_after_the_clock_was_set_back() -> None:
    sent_event = asyncio.Event()

    async def send_heartbeat() -> None:
        sent_event.set()

    scheduler = Scheduler(
        send_heartbeat=send_heartbeat,
        interval_s=3600,
        request_report=lambda kind: None,
        schedule=Schedule(network="0 4 * * *"),
    )
    scheduler.reschedule()  # this must not fail, although the timers do not run yet
    scheduler.start()
    try:
        for job in scheduler._scheduler.get_jobs():
            # After the clock was set back by a day, each timer is a day too late.
            job.modify(next_run_time=job.next_run_time + timedelta(days=1))
        scheduler.reschedule()
        async with asyncio.timeout(120):
            await sent_event.wait()
        jobs = {job.id: job.next_run_time for job in scheduler._scheduler.get_jobs()}
        assert jobs["network"] - jobs[HEARTBEAT] < timedelta(days=1)
    finally:
        scheduler.stop()
