"""Finds the events between two states of this machine's side of the path."""

from collections.abc import Iterator
from datetime import datetime

from agent.rules.connectivity.cause import LinkState
from agent.wire.payloads.history import Event


def link_events(before: LinkState, after: LinkState, at: datetime) -> Iterator[Event]:
    """Yield what has changed. A part that is missing in one of the states is no change."""
    old, new = _ipv4(before), _ipv4(after)
    if old and new and old != new:
        yield Event("address-changed", at, f"from {', '.join(old)} to {', '.join(new)}")
    if before.gateway and after.gateway:
        if before.gateway != after.gateway:
            detail = f"from {before.gateway} to {after.gateway}"
            yield Event("gateway-changed", at, detail)
        elif before.gateway_mac and after.gateway_mac and before.gateway_mac != after.gateway_mac:
            detail = f"{after.gateway} is now {after.gateway_mac}, not {before.gateway_mac}"
            yield Event("gateway-changed", at, detail)
    if before.access_point and after.access_point and before.access_point != after.access_point:
        detail = f"from {before.access_point} to {after.access_point}"
        yield Event("access-point-changed", at, detail)


def _ipv4(link: LinkState) -> tuple[str, ...]:
    """Return the IPv4 addresses. IPv6 addresses change by themselves (RFC 8981)."""
    return tuple(address for address in link.addresses or () if ":" not in address)
