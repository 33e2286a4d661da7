"""A misbehaving service causes few log lines, calls and collections. The agent continues to work.

`python -m tests.bench.garbage` measures what a stream of garbage costs a real daemon.
"""

import asyncio
import contextlib
import itertools
import json
import uuid
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent.adapters.failpoints import Failpoint
from agent.logs.setup import set_up_logging
from agent.tasks.receive import STREAM_RETRY_AFTER_S, UNREADABLE_MAX
from tests import sizes
from tests.bench.garbage import GARBAGE, endless
from tests.fakes.hostile_service import PORTAL, Exchange, Fault, HostileService, status
from tests.fakes.http_server import Reply
from tests.fakes.strict_service import Json, Reading, StrictService
from tests.fakes.virtual_clock import VirtualClock, run_in_virtual_time
from tests.scenario.agent_process import run_forked_agent, write_config
from tests.scenario.crash.matrix import NEVER, crashing_agent
from tests.scenario.simulated_agent import config_for, simulated_agent

REQUESTS = sizes.amount(medium=20, large=150, variable="QUEUED_REQUESTS")
"""Number of requests that wait at the same time. An agent accepts at most 1000."""
COLLECTIONS_MAX = 3


async def test_many_requests_of_one_kind_are_answered_from_few_collections(
    memory_home: Path,
) -> None:
    async with StrictService() as service:
        config = write_config(
            memory_home, service.base_url, limits="min_collection_interval_seconds = 1"
        )
        request_ids = [
            await service.request_report("application", expires_in_s=900) for _ in range(REQUESTS)
        ]
        trace = memory_home / "trace"
        async with crashing_agent(NEVER, config, trace) as agent:
            await service.until(lambda: len(service.reports) == REQUESTS, 60 + REQUESTS / 2)
            assert await agent.stop() == 0
    failpoint_counts = Counter(trace.read_text().split())
    assert failpoint_counts[f"{Failpoint.CHILD_STARTED}:before"] <= COLLECTIONS_MAX
    assert service.violations == []
    assert sorted(r["requestId"] for r in service.reports) == sorted(request_ids)
    assert len({r["reportId"] for r in service.reports}) == REQUESTS
    assert all(r["report"]["reportId"] == r["reportId"] for r in service.reports)
    assert len(service.bodies) == REQUESTS, "each report must be accepted at the first attempt"
    assert set(service.acknowledged) == {
        (r, s) for r in request_ids for s in ("received", "running")
    }
    assert len(agent.log.splitlines()) <= 300


# ------------------------------------------------------------------ garbage

LINES_MAX = 200
HEARTBEATS = sizes.amount(medium=3, large=5)


async def _feed_garbage(kind: str, home: Path) -> tuple[int, dict[str, Any]]:
    """Send garbage until the agent has sent HEARTBEATS heartbeats.

    Return the number of streams that the agent opened, and its last status.
    """
    clock = VirtualClock()
    async with HostileService(clock.true_time) as service:
        service.faults["onCommands"] = endless(service, GARBAGE[kind])
        config = config_for(home, service.base_url, heartbeat={"interval_seconds": 1})
        set_up_logging(config.logging)
        async with simulated_agent(config, home, clock):
            await service.until(lambda: service.heartbeats >= HEARTBEATS)
        stream_count = [operation for _, operation in service.called_at].count("onCommands")
    return stream_count, json.loads((home / "state" / "status.json").read_text())


@pytest.mark.parametrize("kind", GARBAGE)
def test_a_stream_of_garbage_causes_few_log_lines_and_connections(
    kind: str, memory_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream_count, state = run_in_virtual_time(_feed_garbage(kind, memory_home))
    log = capsys.readouterr().err
    assert '"enrolled as' in log
    assert len(log.splitlines()) <= LINES_MAX
    assert "\x1b" not in log
    assert stream_count <= 4
    counters = state["counters"]
    if kind in {"unreadable", "not-json"}:
        assert (
            UNREADABLE_MAX < counters["commands_unreadable"] <= stream_count * (UNREADABLE_MAX + 1)
        )
        assert [p["code"] for p in state["problems"]] == ["commands-unreadable"]
        return
    assert state["problems"] == []
    assert (counters["commands_for_others"] > 0) is (kind == "foreign")
    assert (counters["requests_expired"] > 0) is (kind == "expired")


# ------------------------------------------------------------------ refused streams


def refusing_streams(refuse: Fault) -> Fault:
    """Return a fault that refuses requests for a stream and answers requests for JSON."""

    async def fault(x: Exchange) -> None:
        if "event-stream" in x.request.headers["accept"]:
            await refuse(x)
            return
        reply = await x.execute()
        await x.reply(reply.status, reply.body)

    return fault


STREAM_REFUSALS: dict[str, Fault] = {
    "503": status(503),
    "503-retry-after-an-hour": status(503, Retry_After="3600"),
    "429": status(429, Retry_After="20"),
    "500": status(500),
    "501": status(501),
    "404": status(404),
    "405": status(405),
    "portal-page": status(200, PORTAL, "text/html"),
    "401": status(401),
}
POLL_S = 15.0
HEARTBEAT_S = 60.0
POLLED_REQUESTS = sizes.amount(medium=4, large=10)


def intervals_of(service: HostileService, operation: str) -> list[float]:
    """Return the seconds between consecutive calls of an operation."""
    times = [at for at, name in service.called_at if name == operation]
    return [later - sooner for sooner, later in itertools.pairwise(times)]


async def _poll(home: Path, refuse: Fault) -> tuple[list[float], HostileService, set[str]]:
    """Request reports while the service refuses streams.

    Return the time to answer each request, the service, and the codes of the agent's problems.
    """
    clock, durations_s = VirtualClock(), []
    async with HostileService(clock.true_time) as service:
        service.reading = Reading.COMMANDS_OBJECT
        service.faults["onCommands"] = refusing_streams(refuse)
        config = config_for(home, service.base_url)
        async with simulated_agent(config, home, clock) as app:
            await asyncio.sleep(100)
            for number in range(POLLED_REQUESTS):
                await asyncio.sleep(170 + 7 * number)
                request_id = await service.request_report("network", expires_in_s=1e6)
                began = clock.passed_s
                await service.until(lambda r=request_id: service.report_for(r) is not None, 600)  # type: ignore[misc]
                durations_s.append(clock.passed_s - began)
            problems = {p.code for p in app.health.problems()}
        assert service.violations == []
        return durations_s, service, problems


@pytest.mark.parametrize(
    "name",
    sizes.large_except(
        {"503", "503-retry-after-an-hour", "404", "portal-page", "401"},
        STREAM_REFUSALS,
    ),
)
def test_refused_stream_is_replaced_by_polling(name: str, memory_home: Path) -> None:
    durations_s, service, problems = run_in_virtual_time(_poll(memory_home, STREAM_REFUSALS[name]))
    assert max(durations_s) <= 2 * POLL_S
    assert max(intervals_of(service, "heartbeat")) <= HEARTBEAT_S + 1
    assert service.most_calls_a_minute() <= 30
    assert problems == set(), "the device has no problem, because it answers every request"


async def _stream_request_times(home: Path) -> list[float]:
    """Return the times of stream requests in an hour and a half, while all streams are refused."""
    clock, request_times = VirtualClock(), []

    async def refuse(x: Exchange) -> None:
        request_times.append(clock.passed_s)
        await x.reply(503)

    async with HostileService(clock.true_time) as service:
        service.reading = Reading.COMMANDS_OBJECT
        service.faults["onCommands"] = refusing_streams(refuse)
        async with simulated_agent(config_for(home, service.base_url), home, clock):
            await asyncio.sleep(5400)
    return request_times


def test_stream_is_requested_again_at_long_intervals(memory_home: Path) -> None:
    times = run_in_virtual_time(_stream_request_times(memory_home))
    first_interval, *intervals = [later - sooner for sooner, later in itertools.pairwise(times)]
    assert first_interval <= 2 * POLL_S
    assert len(intervals) >= 7
    assert all(
        0.9 * STREAM_RETRY_AFTER_S <= interval <= 1.1 * STREAM_RETRY_AFTER_S + 2 * POLL_S
        for interval in intervals
    )


async def _refuse_all(home: Path, refuse: Fault) -> HostileService:
    clock = VirtualClock()
    async with HostileService(clock.true_time) as service:
        async with simulated_agent(config_for(home, service.base_url), home, clock):
            await service.until(lambda: service.heartbeats > 0)
            await service.request_report("network", expires_in_s=1e6)
            for operation in ("onCommands", "heartbeat", "acknowledge", "submitResult", "current"):
                service.faults[operation] = refuse
            await asyncio.sleep(1800)
        return service


@pytest.mark.parametrize(
    "name", sizes.large_except({"503", "401"}, ["503", "429", "401", "portal-page"])
)
def test_service_that_refuses_everything_gets_few_requests(name: str, memory_home: Path) -> None:
    service = run_in_virtual_time(_refuse_all(memory_home, STREAM_REFUSALS[name]))
    assert service.most_calls_a_minute() <= 30
    assert len(service.called_at) <= 30 * 12  # on average 12 calls a minute in 30 minutes


async def test_daemon_whose_stream_is_refused_polls_and_sends_heartbeats(tmp_path: Path) -> None:
    async with HostileService(lambda: datetime.now(UTC)) as service:
        service.reading = Reading.COMMANDS_OBJECT
        service.faults["onCommands"] = refusing_streams(status(503, Retry_After="100"))
        config = write_config(tmp_path, service.base_url)
        async with crashing_agent(NEVER, config, tmp_path / "trace") as agent:
            await service.until(lambda: service.heartbeats >= 2)
            request_id = await service.request_report("network")
            await service.until(lambda: service.report_for(request_id) is not None)
            heartbeat_count = service.heartbeats
            await service.until(lambda: service.heartbeats >= heartbeat_count + 3)
            assert await agent.stop() == 0
        state = agent.status()
    assert (state["delivery"], state["problems"]) == ("poll", [])
    assert service.violations == []


# ------------------------------------------------------------------ one key for many devices


class SharedKeyService(StrictService):
    """A service with one API key for many devices. It sends all commands to each of the devices."""

    def __init__(self) -> None:
        super().__init__()
        self.devices: dict[str, Json] = {}
        self.heartbeat_counts: Counter[str] = Counter()

    async def _on_enroll(self, body: Json) -> Reply:
        self.binding_id = str(uuid.uuid4())
        reply = await super()._on_enroll(body)
        assert self.device is not None
        self.devices[self.binding_id] = self.device
        return reply

    async def _on_heartbeat(self, body: Json) -> Reply:
        if body["bindingId"] not in self.devices:
            return self._refuse(f"a heartbeat with an unknown binding: {body}")
        self.heartbeat_counts[body["bindingId"]] += 1
        return await super()._on_heartbeat(body)

    async def _on_acknowledge(self, body: Json) -> Reply:
        binding_id = self.bindings_of_requests.get(body["requestId"])
        if binding_id != body["bindingId"]:
            return self._refuse(f"{body} is for {binding_id}")
        return await super()._on_acknowledge(body)

    async def request_from(self, binding_id: str) -> str:
        self.binding_id = binding_id
        return await self.request_report("application")

    @property
    def bindings_of_requests(self) -> dict[str, str]:
        """The id of the binding of each request, by the id of the request."""
        return {**self._requested_bindings, **{r: c["bindingId"] for r, c in self._waiting.items()}}

    async def request_report(self, kind: str, *, expires_in_s: float = 600) -> str:
        binding_id = self.binding_id
        request_id = await super().request_report(kind, expires_in_s=expires_in_s)
        self._requested_bindings[request_id] = binding_id
        return request_id

    def __post_init__(self) -> None:
        super().__post_init__()
        self._requested_bindings: dict[str, str] = {}


DEVICES = sizes.amount(medium=2, large=4)


async def test_devices_that_share_a_key_are_healthy_and_answer_their_own_requests(
    memory_home: Path,
) -> None:
    async with SharedKeyService() as service, contextlib.AsyncExitStack() as stack:
        agents = []
        for number in range(DEVICES):
            home = memory_home / str(number)
            home.mkdir()
            config = write_config(home, service.base_url)
            agents.append(
                await stack.enter_async_context(crashing_agent(NEVER, config, home / "trace"))
            )
            await service.until(lambda n=number: len(service.heartbeat_counts) == n + 1)  # type: ignore[misc]
        binding_of_request = {
            await service.request_from(binding): binding
            for binding in service.devices
            for _ in range(2)
        }
        await service.until(lambda: len(service.reports) == len(binding_of_request), 60)
        # When a call is refused, the device calls `current`. This service then returns the
        # `EnrollmentRecord` of another device.
        call_count = service.calls.count("current")
        service.once("acknowledge", Reply(409))
        first = next(iter(service.devices))
        refused_id = await service.request_from(first)
        await service.until(lambda: service.calls.count("current") > call_count)
        heartbeat_counts = dict(service.heartbeat_counts)
        await service.until(
            lambda: all(
                service.heartbeat_counts[b] > heartbeat_counts[b] + 1 for b in heartbeat_counts
            )
        )
        results = [await run_forked_agent(a.home / "config.toml", "status") for a in agents]
        states = [a.status() for a in agents]
        for agent in agents:
            assert await agent.stop() == 0
    assert [code for code, _, _ in results] == [0] * DEVICES, results
    assert [state["problems"] for state in states] == [[]] * DEVICES
    assert all(state["counters"]["commands_for_others"] > 0 for state in states)
    assert {r["requestId"]: r["bindingId"] for r in service.reports} == binding_of_request
    assert refused_id not in {r["requestId"] for r in service.reports}
    assert service.violations == []
    assert not any("WARNING" in agent.log or '"warning"' in agent.log for agent in agents)
