"""Recognises which device is a given printer: by its MAC, or by two other identities. No I/O.

The other identities are the serial number, the UUID, the host name, and the MAC inside the
printer's UUID, if the device has that MAC. One of these identities alone is only a hint, because
mDNS relays repeat the UUIDs of printers, and some makers use one UUID or serial number for many
devices.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from collectors.contract import LearnedPrinter
from collectors.network.matching.devices import Device, DeviceIndex, differ, host_names
from collectors.network.matching.identity import (
    mac_in_address,
    mac_in_hostname,
    mac_in_uuid,
    mac_tail_in_hostname,
)
from collectors.network.matching.models import is_other_model
from collectors.network.observations import KnownPrinter, PortObservation
from collectors.shared.addresses import PRINT_PORTS

By = Literal["UUID", "MAC", "serial number", "host name", "MAC from its UUID", "DNS-SD name"]
"""The kind of the evidence. "MAC from its UUID": the printer's UUID contains the device's MAC."""
Likeness = Literal["same", "unknown", "different"]

_NOTHING = LearnedPrinter("")
"""The identity of a printer about which nothing was learned."""

_QUEUES_OF_A_SERVER = ("printers/", "classes/")
"""The first parts of the paths of queues that a CUPS server shares."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether a device is the printer.

    ``by`` is the evidence that it is, and ``difference`` the evidence that it is not.
    ``has_shared_identity``: ``likeness`` is "unknown", and the device has exactly one of the
    printer's identities, but not its MAC. It is also False if the device has both learned names,
    the host name and the DNS-SD name. ``contradicts_learned``: the device differs from the
    identity that the agent has learned for the printer.
    """

    likeness: Likeness
    by: By | None = None
    has_shared_identity: bool = False
    difference: str = ""
    contradicts_learned: bool = False


UNIDENTIFIED = Comparison("unknown")


@dataclass(frozen=True, slots=True)
class Match:
    """A device that is certainly the printer, and the evidence.

    ``is_mac_from_host_name``: the only evidence is a MAC in the printer's host name. This evidence
    is weak: the name may resolve to another interface of the printer, which has a different MAC.
    """

    device: Device
    by: By
    is_mac_from_host_name: bool = False


def compare(
    printer: KnownPrinter,
    device: Device,
    index: DeviceIndex,
    observation: PortObservation | None = None,
) -> Comparison:
    """Compare the device at a printer's destination with the printer.

    ``observation`` is what was observed of the port to which the print system connects. If two
    identities besides the MAC are equal, the MAC may differ, because a printer has different MACs
    on cable and Wi-Fi.
    """
    macs = _own_macs(device, index, "")
    same = tuple(_shared_identities(printer, device, macs))
    if _has_mac(known_macs(printer), macs):
        return Comparison("same", "MAC")
    if len(same) > 1:
        return Comparison("same", same[0])
    is_named = (printer.learned or _NOTHING).dns_sd_name in device.instances
    if is_named and "host name" in same:
        # The device has both learned names, so it may be the printer although another identity
        # differs.
        return Comparison("unknown")
    if difference := _difference_from_learned(printer, device, macs):
        return Comparison("different", difference=difference, contradicts_learned=True)
    if difference := _difference_from_setup(printer, device, macs, observation):
        difference = f"{difference}, so it may be another device"
        return Comparison("different", difference=difference)
    return Comparison("unknown", has_shared_identity=bool(same))


def find_matches(printer: KnownPrinter, index: DeviceIndex) -> tuple[Match, ...]:
    """Return the devices that are certainly this printer, wherever they are.

    Such a device has a print port or the port of the printer's setup. Its UUID, serial number and
    model do not contradict the printer.
    """
    matches = (_match(printer, device, index) for device in find_candidates(printer, index))
    return tuple(match for match in matches if match is not None)


def find_alike(printer: KnownPrinter, index: DeviceIndex) -> tuple[tuple[Device, ...], By | None]:
    """Return the devices that share an identity with the printer, and the kind of this identity.

    Only one kind is used: the first of UUID, MAC in the UUID, serial number and host name that any
    device shares with the printer.
    """
    for by in ("UUID", "MAC from its UUID", "serial number", "host name"):
        if devices := _devices_sharing(printer, by, index):
            return devices, by
    return (), None


def known_macs(printer: KnownPrinter) -> tuple[str, ...]:
    """Return the MACs that a printer is known by. Some have only the last three bytes."""
    return (*_macs(printer), *_named_macs(printer))


def may_have_mac(printer: KnownPrinter, device: Device) -> bool:
    """Return whether a device has one of the printer's MACs, or the MAC in the printer's UUID."""
    in_uuid = {mac_in_uuid(uuid) for uuid in _values(printer, "UUID")}
    return _has_mac(_macs(printer), device.mac_addresses) or bool(
        in_uuid & set(device.mac_addresses)
    )


def _match(printer: KnownPrinter, device: Device, index: DeviceIndex) -> Match | None:
    old_address = next(iter(printer.addresses), "")
    macs = _own_macs(device, index, old_address)
    same = tuple(_shared_identities(printer, device, macs))
    ports = {observation.port for observation in device.observations}
    if not ports & {*PRINT_PORTS, printer.port} or _contradicts(printer, device):
        return None
    if _has_mac(_macs(printer), macs):
        return Match(device, "MAC")
    if len(same) > 1:
        return Match(device, same[0])
    has_named_mac = _has_mac(_named_macs(printer), macs)
    return Match(device, "MAC", is_mac_from_host_name=True) if has_named_mac else None


def find_candidates(printer: KnownPrinter, index: DeviceIndex) -> Iterable[Device]:
    """Return the devices that have a MAC, UUID, serial number or host name of a printer."""
    devices: dict[Device, None] = {}
    for mac in known_macs(printer):
        devices |= dict.fromkeys(index.having("mac_addresses", mac))
    for by in ("UUID", "serial number", "host name"):
        devices |= dict.fromkeys(_devices_sharing(printer, by, index))
    return devices


def _macs(printer: KnownPrinter) -> tuple[str, ...]:
    """Return the MACs of a printer: those in its setup, and the learned MAC."""
    learned = printer.learned or _NOTHING
    macs = (printer.mac_address, learned.mac_address, mac_in_address(printer.host))
    return tuple(filter(None, macs))


def _named_macs(printer: KnownPrinter) -> tuple[str, ...]:
    """Return the MAC in a printer's host name. Some names have only its last three bytes."""
    host = printer.host
    return tuple(filter(None, (mac_in_hostname(host), mac_tail_in_hostname(host))))


def _own_macs(device: Device, index: DeviceIndex, old_address: str) -> tuple[str, ...]:
    """Return a device's MACs, also those in its IPv6 addresses.

    The MACs of repeaters and proxies are left out, because several devices have them. For
    ``old_address`` see `DeviceIndex.is_shared`.
    """
    in_addresses = filter(None, map(mac_in_address, device.addresses))
    unique_macs = (mac for mac in device.mac_addresses if not index.is_shared(mac, old_address))
    return tuple(dict.fromkeys((*unique_macs, *in_addresses)))


def _has_mac(printer_macs: tuple[str, ...], macs: tuple[str, ...]) -> bool:
    """Return whether a MAC in ``macs`` is, or ends with, one of the printer's MACs."""
    return bool(printer_macs) and any(mac.endswith(printer_macs) for mac in macs)


def _values(printer: KnownPrinter, by: By) -> tuple[str, ...]:
    """Return the printer's values of one kind, from its setup and from its learned identity."""
    learned = printer.learned or _NOTHING
    values = {
        "UUID": (printer.uuid, learned.uuid),
        "serial number": (printer.serial, learned.serial),
        "host name": (printer.host, learned.hostname),
    }[by]
    return tuple(dict.fromkeys(filter(None, values)))


def _devices_sharing(printer: KnownPrinter, by: By, index: DeviceIndex) -> tuple[Device, ...]:
    """Return the devices that have the printer's identity of the kind ``by``."""
    if by == "MAC from its UUID":
        kind, values = "mac_addresses", [mac_in_uuid(e) for e in _values(printer, "UUID")]
        return tuple(d for mac in filter(None, values) for d in index.having(kind, mac))
    kind = {"UUID": "uuids", "serial number": "serials", "host name": "hostnames"}[by]
    names = _values(printer, by)
    keys = [host_names(name)[0] for name in names] if by == "host name" else names
    return tuple(dict.fromkeys(d for key in keys for d in index.having(kind, key)))


def _shared_identities(
    printer: KnownPrinter, device: Device, macs: tuple[str, ...]
) -> Iterator[By]:
    """Yield the kinds of identities, besides the MAC, that a printer and a device share."""
    uuids = _values(printer, "UUID")
    if set(uuids) & set(device.uuids):
        yield "UUID"
    if {mac_in_uuid(uuid) for uuid in uuids} & set(macs):
        yield "MAC from its UUID"
    if set(_values(printer, "serial number")) & set(device.serials):
        yield "serial number"
    learned_name = (printer.learned or _NOTHING).hostname
    if learned_name and learned_name.lower() in {name.lower() for name in device.hostnames}:
        yield "host name"


def _contradicts(printer: KnownPrinter, device: Device) -> bool:
    """Return whether the UUID, serial number or model of a device differs from the printer's."""
    model = (printer.learned or _NOTHING).model
    return (
        differ(_values(printer, "UUID"), device.uuids)
        or differ(_values(printer, "serial number"), device.serials)
        or (bool(device.models) and all(is_other_model(model, other) for other in device.models))
    )


def _difference_from_learned(
    printer: KnownPrinter, device: Device, macs: tuple[str, ...]
) -> str | None:
    """Describe how a device differs from a printer's learned identity; None if it does not."""
    learned = printer.learned or _NOTHING
    identities = (
        ("MAC", learned.mac_address, macs),
        ("serial number", learned.serial, device.serials),
        ("UUID", learned.uuid, device.uuids),
    )
    for kind, value, device_values in identities:
        if value and device_values and value not in device_values:
            device_name = ", ".join(filter(None, (name_of(device), f"{kind} {device_values[0]}")))
            date = f" on {learned.seen_at[:10]}" if learned.seen_at else ""
            return (
                f"another device answers there: {device_name}, while the printer had {kind} {value}"
                f"{date}"
            )
    names = ((learned.hostname, device.hostnames), (learned.dns_sd_name, device.instances))
    if all(
        value and device_values and value not in device_values for value, device_values in names
    ):
        device_name = ", ".join(device_values[0] for _, device_values in names)
        printer_name = ", ".join(filter(None, (learned.hostname, learned.dns_sd_name)))
        return f"another device answers there: {device_name}, while the printer was {printer_name}"
    return None


def _difference_from_setup(
    printer: KnownPrinter,
    device: Device,
    macs: tuple[str, ...],
    observation: PortObservation | None,
) -> str | None:
    """Describe how a device differs from the printer that was set up; None if it does not."""
    ports = device.print_ports
    answers = (observation,) if observation is not None and observation.uuids else ports
    models = [model for port in ports for model in port.models]
    is_server = (printer.queue or "").startswith(_QUEUES_OF_A_SERVER)
    reference = "differs from that of the printer that was set up"
    if printer.uuid and differ((printer.uuid,), [u for answer in answers for u in answer.uuids]):
        return f"its UUID {reference}"
    label = (printer.host or "").lower().partition(".")[0]
    has_host_name = label in {name.lower().partition(".")[0] for name in device.hostnames}
    # If the device has the printer's host name, the MAC in this name may be that of another
    # interface of the device.
    printer_macs = (*_macs(printer), *(() if has_host_name else _named_macs(printer)))
    if printer_macs and macs and not _has_mac(printer_macs, macs):
        return f"its MAC {reference}"
    if printer.serial and differ((printer.serial,), [s for port in ports for s in port.serials]):
        return f"its serial number {reference}"
    if models and not is_server and all(is_other_model(printer.make_model, m) for m in models):
        return f"it is of the model {models[0]}, not {printer.make_model}"
    return None


def name_of(device: Device) -> str | None:
    """Return a model of the device, or else a name from a port, or else a host name."""
    labels = (label for observation in device.observations for label in observation.labels)
    return next(iter((*device.models, *labels, *device.hostnames)), None)
