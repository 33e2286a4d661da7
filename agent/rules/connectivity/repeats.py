"""Events that would repeat every few minutes: each is reported at most once an hour."""

from datetime import datetime
from typing import Final

from agent.rules.connectivity.cause import LinkState
from agent.wire.payloads.history import Event

HOUR_S: Final = 3600.0
CHANGES_MIN: Final = 3
"""Minimum number of changes of the gateway's MAC within an hour that counts as a conflict. Two
changes are normal with a redundant pair of routers: to the second router and back."""


class Throttling:
    """Creates an event when the processor was slowed down because of heat."""

    def __init__(self) -> None:
        self._reported: int | None = None  # the counter at the last event, or when first read
        self._due_s = 0.0  # the monotonic time before which there is no further event

    def observe(self, count: int | None, at: datetime, now_s: float) -> Event | None:
        """Return an event if the kernel's counter has increased since the last event.

        Returns None if it has not, or if the last event was less than an hour ago.

        Args:
            count: how often the processor was slowed down since the machine started; None if
                unknown.
            now_s: the monotonic time.
        """
        if count is None or self._reported is None or count < self._reported:
            self._reported = count
            return None
        if count == self._reported or now_s < self._due_s:
            return None
        times = count - self._reported
        self._reported, self._due_s = count, now_s + HOUR_S
        return Event("processor-throttled", at, "once" if times == 1 else f"{times} times")


class GatewayMacs:
    """Detects that two machines use the gateway's address: its MAC changes back and forth.

    A process without privileges cannot read ARP replies. But after each reply, the gateway's entry
    in the kernel's neighbour table contains the MAC of this reply.
    """

    def __init__(self) -> None:
        self._gateway: str | None = None
        # The first MAC and then each change, with the monotonic time. The oldest are dropped.
        self._changes: list[tuple[float, str]] = []
        self._due_s = 0.0  # the monotonic time before which there is no further event

    def observe(self, link: LinkState, at: datetime, now_s: float) -> Event | None:
        """Add the present MAC of the gateway. Returns an event for a new conflict."""
        if link.gateway is None or link.gateway_mac is None:
            return None
        if link.gateway != self._gateway:
            self._gateway = link.gateway
            self._changes.clear()
        if not self._changes or self._changes[-1][1] != link.gateway_mac:
            self._changes = [*self._changes[-CHANGES_MIN:], (now_s, link.gateway_mac)]
        if not self.has_conflict(now_s) or now_s < self._due_s:
            return None
        self._due_s = now_s + HOUR_S
        macs = " and ".join(sorted({mac for _, mac in self._changes}))
        return Event("gateway-conflict", at, f"{macs} use {link.gateway} by turns")

    def has_conflict(self, now_s: float) -> bool:
        """Return whether two MACs had the address by turns within the last hour."""
        macs = {mac for _, mac in self._changes}
        if len(self._changes) <= CHANGES_MIN or len(macs) > 2:
            return False
        return now_s - self._changes[1][0] <= HOUR_S
