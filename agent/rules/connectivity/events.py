"""The events of this machine: its starts, changes between two states, and repeated changes.

Repeated changes are reported at most once an hour.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from agent.rules.connectivity.cause import LinkState
from agent.wire.payloads.history import Event

DISK_FLOOR_BYTES: Final = 50 * 2**20
"""The disk with the agent's state counts as full if it has less free space than this."""
HOUR_S: Final = 3600.0
CHANGES_MIN: Final = 3
"""Minimum number of changes of the gateway's MAC within an hour that counts as a conflict. Two
changes are normal with a redundant pair of routers: to the second router and back."""


def describe_start(
    values: Mapping[str, str], boot_id: str | None, now: datetime
) -> Iterator[Event]:
    """Yield the event of this start. There is none for the first start.

    Args:
        values: what the previous run stored: ``boot-id``, and ``stopped``, which is "cleanly" if
            the agent stopped in an orderly way.
        boot_id: identifies the present run of the operating system; None if unknown.
    """
    if not values:
        return
    is_clean = values.get("stopped") == "cleanly"
    previous_boot_id = values.get("boot-id") or None
    if boot_id is not None and previous_boot_id is not None and boot_id != previous_boot_id:
        yield Event("machine-started" if is_clean else "power-lost", now)
    else:
        yield Event("agent-started" if is_clean else "agent-killed", now)


@dataclass(frozen=True, slots=True)
class MachineState:
    """The state of memory and disk. None: not known on this platform.

    ``memory_kills`` counts the programs that the kernel has ended since its start, because memory
    ran out. ``free_bytes`` is the free space of the disk with the agent's state.
    """

    memory_kills: int | None = None
    free_bytes: int | None = None


def machine_events(before: MachineState, after: MachineState, at: datetime) -> Iterator[Event]:
    """Yield an event if memory ran out or the disk became full between two states."""
    kills = (after.memory_kills or 0) - (before.memory_kills or 0)
    if before.memory_kills is not None and kills > 0:
        programs_were = "program was" if kills == 1 else "programs were"
        yield Event("memory-exhausted", at, f"{kills} {programs_were} ended")
    if _is_full(after) and not _is_full(before):
        yield Event("disk-full", at, f"{(after.free_bytes or 0) // 2**20} MiB are free")


def _is_full(state: MachineState) -> bool:
    return state.free_bytes is not None and state.free_bytes < DISK_FLOOR_BYTES


def link_events(
    before: LinkState, after: LinkState, at: datetime, *, has_conflict: bool = False
) -> Iterator[Event]:
    """Yield an event for each change. A value that is unknown in one of the states is not compared.

    With ``has_conflict``, two machines use the gateway's address. The gateway's MAC then changes
    back and forth, so these changes are left out.
    """
    old, new = _ipv4(before), _ipv4(after)
    if old and new and old != new:
        yield Event("address-changed", at, f"from {', '.join(old)} to {', '.join(new)}")
    if before.gateway and after.gateway:
        if before.gateway != after.gateway:
            detail = f"from {before.gateway} to {after.gateway}"
            yield Event("gateway-changed", at, detail)
        elif not has_conflict and _has_other_mac(before, after):
            detail = f"{after.gateway} is now {after.gateway_mac}, not {before.gateway_mac}"
            yield Event("gateway-changed", at, detail)
    if before.access_point and after.access_point and before.access_point != after.access_point:
        detail = f"from {before.access_point} to {after.access_point}"
        yield Event("access-point-changed", at, detail)


def _has_other_mac(before: LinkState, after: LinkState) -> bool:
    macs = before.gateway_mac, after.gateway_mac
    return all(macs) and macs[0] != macs[1]


def _ipv4(link: LinkState) -> tuple[str, ...]:
    """Return the IPv4 addresses. IPv6 addresses change by themselves (RFC 8981)."""
    return tuple(address for address in link.addresses or () if ":" not in address)


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
        """Return whether two MACs alternately had the address within the last hour."""
        macs = {mac for _, mac in self._changes}
        if len(self._changes) <= CHANGES_MIN or len(macs) > 2:
            return False
        return now_s - self._changes[1][0] <= HOUR_S
