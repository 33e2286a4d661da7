"""Groups observations into devices, and finds devices by their MAC, UUID, serial number or name."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from collectors.network.matching.identity import mac_in_address
from collectors.network.matching.models import is_other_model, is_same_plain_model, plain_model
from collectors.network.observations import (
    HostObservation,
    MdnsService,
    Observations,
    PortObservation,
)
from collectors.shared.addresses import PRINT_PORTS, RAW_PRINT_PORTS, numeric_order

_INTERFACES_MAX = 4  # if more addresses have the same name, they are different devices
_NOT_IN_QUEUE_NAMES = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Device:
    """One device. ``addresses`` has its IPv4 addresses first, then the IPv6 addresses that are
    certainly its own. ``is_alive``: it answered a connection, or something about it was announced.
    ``is_present``: it is alive, or it answered ARP during the scan.
    """

    addresses: tuple[str, ...]
    mac_addresses: tuple[str, ...]
    hostnames: tuple[str, ...]
    observations: tuple[PortObservation, ...]
    is_alive: bool = True
    is_present: bool = True

    @property
    def address(self) -> str:
        return self.addresses[0]

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(model for observation in self.observations for model in observation.models)

    @property
    def uuids(self) -> tuple[str, ...]:
        return tuple(uuid for observation in self.observations for uuid in observation.uuids)

    @property
    def serials(self) -> tuple[str, ...]:
        return tuple(serial for observation in self.observations for serial in observation.serials)

    @property
    def instances(self) -> tuple[str, ...]:
        return tuple(name for observation in self.observations for name in observation.instances)

    @property
    def print_ports(self) -> tuple[PortObservation, ...]:
        return tuple(port for port in self.observations if port.port in PRINT_PORTS)


def group_devices(observed: Observations) -> tuple[Device, ...]:
    """Group the observations into devices. Each IPv4 address is a device, with these exceptions.

    An IPv6 address belongs to the IPv4 address with its MAC or host name, if there is exactly one
    such IPv4 address. IPv4 addresses with the same host name, or with the same UUID and serial
    number, are one device, for example a printer with cable and Wi-Fi. They are separate devices if
    something else differs (`is_one_device`), or if there are more than four of them. Addresses with
    only the same MAC stay separate devices, because a repeater or proxy ARP may answer with its own
    MAC. MACs are taken from the scan and from IPv6 addresses. `HostObservation.mac_address` is not
    used, because it may be the MAC of an earlier device, from the neighbour table.
    """
    observations: dict[str, list[PortObservation]] = defaultdict(list)
    for port in observed.ports.values():
        observations[port.address].append(port)
    scanned_hosts = {a for a, host in observed.hosts.items() if host.scanned}
    by_address = {
        address: _device((address,), observed.hosts, observations)
        for address in sorted({*scanned_hosts, *observations}, key=numeric_order)
    }
    names = _names(observed)
    for address, device in by_address.items():
        # A UUID and a serial number together count like a host name.
        names[address] |= {f"{uuid} {n}" for uuid in device.uuids for n in device.serials}
        if ":" in address:
            # A service with an IPv4 address is not listed at its IPv6 addresses, so `_names` does
            # not return the host name of the service for an IPv6 address.
            names[address] |= {name.lower() for name in device.hostnames}
    first = _first_addresses(by_address, names)
    owners = _owners(by_address, names, first)
    members: dict[str, list[str]] = {}
    for address in by_address:
        owner = owners.get(address, address)
        members.setdefault(first.get(owner, owner), []).append(address)
    return tuple(_device(group, observed.hosts, observations) for group in members.values())


class DeviceIndex:
    """Finds devices by their addresses and by each kind of identity."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self.devices = tuple(devices)
        self._at = {address: device for device in devices for address in device.addresses}
        self._stores: dict[str, dict[str, list[Device]]] = {}
        for kind in ("mac_addresses", "uuids", "serials", "hostnames", "instances"):
            store: dict[str, list[Device]] = defaultdict(list)
            for device in devices:
                for value in dict.fromkeys(_keys(kind, device)):
                    store[value].append(device)
            self._stores[kind] = store

    def at(self, address: str) -> Device | None:
        return self._at.get(address)

    def having(self, kind: str, value: str | None) -> tuple[Device, ...]:
        """Return the devices with a value. ``kind`` is an attribute of `Device`.

        A host name is compared with and without ``.local``. An instance name also matches in the
        form of a queue name. The last three bytes of a MAC also match.
        """
        if not value:
            return ()
        key = value.lower() if kind in _LOWER_CASE_KINDS else value
        return tuple(self._stores[kind].get(key, ()))

    def is_shared(self, mac_address: str, old_address: str = "") -> bool:
        """Return whether several devices have this MAC. Then it identifies none of them.

        A device at ``old_address`` counts only if it answers: its entry in the neighbour table
        may be from before the printer left this address.
        """
        devices = self.having("mac_addresses", mac_address)
        counted = [d.is_alive or (d.is_present and old_address not in d.addresses) for d in devices]
        return sum(counted) > 1

    def printers(self) -> Iterator[Device]:
        """Yield the devices that are certainly printers, because of a model or a raw print port.

        A device that was seen only by IPv6 is left out, because it may be one of the devices
        with an IPv4 address.
        """
        for device in self.devices:
            ports = device.print_ports if ":" not in device.address else ()
            if any(e.models or (e.port in RAW_PRINT_PORTS and e.contact) for e in ports):
                yield device

    def of_model(self, model: str | None) -> Iterator[Device]:
        plain_name = plain_model(model)
        for device in self.devices if plain_name else ():
            if any(is_same_plain_model(plain_name, plain_model(name)) for name in device.models):
                yield device


def service_names(name: str) -> tuple[str, ...]:
    """Return a DNS-SD instance name in the two forms that are compared.

    The first is the name in lower case. The second is the queue name that cups-browsed makes from
    it: ``Brother HL-L2350DW`` becomes ``brother_hl_l2350dw``.
    """
    lower = name.lower()
    return (lower, _NOT_IN_QUEUE_NAMES.sub("_", lower).strip("_"))


def host_names(name: str) -> tuple[str, ...]:
    """Return a host name in the two forms that are compared: with and without ``.local``."""
    plain = name.lower().rstrip(".")
    return (plain, plain.removesuffix(".local"))


def is_one_device(one: Device, other: Device) -> bool:
    """Return whether nothing shows that two addresses belong to different devices.

    A different UUID, serial number or model shows this, and so do different open ports, because the
    interfaces of one device accept connections to the same ports.
    """
    if differ(one.uuids, other.uuids) or differ(one.serials, other.serials):
        return False
    open_ports = [
        {e.port for e in device.observations if e.contact == "open"} for device in (one, other)
    ]
    if open_ports[0] != open_ports[1] and all(open_ports):
        return False
    return not any(is_other_model(a, b) for a in one.models for b in other.models)


def differ(values: Collection[str], other_values: Collection[str]) -> bool:
    """Return whether both have values, but none in common."""
    return bool(values and other_values) and not set(values) & set(other_values)


_LOWER_CASE_KINDS = ("hostnames", "instances")


def _keys(kind: str, device: Device) -> Iterator[str]:
    for value in getattr(device, kind):
        if kind == "mac_addresses":
            yield from (value, value[-8:])  # the whole MAC, and its last three bytes
        elif kind == "instances":
            yield from service_names(value)
        elif kind == "hostnames":
            yield from host_names(value)
        else:
            yield value


def _device(
    addresses: Sequence[str],
    hosts: Mapping[str, HostObservation],
    observations: Mapping[str, Sequence[PortObservation]],
) -> Device:
    scanned_hosts = [hosts[a].scanned for a in addresses if a in hosts]
    scanned = [host for host in scanned_hosts if host is not None]
    ports = [port for address in addresses for port in observations.get(address, ())]
    is_alive = bool(ports) or any(host.is_answering for host in scanned)
    return Device(
        addresses=tuple(addresses),
        mac_addresses=tuple(dict.fromkeys(h.mac_address for h in scanned if h.mac_address)),
        hostnames=tuple(dict.fromkeys(name for port in ports for name in port.hostnames)),
        observations=tuple(ports),
        is_alive=is_alive,
        is_present=is_alive or any(host.is_confirmed for host in scanned),
    )


def _names(observed: Observations) -> defaultdict[str, set[str]]:
    """Return the host names of each address in lower case.

    A name that only another host announced counts on two conditions: it is that host's own name,
    and the host at the address announces nothing. Then both addresses are interfaces of one host.
    """
    names: defaultdict[str, set[str]] = defaultdict(set)
    hearsay: list[tuple[str, MdnsService]] = []
    for address, host in observed.hosts.items():
        own_names = {service.hostname for service in host.services if not service.is_hearsay}
        hearsay += ((address, service) for service in host.services if not own_names)
        if host.hostname not in {service.hostname for service in host.services}:
            own_names |= {host.hostname or ""}
        names[address] |= {name.lower() for name in own_names if name}
    announcers = {address: frozenset(own_names) for address, own_names in names.items()}
    for address, service in hearsay:
        names[address] |= {service.hostname.lower()} & announcers.get(
            service.announcer, frozenset()
        )
    return names


def _first_addresses(
    by_address: dict[str, Device], names: Mapping[str, Collection[str]]
) -> dict[str, str]:
    """If a device has several IPv4 addresses, map each of these addresses to the first one."""
    of_name: dict[str, list[str]] = defaultdict(list)
    for address in by_address:
        for name in names[address] if ":" not in address else ():
            of_name[name].append(address)
    first: dict[str, str] = {}
    for addresses in of_name.values():
        pairs = combinations(addresses, 2) if len(addresses) <= _INTERFACES_MAX else ()
        if pairs and all(is_one_device(by_address[a], by_address[b]) for a, b in pairs):
            head = min((first.get(a, a) for a in addresses), key=numeric_order)
            first |= dict.fromkeys(addresses, head)
    return first


def _owners(
    by_address: dict[str, Device], names: Mapping[str, Collection[str]], first: Mapping[str, str]
) -> dict[str, str]:
    """Map each IPv6 address to the only IPv4 device with its MAC, or else with its host name.

    In this function, a mark is such a MAC or name. Devices are given by their ``first`` address. If
    several have the mark, only those that are alive count: the others may be older entries of the
    neighbour table.
    """
    alive = {
        first.get(address, address) for address, device in by_address.items() if device.is_alive
    }
    by_mark: dict[str, set[str]] = defaultdict(set)
    owners: dict[str, str] = {}
    for address, device in by_address.items():
        marks = (*device.mac_addresses, *sorted(names[address]))
        if ":" not in address:
            for mark in marks:
                by_mark[mark].add(first.get(address, address))
            continue
        mac = mac_in_address(address)
        for mark in (*((mac,) if mac else ()), *marks):
            owners_of_mark = by_mark.get(mark, set())
            candidates = owners_of_mark if len(owners_of_mark) == 1 else owners_of_mark & alive
            if len(candidates) == 1:
                (owners[address],) = candidates
                break
    return owners
