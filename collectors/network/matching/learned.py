"""Learns the identity of a printer while it answers, to recognise it at another address. No I/O."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from collectors.contract import LearnedPrinter
from collectors.network.matching.devices import Device, DeviceIndex
from collectors.network.observations import KnownPrinter

VALUE_MAX = 255
"""The most characters of each learned value."""


def with_learned(
    known: Sequence[KnownPrinter], learned: Sequence[LearnedPrinter]
) -> tuple[KnownPrinter, ...]:
    """Add to each printer the identity that was learned, unless its setup has changed since."""
    by_id = {(printer.id, printer.setup): printer for printer in learned}
    return tuple(
        replace(printer, learned=by_id.get((printer.id, _setup(printer)))) for printer in known
    )


def learn(
    matches: Iterable[tuple[KnownPrinter, Device, str]], index: DeviceIndex
) -> Iterator[LearnedPrinter]:
    """Yield the identity of each printer in ``matches``.

    Each match has a printer, its device, and the address of this device to store with the identity.

    A MAC, UUID or serial number that two devices share is left out, because it identifies neither:
    some makers give one UUID or serial number to many devices, and a router may answer ARP for
    other devices with its own MAC.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    for printer, device, address in matches:
        yield LearnedPrinter(
            id=printer.id,
            setup=_setup(printer),
            seen_at=now,
            address=address,
            mac_address=_unique_value(device.mac_addresses, "mac_addresses", index),
            uuid=_unique_value(device.uuids, "uuids", index),
            serial=_unique_value(device.serials, "serials", index),
            dns_sd_name=_first(device.instances),
            hostname=_first(device.hostnames),
            model=_first(device.models),
        )


def _setup(printer: KnownPrinter) -> str:
    parts = (printer.host, printer.mac_address, printer.dns_sd_name, printer.uuid, printer.serial)
    return " ".join(part[:VALUE_MAX] for part in parts if part)


def _unique_value(values: Sequence[str], kind: str, index: DeviceIndex) -> str | None:
    """Return the identity in ``values``, which are a device's identities of one kind. Returns None
    if there are several or none, or if another device has the same identity."""
    value = values[0] if len(set(values)) == 1 else None
    return value[:VALUE_MAX] if value and len(index.having(kind, value)) == 1 else None


def _first(texts: Iterable[str]) -> str | None:
    return next((text[:VALUE_MAX] for text in texts if text), None)
