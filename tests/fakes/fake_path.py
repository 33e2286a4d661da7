"""A simulated path from a machine to the service, with faults at planned times.

It replaces the operating system (`Sensors`), and the agent's tasks that call the service: a
heartbeat each minute, and a command stream that breaks when the service cannot be reached.
"""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.errors import CredentialRefused, ServiceError, ServiceUnavailable
from agent.rules.connectivity.cause import LinkState, NameServer, Sample, ServiceAnswer
from agent.tasks.record import Recorder
from agent.wire.payloads.history import CAUSES, Cause
from tests.fakes.fake_clock import FakeClock

FaultKind = Literal[
    "cable", "wifi", "address", "lease", "gateway", "no-route",
    "name-servers", "provider", "provider-unreachable", "service", "service-refused", "key",
]  # fmt: skip
CAUSE_OF: dict[FaultKind, Cause] = {
    "cable": "link-down",
    "wifi": "link-down",
    "address": "no-address",
    "lease": "no-address",
    "gateway": "gateway-silent",
    "no-route": "gateway-silent",
    "name-servers": "name-servers-silent",
    "provider": "provider-down",
    "provider-unreachable": "provider-down",
    "service": "service-down",
    "service-refused": "service-down",
    "key": "service-refuses",
}
HEARTBEAT_S = 60.0
STREAM_BREAKS_AFTER_S = 6.0
TIMEOUT_S = 20.0
RETRY_S = 4.0
PROBE_TIMEOUT_S = 1.5
REPLY_S = 0.02
"""The duration of a call that does not time out."""


@dataclass(frozen=True)
class Fault:
    """A part of the path that fails from ``at_s`` for ``length_s``, in the clock's seconds."""

    kind: FaultKind
    at_s: float
    length_s: float

    @property
    def ends_s(self) -> float:
        return self.at_s + self.length_s


@dataclass(eq=False)
class FakePath:
    """Implements `Sensors`, and simulates the heartbeats and the command stream.

    ``probes`` is the number of calls of `probe`.
    """

    clock: FakeClock
    faults: Sequence[Fault] = ()
    on_change: Callable[[], None] = lambda: None
    probes: int = 0

    def failing(self) -> set[FaultKind]:
        now = self.clock.elapsed_s
        return {fault.kind for fault in self.faults if fault.at_s <= now < fault.ends_s}

    # ------------------------------------------------------------------ sensors

    def open(self, on_change: Callable[[], None]) -> None:
        self.on_change = on_change

    def close(self) -> None:
        self.on_change = lambda: None

    def read_link(self) -> LinkState:
        failing = self.failing()
        has_link = not failing & {"cable", "wifi"}
        has_address = has_link and not failing & {"address", "lease"}
        has_route = has_address and "no-route" not in failing
        return LinkState(
            interface="eth0",
            has_link=has_link,
            addresses=("192.168.1.20/24",) if has_address else (),
            has_route=has_route,
            gateway="192.168.1.1" if has_route else None,
        )

    async def probe(self, link: LinkState) -> Sample:
        self.probes += 1
        failing = self.failing()
        service = self._service(failing)
        if service == "silent":
            await self.clock.sleep(PROBE_TIMEOUT_S)
        is_gateway_reached = self._is_gateway_reached(failing)
        return Sample(
            link=link,
            gateway_answers=is_gateway_reached if link.has_route else None,
            name_servers=self._name_servers(failing, is_probe=True),
            service=service,
        )

    async def query_name_servers(self) -> tuple[NameServer, ...]:
        return self._name_servers(self.failing(), is_probe=False)

    def _is_gateway_reached(self, failing: set[FaultKind]) -> bool:
        return not failing & {"cable", "wifi", "address", "lease", "gateway", "no-route"}

    def _is_internet_reached(self, failing: set[FaultKind]) -> bool:
        return self._is_gateway_reached(failing) and not failing & {
            "provider", "provider-unreachable",
        }  # fmt: skip

    def _service(self, failing: set[FaultKind]) -> ServiceAnswer:
        if failing & {"cable", "wifi", "address", "lease", "no-route"}:
            return "unreachable"
        if self._is_gateway_reached(failing) and "provider-unreachable" in failing:
            return "unreachable"
        if not self._is_internet_reached(failing) or "service" in failing:
            return "silent"
        return "refused" if "service-refused" in failing else "connected"

    def _name_servers(self, failing: set[FaultKind], *, is_probe: bool) -> tuple[NameServer, ...]:
        is_reached = self._is_gateway_reached(failing) and "name-servers" not in failing
        can_forward = is_reached and self._is_internet_reached(failing)
        return (
            NameServer(
                "192.168.1.1",
                "answer" if is_reached else "silent",
                is_local=True,
                can_forward=can_forward if is_probe and is_reached else None,
            ),
        )

    # ------------------------------------------------------------------ the other tasks

    async def play(self, recorder: Recorder, until_s: float) -> None:
        """Simulate changes of links, heartbeats and the command stream until ``until_s``."""
        tasks = [
            asyncio.create_task(work)
            for work in (self._notify(), self._stream(recorder), self._heartbeats(recorder))
        ]
        await self.clock.sleep(until_s - self.clock.elapsed_s)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _notify(self) -> None:
        """Call ``on_change`` when a link, an address or a route changes."""
        for at_s in sorted({t for fault in self.faults for t in (fault.at_s, fault.ends_s)}):
            before = self.read_link()
            await self.clock.sleep(at_s - self.clock.elapsed_s)
            if self.read_link() != before:
                self.on_change()

    async def _stream(self, recorder: Recorder) -> None:
        """Break the idle command stream.

        It breaks at once if the service's process ends, and after some seconds if the service is
        silent or unreachable.
        """
        for begin_s in sorted(fault.at_s for fault in self.faults):
            await self.clock.sleep(begin_s - self.clock.elapsed_s)
            if self._service(self.failing()) == "refused":
                recorder.note_stream_broken()  # the service's process ended
                continue
            await self.clock.sleep(STREAM_BREAKS_AFTER_S)
            if self._service(self.failing()) in ("silent", "unreachable"):
                recorder.note_stream_broken()

    async def _heartbeats(self, recorder: Recorder) -> None:
        while True:
            error, took_s = self._call()
            await self.clock.sleep(took_s)
            recorder.note_attempt("heartbeat", error, took_s)
            await self.clock.sleep(HEARTBEAT_S if error is None else RETRY_S)

    def _call(self) -> tuple[ServiceError | None, float]:
        failing = self.failing()
        answer = self._service(failing)
        if answer == "silent":
            return ServiceUnavailable("timeout", "no reply in 20 s"), TIMEOUT_S
        if answer == "refused":
            return ServiceUnavailable("connection-refused", "connection refused"), REPLY_S
        if answer == "unreachable":
            return ServiceUnavailable("connection-lost", "no route to host"), REPLY_S
        if "name-servers" in failing:
            return ServiceUnavailable("name-resolution", "temporary failure"), REPLY_S
        if "key" in failing:
            return CredentialRefused("the service does not accept the API key"), REPLY_S
        return None, REPLY_S


def nearest_causes(spans: Sequence[tuple[Cause, float, float]]) -> list[Cause]:
    """Return the causes that the record must have, in the order of time.

    At each second, the cause is the failing part that is nearest to the machine. A part is left
    out if it is the nearest only for a short time: for less than half a minute after a nearer part,
    or for less than six seconds before a nearer part.

    Args:
        spans: the cause, the start and the end of each fault, in seconds.
    """
    begin, end = min(span[1] for span in spans), max(span[2] for span in spans)
    causes = [
        min(
            (cause for cause, begins, ends in spans if begins <= t < ends),
            key=CAUSES.index,
            default=None,
        )
        for t in range(int(begin) + 1, int(end))
    ]
    runs = [(cause, len(list(run))) for cause, run in itertools.groupby(causes)]
    nearest: list[Cause] = []
    for number, (cause, length) in enumerate(runs):
        before = runs[number - 1][0] if number else None
        after = runs[number + 1][0] if number + 1 < len(runs) else None
        if cause is None or (nearest and nearest[-1] == cause):
            continue
        if after and length < 6 and CAUSES.index(after) < CAUSES.index(cause):
            continue
        if before and length < 30 and CAUSES.index(cause) > CAUSES.index(before):
            continue
        nearest.append(cause)
    return nearest
