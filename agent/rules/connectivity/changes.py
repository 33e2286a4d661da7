"""Finds the events between two states of this machine."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from agent.rules.connectivity.cause import LinkState
from agent.wire.payloads.history import Event

DISK_FLOOR_BYTES: Final = 50 * 2**20
"""The disk with the agent's state counts as full if it has less free space than this."""


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
    """Yield what has changed. A part that is missing in one of the states does not count.

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
