"""Simulates many agents in one process, in virtual time. They use the agent's code for calls to the
service, but no files and no sockets.

These parts are real: the receiver, the heartbeat, the session, the circuit breakers and their
waits, the interpretation of a reply's status, and the service's limits for each caller. HTTP and
the work of the service are simulated: the service executes one call after the other, and each call
takes the time that was measured for its kind.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final
from uuid import UUID

from agent.adapters.clock import Clock
from agent.adapters.service_client import CommandStream
from agent.config import model
from agent.errors import ServiceUnavailable
from agent.rules.clock_skew import ClockSkew
from agent.rules.command_frames import Frame
from agent.rules.replies import error_of
from agent.tasks.health_board import HealthBoard
from agent.tasks.heartbeat import Heartbeat
from agent.tasks.receive import Receiver
from agent.tasks.schedule import JITTER_FRACTION
from agent.tasks.session.circuit_breaker import CircuitBreaker
from agent.tasks.session.device_session import DeviceSession
from agent.wire.device_operations import HeartbeatReply, HeartbeatRequest
from controlplane.operation.caller import Caller
from controlplane.operation.errors import Refusal
from controlplane.operation.fairness import Fairness
from controlplane.settings import Settings
from controlplane.web.commands import reconnect_ms
from tests.bench.fleet.fleet import DEVICES_A_KEY
from tests.fakes.virtual_clock import VirtualClock

INTERVAL_S: Final = model.Heartbeat().interval_seconds
TIMEOUT_S: Final = float(model.Service.model_fields["request_timeout_seconds"].default)


@dataclass(frozen=True, slots=True)
class Costs:
    """Processor time of each call to the service, in seconds."""

    heartbeat_s: float = 0.00045
    stream_s: float = 0.0010
    """Cost of opening a stream. It is the result of `make bench-fleet` for 10,000 streams, with the
    load generator on the same machine.
    """


@dataclass(slots=True)
class Tally:
    """Counts calls by the second in which they began. Failed attempts are included."""

    calls: dict[int, int] = field(default_factory=dict)
    calls_without_listener: int = 0
    """Calls while no process listened at the address."""
    refused_calls: int = 0
    """Calls that were answered with 429 or 503."""
    late_calls: int = 0
    """Calls that were not answered in time."""

    def note(self, at_s: float) -> None:
        second = int(at_s)
        self.calls[second] = self.calls.get(second, 0) + 1

    def peak(self, since_s: float, until_s: float, over_s: int) -> float:
        """Return the highest rate of calls per second, averaged over ``over_s`` seconds."""
        begins = range(int(since_s), int(until_s) + 1)
        return max(self.mean(begin, begin + over_s) for begin in begins)

    def mean(self, since_s: float, until_s: float) -> float:
        seconds = range(int(since_s), int(until_s))
        return sum(self.calls.get(second, 0) for second in seconds) / len(seconds)


class SimulatedService:
    """The service as its callers see it: unreachable, busy, refusing, or answering.

    Each simulated device counts as ``crowd`` devices in the replies and in the load of the service.
    """

    def __init__(self, clock: VirtualClock, costs: Costs, crowd: int) -> None:
        self.tally = Tally()
        self._crowd = crowd
        self.settings = Settings()
        self._clock = clock
        self._costs = costs
        self._is_up = True
        self._busy_until_s = 0.0
        self._open: set[asyncio.Queue[Frame | None]] = set()
        self._start()

    @property
    def streams(self) -> int:
        return len(self._open)

    def kill(self) -> None:
        """End all streams at once, and refuse connections until `restart`."""
        self._is_up = False
        for stream in self._open:
            stream.put_nowait(None)
        self._open.clear()

    def restart(self) -> None:
        """Accept calls again."""
        self._is_up = True
        self._start()

    async def heartbeat(self, caller: Caller) -> HeartbeatReply:
        with self._refusals():
            self._admit(caller)
            with self._fairness.call(caller):
                await self._work(self._costs.heartbeat_s)
        return HeartbeatReply(last_seen_at=self._clock.true_time())

    @contextlib.asynccontextmanager
    async def stream(self, caller: Caller) -> AsyncIterator[CommandStream]:
        with contextlib.ExitStack() as stack:
            with self._refusals():
                self._admit(caller)
                await self._work(self._costs.stream_s)
                stack.enter_context(self._fairness.stream(caller))
            pieces: asyncio.Queue[Frame | None] = asyncio.Queue()
            self._open.add(pieces)
            stack.callback(self._open.discard, pieces)
            yield CommandStream(True, self._frames(pieces))

    def _start(self) -> None:
        self._fairness = Fairness(self.settings, self._clock.monotonic)
        self._busy_until_s = self._clock.monotonic()

    def _admit(self, caller: Caller) -> None:
        self.tally.note(self._clock.monotonic())
        if not self._is_up:
            self.tally.calls_without_listener += 1
            raise ServiceUnavailable("connection-refused", "the service is not running")
        self._fairness.admit(caller)

    async def _work(self, cost_s: float) -> None:
        """Wait until the earlier calls are finished, and then for the duration of this call."""
        now_s = self._clock.monotonic()
        self._busy_until_s = max(self._busy_until_s, now_s) + cost_s * self._crowd
        wait_s = self._busy_until_s - now_s
        if wait_s > TIMEOUT_S:
            self.tally.late_calls += 1
        async with asyncio.timeout(TIMEOUT_S):
            await self._clock.sleep(wait_s)
        if not self._is_up:
            raise ServiceUnavailable("connection-lost", "the service stopped during the call")

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[None]:
        """Convert the service's refusals into the exceptions that the agent's client raises."""
        try:
            yield
        except TimeoutError:
            raise ServiceUnavailable("timeout", "no answer in time") from None
        except Refusal as refusal:
            self.tally.refused_calls += 1
            headers = {name.lower(): value for name, value in refusal.headers.items()}
            error = error_of(refusal.status, headers, b"", self._clock.now())
            assert error is not None
            raise error from None

    async def _frames(self, pieces: "asyncio.Queue[Frame | None]") -> AsyncGenerator[Frame]:
        loop = asyncio.get_running_loop()
        while True:
            yield Frame(reconnect_s=reconnect_ms(self.streams * self._crowd) / 1000)
            timer = loop.call_later(self.settings.keep_alive_s, pieces.put_nowait, Frame())
            try:
                if await pieces.get() is None:
                    raise ServiceUnavailable("connection-lost", "the stream broke")
            finally:
                timer.cancel()


class SimulatedClient:
    """Replaces `agent.adapters.service_client.ServiceClient`."""

    skew = ClockSkew()

    def __init__(self, service: SimulatedService, caller: Caller) -> None:
        self._service = service
        self._caller = caller

    async def heartbeat(self, _request: HeartbeatRequest) -> HeartbeatReply:
        return await self._service.heartbeat(self._caller)

    def commands(
        self, *, stream: bool, answer_within_s: float | None = None
    ) -> contextlib.AbstractAsyncContextManager[CommandStream]:
        return self._service.stream(self._caller)


class _PermanentBinding:
    """Replaces the agent's binding state. This binding is never lost."""

    is_bound = True

    def __init__(self, binding_id: UUID) -> None:
        self.binding_id = binding_id
        self._never = asyncio.Event()

    async def wait_until_bound(self) -> None:
        return

    async def wait_for_loss(self) -> None:
        await self._never.wait()


class _ApiKeySource:
    def read(self) -> str:
        return "key"


def caller_of(number: int) -> Caller:
    """Return the caller that owns the API key of the device with this number."""
    return Caller(key_id=UUID(int=number // DEVICES_A_KEY), organization_id="org", can_write=True)


class AgentLoops:
    """The loops of one agent that call the service regularly. ``client`` is a `ServiceClient` or a
    substitute.
    """

    def __init__(self, client: Any, clock: Clock, binding_id: UUID, seed: int) -> None:
        bound: Any = _PermanentBinding(binding_id)
        key: Any = _ApiKeySource()
        nothing: Any = None
        self._clock = clock
        self._rng = Random(seed)
        health = HealthBoard(clock, lambda: None)
        breaker = CircuitBreaker(clock, self._rng, health, key)
        session = DeviceSession(client, breaker, bound, clock)
        self._heartbeat = Heartbeat(session, health)
        self._receiver = Receiver(
            model.Commands(),
            session,
            acknowledger=nothing,
            journal=nothing,
            health=health,
            clock=clock,
            rng=self._rng,
        )

    async def run(self, begun_within_s: float = INTERVAL_S) -> None:
        """Start at a random time within ``begun_within_s``, and run until cancelled."""
        await self._clock.sleep(self._rng.uniform(0, begun_within_s))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._receiver.run())
            group.create_task(self._send_heartbeats())

    async def _send_heartbeats(self) -> None:
        """Send heartbeats as APScheduler does: one in each period, unless the previous one has not
        finished.
        """
        async with asyncio.TaskGroup() as group:
            call = group.create_task(self._heartbeat.send())
            while True:
                await self._clock.sleep(
                    INTERVAL_S * self._rng.uniform(1 - JITTER_FRACTION, 1 + JITTER_FRACTION)
                )
                if call.done():
                    call = group.create_task(self._heartbeat.send())
