"""Learns the identity of a printer while it answers, to recognise it at another address. No I/O."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from collectors.contract import LearnedPrinter
from collectors.network.matching.devices import Device
from collectors.network.observations import KnownPrinter

VALUE_MAX = 255
"""The most characters of each learned value."""

ReadIdentities = Callable[[Device], Iterable[str]]


def with_learned(
    known: Sequence[KnownPrinter], learned: Sequence[LearnedPrinter]
) -> tuple[KnownPrinter, ...]:
    """Add to each printer the identity that was learned, unless its setup has changed since."""
    by_id = {(printer.id, printer.setup): printer for printer in learned}
    return tuple(
        replace(printer, learned=by_id.get((printer.id, _setup(printer)))) for printer in known
    )


def learn(
    matches: Iterable[tuple[KnownPrinter, Device, str]], devices: Sequence[Device]
) -> Iterator[LearnedPrinter]:
    """Yield the identity of each printer in ``matches``.

    Each match has a printer, its device, and the address of this device to store with the identity.

    A MAC, UUID or serial number that two devices share is left out, because it identifies neither:
    some makers give one UUID or serial number to many devices, and a router may answer ARP for
    other devices with its own MAC.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    for printer, device, address in matches:
        instances = (name for observation in device.observations for name in observation.instances)
        yield LearnedPrinter(
            id=printer.id,
            setup=_setup(printer),
            seen_at=now,
            address=address,
            mac_address=_unique_value(device, devices, lambda other: other.mac_addresses),
            uuid=_unique_value(device, devices, lambda other: other.uuids),
            serial=_unique_value(device, devices, lambda other: other.serials),
            dns_sd_name=_first(instances),
            hostname=_first(device.hostnames),
            model=_first(device.models),
        )


def _setup(printer: KnownPrinter) -> str:
    parts = (printer.host, printer.mac_address, printer.dns_sd_name, printer.uuid, printer.serial)
    return " ".join(part[:VALUE_MAX] for part in parts if part)


def _unique_value(
    device: Device, devices: Sequence[Device], identities: ReadIdentities
) -> str | None:
    """Return a device's identity of one kind. Returns None if the device has several or none, or if
    another device has the same identity."""
    values = set(identities(device))
    if len(values) != 1 or any(
        values & set(identities(other)) for other in devices if other is not device
    ):
        return None
    return values.pop()[:VALUE_MAX]


def _first(texts: Iterable[str]) -> str | None:
    return next((text[:VALUE_MAX] for text in texts if text), None)
