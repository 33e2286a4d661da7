"""Groups observations into devices, and finds the device of a printer by evidence."""

import ipaddress
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from collectors.network.matching.identity import (
    mac_in_address,
    mac_in_hostname,
    mac_in_uuid,
    mac_tail_in_hostname,
)
from collectors.network.matching.models import is_same_plain_model, plain_model
from collectors.network.observations import KnownPrinter, Observations, PortObservation
from collectors.shared.addresses import PRINT_PORTS, RAW_PRINT_PORTS, numeric_order

By = Literal["UUID", "MAC", "serial number", "DNS-SD name", "address", "host name", "name"]

IDENTITIES: tuple[By, ...] = ("UUID", "MAC", "serial number")
"""Evidence that stays the same when a device gets another address."""

NAMES: tuple[By, ...] = ("DNS-SD name", "name")
"""Weak evidence, because any device may use any name."""


@dataclass(frozen=True, slots=True)
class Device:
    """One device. ``addresses`` has its IPv4 addresses first, then the IPv6 addresses that are
    certainly its own."""

    addresses: tuple[str, ...]
    mac_addresses: tuple[str, ...]
    hostnames: tuple[str, ...]
    observations: tuple[PortObservation, ...]

    @property
    def address(self) -> str:
        return self.addresses[0]

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(model for each in self.observations for model in each.models)

    @property
    def uuids(self) -> tuple[str, ...]:
        return tuple(uuid for each in self.observations for uuid in each.uuids)

    @property
    def serials(self) -> tuple[str, ...]:
        return tuple(serial for each in self.observations for serial in each.serials)

    @property
    def print_ports(self) -> tuple[PortObservation, ...]:
        return tuple(each for each in self.observations if each.port in PRINT_PORTS)


@dataclass(frozen=True, slots=True)
class Match:
    """The devices that the strongest evidence points to, and the kind of that evidence."""

    devices: tuple[Device, ...]
    by: By


def group_devices(observed: Observations) -> tuple[Device, ...]:
    """Group the observations into devices. Each IPv4 address is a device, with these exceptions.

    An IPv6 address belongs to the IPv4 address with the same MAC or host name, if there is exactly
    one such IPv4 address. Several IPv4 addresses with the same host name and the same UUID are one
    device, for example with cable and Wi-Fi. Addresses with only the same MAC stay separate
    devices, because the MAC may be that of proxy ARP. Only MACs from the scan are used: the
    neighbour table may still have the MAC of a device that had the address before.
    """
    observations: dict[str, list[PortObservation]] = defaultdict(list)
    for each in observed.ports.values():
        observations[each.address].append(each)
    macs = {a: h.scanned.mac_address for a, h in observed.hosts.items() if h.scanned}
    marks = {
        address: _Marks(
            mac_address=macs.get(address),
            hostnames=next((each.hostnames for each in observations[address]), ()),
            uuids=tuple(uuid for each in observations[address] for uuid in each.uuids),
        )
        for address in sorted({*macs, *observations}, key=numeric_order)
    }
    owners, first = _owners(marks), _first_addresses(marks)
    members: dict[str, list[str]] = {}
    for address in marks:
        owner = owners.get(address, address)
        members.setdefault(first.get(owner, owner), []).append(address)
    return tuple(_device(group, marks, observations) for group in members.values())


class DeviceIndex:
    """Finds devices by each kind of evidence."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._devices = tuple(devices)
        self._models: dict[str, list[Device]] = defaultdict(list)
        for device in devices:
            for model in set(map(plain_model, device.models)):
                self._models[model].append(device)
        self._stores: dict[By, dict[str, list[Device]]] = {}
        for by, keys in _DEVICE_KEYS:
            store: dict[str, list[Device]] = defaultdict(list)
            for device in devices:
                for key in dict.fromkeys(keys(device)):
                    store[key].append(device)
            self._stores[by] = store

    def find(self, printer: KnownPrinter, skip: Collection[By] = ()) -> Match | None:
        """Return the devices to which the strongest evidence points.

        Evidence of the kinds in ``skip`` is not used. Returns None if no evidence points to a
        device.
        """
        for by in BY:
            if by in skip:
                continue
            store = self._stores[by]
            hits = [device for key in evidence_of(printer, by) for device in store.get(key, ())]
            if hits:
                return Match(tuple(dict.fromkeys(hits)), by)
        return None

    def evidence(self, printer: KnownPrinter, by: By, device: Device) -> set[str]:
        """Return the values of one kind of evidence that a printer and a device share."""
        store = self._stores[by]
        return {key for key in evidence_of(printer, by) if device in store.get(key, ())}

    def printers(self) -> Iterator[Device]:
        """Yield the devices that are certainly printers, because of a model or a raw print port."""
        for device in self._devices:
            ports = device.print_ports
            if any(e.models or (e.port in RAW_PRINT_PORTS and e.contact) for e in ports):
                yield device

    def of_model(self, model: str | None) -> Iterator[Device]:
        """Yield the devices of this model. A device that gives several names of the model is
        yielded several times."""
        wanted = plain_model(model)
        for known, devices in self._models.items():
            if is_same_plain_model(wanted, known):
                yield from devices

    @property
    def devices(self) -> tuple[Device, ...]:
        return self._devices

    def at(self, address: str) -> Device | None:
        return next(iter(self._stores["address"].get(address, ())), None)


def service_names(name: str) -> tuple[str, ...]:
    """Return a DNS-SD instance name in the two forms that are compared.

    The first is the name in lower case. The second is the queue name that cups-browsed makes from
    it: ``Brother HL-L2350DW`` becomes ``brother_hl_l2350dw``.
    """
    lower = name.lower()
    return (lower, _NOT_IN_QUEUE_NAMES.sub("_", lower).strip("_"))


def evidence_of(printer: KnownPrinter, by: By) -> tuple[str, ...]:
    """Return a printer's values of one kind of evidence, as `DeviceIndex` compares them."""
    return tuple(dict.fromkeys(_PRINTER_KEYS[by](printer)))


def sure_macs(printer: KnownPrinter) -> Iterator[str]:
    """Yield the MACs in a printer's setup: its own MAC, and a MAC in its host name or IPv6 address.

    Some host names contain only the last three bytes of a MAC. Then these three are yielded.
    """
    host = printer.host
    in_host = (mac_in_hostname(host), mac_in_address(host), mac_tail_in_hostname(host))
    yield from filter(None, (printer.mac_address, *in_host))


_IN_UUID = "in a UUID: "
_NOT_IN_QUEUE_NAMES = re.compile(r"[^a-z0-9]+")


def _device_macs(device: Device) -> Iterator[str]:
    yield from device.mac_addresses
    yield from (_IN_UUID + mac for uuid in device.uuids if (mac := mac_in_uuid(uuid)))
    for name in device.hostnames:
        if mac := mac_in_hostname(name):
            yield mac
    # Some printers have only the last three bytes of the MAC in their host name. Such a host name
    # is compared with these bytes.
    yield from {mac[-8:] for mac in device.mac_addresses}


def _printer_macs(printer: KnownPrinter) -> Iterator[str]:
    for mac in sure_macs(printer):
        yield from (mac, _IN_UUID + mac)
    yield from _learned(printer, "mac_address")
    # The last 12 digits of two UUIDs may be equal by chance or because of the firmware. So these
    # digits of the printer's UUID are compared only with MACs, not with the UUIDs of devices.
    yield from filter(None, (mac_in_uuid(printer.uuid),))


def instance_names(device: Device) -> Iterator[str]:
    for observation in device.observations:
        for instance in observation.instances:
            yield from service_names(instance)


def _names(hostnames: Iterable[str]) -> Iterator[str]:
    for name in hostnames:
        plain = name.lower().rstrip(".")
        yield plain
        yield plain.removesuffix(".local")


def _learned(
    printer: KnownPrinter, mark: Literal["mac_address", "uuid", "serial"]
) -> tuple[str, ...]:
    """Return an identity that a printer had when it last answered, if it is set up by its address.

    It is not used for a printer that is set up by a name: jobs go to that name, whichever device
    has it now.
    """
    learned = printer.learned if printer.addresses else None
    value: str | None = getattr(learned, mark, None)
    return (value,) if value else ()


_DEVICE_KEYS: tuple[tuple[By, Callable[[Device], Iterable[str]]], ...] = (
    ("UUID", lambda device: device.uuids),
    ("MAC", _device_macs),
    ("serial number", lambda device: device.serials),
    ("DNS-SD name", instance_names),
    ("address", lambda device: device.addresses),
    ("host name", lambda device: _names(device.hostnames)),
    ("name", instance_names),
)

_PRINTER_KEYS: dict[By, Callable[[KnownPrinter], Iterable[str]]] = {
    "UUID": lambda printer: (printer.uuid,) if printer.uuid else _learned(printer, "uuid"),
    "MAC": _printer_macs,
    "serial number": lambda printer: (
        (printer.serial,) if printer.serial else _learned(printer, "serial")
    ),
    "address": lambda printer: printer.addresses,
    "host name": lambda printer: _names((printer.host,)) if printer.host else (),
    "DNS-SD name": lambda p: service_names(p.dns_sd_name)[:1] if p.dns_sd_name else (),
    "name": lambda printer: (printer.name.lower(),),
}

BY: tuple[By, ...] = tuple(_PRINTER_KEYS)
"""The kinds of evidence, the strongest first."""


@dataclass(frozen=True, slots=True)
class _Marks:
    mac_address: str | None
    hostnames: tuple[str, ...]
    uuids: tuple[str, ...]


def _first_addresses(marks: dict[str, _Marks]) -> dict[str, str]:
    """Map each IPv4 address to the first address with the same host name and the same UUID."""
    heads: dict[tuple[str, str], str] = {}
    first: dict[str, str] = {}
    for address, own in marks.items():
        if not _is_ipv6(address):
            keys = [(name.lower(), uuid) for name in own.hostnames for uuid in own.uuids]
            first[address] = next((heads[key] for key in keys if key in heads), address)
            for key in keys:
                heads.setdefault(key, first[address])
    return first


def _owners(marks: dict[str, _Marks]) -> dict[str, str]:
    """Map an IPv6 address to the only IPv4 address with its MAC, or else its host name."""
    by_mark: dict[str, list[str]] = defaultdict(list)
    for address, own in marks.items():
        if not _is_ipv6(address):
            for mark in _mark_keys(own):
                by_mark[mark].append(address)
    owners: dict[str, str] = {}
    for address, own in marks.items():
        if _is_ipv6(address):
            candidates = (by_mark.get(mark, []) for mark in _mark_keys(own))
            only = next((each[0] for each in candidates if len(each) == 1), None)
            if only is not None:
                owners[address] = only
    return owners


def _mark_keys(marks: _Marks) -> tuple[str, ...]:
    mac = (marks.mac_address,) if marks.mac_address else ()
    return (*mac, *(name.lower() for name in marks.hostnames))


def _device(
    addresses: Sequence[str],
    marks: dict[str, _Marks],
    observations: dict[str, list[PortObservation]],
) -> Device:
    own = [marks[address] for address in addresses]
    return Device(
        addresses=tuple(addresses),
        mac_addresses=tuple(dict.fromkeys(each.mac_address for each in own if each.mac_address)),
        hostnames=tuple(dict.fromkeys(name for each in own for name in each.hostnames)),
        observations=tuple(each for address in addresses for each in observations.get(address, ())),
    )


def _is_ipv6(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).version == 6
