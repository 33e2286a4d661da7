"""The watched devices of a network report, as rows for every kind of output."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from agent.presentation.plain_text import plain, shorten
from agent.presentation.severity import Severity
from agent.wire.payloads.network import NetworkPayload
from agent.wire.payloads.watched_devices import WatchedLine, WatchedState, parse_watched

SEVERITIES: Final[dict[WatchedState, Severity]] = {
    "replaced": "bad",
    "moved": "bad",
    "absent": "bad",
    "unknown": "warn",
    "present": "good",
}
"""The severity of each state, in the order in which devices are listed."""


@dataclass(frozen=True, slots=True)
class WatchedRow:
    """A watched device, for every kind of output. All strings are plain text."""

    name: str
    kind: str
    state: WatchedState
    severity: Severity
    detail: str


def watched_devices(payload: NetworkPayload) -> tuple[WatchedLine, ...]:
    """Return the watched devices of a network report, in the order of the configuration.

    The contract has no field for watched devices, so a report describes them in its limitations.
    """
    map_limitations = payload.network_map.limitations if payload.network_map else ()
    lines = dict.fromkeys((*payload.limitations, *map_limitations))
    return tuple(filter(None, map(parse_watched, lines)))


def watched_rows(payload: NetworkPayload) -> tuple[WatchedRow, ...]:
    """Return the watched devices, the ones with problems first."""
    order = tuple(SEVERITIES)
    devices = sorted(watched_devices(payload), key=lambda device: order.index(device.state))
    return tuple(map(_row, devices))


def _row(device: WatchedLine) -> WatchedRow:
    name, details = shorten(device.name), plain("; ".join(_details(device)))
    return WatchedRow(name, device.kind, device.state, SEVERITIES[device.state], details)


def located_devices(payload: NetworkPayload) -> dict[str, WatchedLine]:
    """Return the watched devices that answered, by their addresses."""
    return {
        device.address: device
        for device in watched_devices(payload)
        if device.state in ("present", "moved") and device.address
    }


def _details(device: WatchedLine) -> Iterator[str]:
    """Yield what a technician needs to find the device."""
    if device.state == "moved":
        yield f"at {device.address} instead of {device.moved_from}"
    elif device.state == "replaced":
        yield f"{device.other_mac} answers at its address {device.address}"
    elif device.state == "absent":
        yield f"no answer from {device.address}" if device.address else "no answer"
    elif device.address:
        yield f"at {device.address}"
    if device.state == "moved" and device.other_mac:
        yield f"{device.other_mac} answers at its old address"
    if device.reason:
        yield device.reason
