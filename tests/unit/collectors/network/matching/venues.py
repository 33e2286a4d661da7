"""Generates venues whose true state is known: devices, names, queues, and what changes over time.

The truth of a queue is what CUPS would do: resolve the device URI, connect, print. It is computed
from the venue alone, without the product's matching. `Venue.observe` returns what the collector
would observe in the venue.
"""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from collectors.contract import Interface, InterfaceAddress, LearnedPrinter
from collectors.network.correlate import correlate
from collectors.network.mdns.announced import LinkLayer, choose_services, identifiers_of
from collectors.network.observations import Evidence, KnownPrinter, MdnsService, Observations
from collectors.network.printers.cups import queue_printer
from collectors.network.printers.host_names import resolve_hosts, with_literal_addresses
from collectors.network.scan.scan import PortState, ScannedHost
from collectors.shared.addresses import network_of
from collectors.shared.host.local_network import LocalInterface, LocalNetwork

LAN, VLAN = "192.168.1", "10.20.0"
ULA, GUA = "fd00:1", "2001:db8:1"
SHARED_UUID = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
SHARED_SERIAL = "SN77777B"
MODELS = ("EPSON TM-T20II", "Star TSP143IIIW", "Brother HL-L2350DW", "EPSON TM-m30")
NAMES = ("Kitchen", "Bar", "Receipt", "Office")
PORTS = (80, 515, 631, 9100)
LOOKUP_SLOW_S = 5.0  # the duration of a look-up while DNS is slow or dead
TILL = LocalNetwork(
    interfaces=(
        LocalInterface(
            Interface(
                name="eth0",
                mac_address="02:00:00:00:00:01",
                addresses=(
                    InterfaceAddress(f"{LAN}.2", "ipv4", 24),
                    InterfaceAddress(f"{ULA}::2", "ipv6", 64),
                    InterfaceAddress(f"{GUA}::2", "ipv6", 64),
                ),
            )
        ),
    )
)
NETWORKS = tuple(network_of(a) for a in TILL.interfaces[0].interface.addresses)

# A queue finds its printer by an address (raw, lpd, ipp, ipp-uuid), by a host name (dns: ending in
# .lan, bare: without a domain, local: ending in .local), or by a DNS-SD name (dnssd, implicit).
QueueKind = Literal["raw", "lpd", "ipp", "ipp-uuid", "dns", "bare", "local", "dnssd", "implicit"]
# Kinds that are listed twice are chosen twice as often.
KINDS: tuple[QueueKind, ...] = (
    *("raw", "lpd", "ipp", "ipp-uuid", "dns", "bare", "local", "dnssd", "implicit"),
    *("raw", "ipp", "dns", "dnssd"),
)
DeviceKind = Literal["printer", "relay", "telephone", "camera", "computer"]
OPEN: dict[DeviceKind, tuple[int, ...]] = {
    "printer": PORTS,
    "relay": (22, 631),
    "telephone": (),
    "camera": (80, 554),
    "computer": (22, 80),
}
SERVER_PORTS = (22, 80, 631)
SCHEMES = {"raw": ("socket", 9100), "lpd": ("lpd", 515), "ipp": ("ipp", 631)}


@dataclass
class Link:
    """An interface of a device."""

    mac: str
    ipv4: str
    is_up: bool = True


@dataclass
class Device:
    """A device of the venue.

    Args:
        links: Its interfaces.
        services: Maps each DNS-SD type to a port.
        is_gone: Another printer has replaced the device, which stays off.
        announces_all: Its first interface announces the addresses of all its interfaces.
        is_hidden: The device is behind a Wi-Fi repeater, which replaces the device's MAC with its
            own.
        relayed: The printer whose UUID this relay announces. A relay is a computer that offers the
            printer over AirPrint.
        path: The path of its queue. ``printers/NAME`` means that the device is a computer that
            shares a printer.
        announces_link_local: Its announcements reach this machine with only its link-local IPv6
            address.
    """

    number: int
    kind: DeviceKind
    links: list[Link]
    host: str
    instance: str
    is_on: bool = True
    is_gone: bool = False
    ports: tuple[int, ...] = ()
    services: dict[str, int] = field(default_factory=dict)
    uuid: str | None = None
    serial: str | None = None
    model: str | None = None
    has_mdns: bool = True
    answers_ipp: bool = True
    announces_all: bool = False
    is_hidden: bool = False
    ipv6: tuple[str, ...] = ()
    relayed: "Device | None" = None
    path: str = "ipp/print"
    announces_link_local: bool = False

    @property
    def addresses(self) -> list[str]:
        up = [link.ipv4 for link in self.links if link.is_up]
        return [*up, *(self.ipv6 if up else ())]

    @property
    def announced_addresses(self) -> list[str]:
        up = [link for link in self.links if link.is_up]
        has_only_link_local = self.announces_link_local and up and not self.is_hidden
        return [_link_local(up[0].mac)] if has_only_link_local else self.addresses

    @property
    def is_server(self) -> bool:
        return self.path.startswith("printers/")

    @property
    def is_in_vlan(self) -> bool:
        return self.links[0].ipv4.startswith(f"{VLAN}.")


@dataclass
class Queue:
    """A queue of this machine, as it was set up for its ``device``.

    Args:
        target: The address, host name or DNS-SD name in the URI.
        port: 0 if the queue has a DNS-SD name, because the announcement then contains the port.
        service: The DNS-SD type of the announcement.
        uuid: The UUID in the URI of a ``dnssd`` queue.
        path: The path of the queue at a computer that shares a printer, "" at other devices.
    """

    name: str
    kind: QueueKind
    uri: str
    device: Device
    target: str
    port: int
    service: str = ""
    uuid: str | None = None
    path: str = ""

    def known_printer(self) -> KnownPrinter:
        printer = queue_printer(self.name, "", self.uri, None)
        assert printer is not None
        return with_literal_addresses([printer])[0]


@dataclass
class Truth:
    """What CUPS would do.

    ``addresses`` are the addresses to which CUPS resolves the URI. ``device`` is the device that
    accepts the job, None if no device does.
    """

    addresses: tuple[str, ...] = ()
    device: Device | None = None


class Venue:
    """One venue. `change` changes the venue as it may change between two reports."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.devices: list[Device] = []
        self.queues: list[Queue] = []
        self.dns: dict[str, str] = {}
        self.dns_state: Literal["good", "slow", "dead"] = "good"
        self.repeater_mac = "0e:00:00:00:0f:01"
        self._last_number = {LAN: 20, VLAN: 20}
        self._populate()

    # ------------------------------------------------------------------ devices

    def _chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def _address(self, net: str = LAN) -> str:
        self._last_number[net] += 1
        return f"{net}.{self._last_number[net]}"

    def _mac(self, number: int, link: int = 0) -> str:
        return f"00:1b:a9:{link:02x}:01:{number:02x}"

    def _populate(self) -> None:
        for _ in range(self.random.randint(3, 7)):
            self._add_printer()
        for kind in self.random.choices(("telephone", "camera", "computer"), k=4):
            self._add_other(kind)
        printers = [device for device in self.devices if device.kind == "printer"]
        if self._chance(40):
            for device in self.random.sample(self.devices, self.random.randint(2, 5)):
                device.is_hidden = not device.is_in_vlan
        for printer in printers:
            if printer.uuid and self._chance(15):
                self._add_relay(printer)
            for _ in range(self.random.choice((0, 1, 1, 2))):
                self.add_queue(printer, self.random.choice(KINDS))

    def _add_printer(self) -> None:
        number, net = len(self.devices), VLAN if self._chance(12) else LAN
        links = [Link(self._mac(number), self._address(net))]
        if net == LAN and self._chance(20):
            links.append(Link(self._mac(number, 1), self._address()))
        mac = links[0].mac.replace(":", "")
        uuid = {
            0: f"d4d1e202-baff-3fff-46ff-3ab6db0000{number:02x}",
            1: f"e3248000-80ce-11db-8000-{mac}",
            2: SHARED_UUID,
        }.get(self.random.randrange(4))
        # Two printers that share both the UUID and the serial number cannot be distinguished.
        shared = SHARED_SERIAL if uuid != SHARED_UUID else None
        serial = self.random.choice((f"SN{number:05}A", shared, "00000000", None))
        has_mac_in_name = self._chance(50)
        name = f"{self.random.choice(NAMES)} {number}"
        device = Device(
            number,
            "printer",
            links,
            f"BRN{mac.upper()}" if has_mac_in_name else f"printer-{number}",
            name,
            ports=PORTS,
            services={"_ipp._tcp": 631, "_pdl-datastream._tcp": 9100},
            uuid=uuid,
            serial=serial,
            model=self.random.choice(MODELS),
            has_mdns=self._chance(75),
            answers_ipp=self._chance(60),
            announces_all=self._chance(50),
        )
        if self._chance(15):
            device.ports, device.services = SERVER_PORTS, {"_ipp._tcp": 631}
            device.path, device.serial, device.answers_ipp = f"printers/q{number}", None, True
        if net == LAN and self._chance(30):
            device.ipv6 = (f"{ULA}::{number + 0x100:x}", _eui64(links[0].mac))
        has_one_address = net == LAN and len(links) == 1
        device.announces_link_local = has_one_address and number % 5 < 2  # two of five devices
        self.devices.append(device)
        if self._chance(80):
            # The default host name of a Brother printer contains the MAC of its wired interface.
            self.dns[f"{device.host.lower()}.lan"] = links[0 if has_mac_in_name else -1].ipv4
        if self._chance(60):
            self.dns[device.host.lower()] = links[0].ipv4

    def _add_other(self, kind: DeviceKind) -> None:
        number = len(self.devices)
        links = [Link(self._mac(number), self._address())]
        self.devices.append(Device(number, kind, links, "", "", ports=OPEN[kind], has_mdns=False))

    def _add_relay(self, printer: Device) -> None:
        number = len(self.devices)
        relay = Device(
            number,
            "relay",
            [Link(self._mac(number), self._address())],
            f"relay-{number}",
            f"AirPrint {printer.instance}",
            ports=OPEN["relay"],
            services={"_ipp._tcp": 631},
            uuid=printer.uuid,
            answers_ipp=False,
            relayed=printer,
        )
        self.devices.append(relay)

    # ------------------------------------------------------------------ queues

    def add_queue(self, device: Device, kind: QueueKind) -> None:
        name, is_shared = f"q{len(self.queues)}", device.is_server
        if is_shared:
            kind = "ipp" if kind in ("raw", "lpd", "ipp-uuid") else kind
        address = self.random.choice(device.addresses or [device.links[0].ipv4])
        at = f"[{address}]" if ":" in address else address
        query = f"?uuid={device.uuid}" if device.uuid and self._chance(50) else ""
        uuid = device.uuid if query else None
        instance = device.instance
        if kind in ("raw", "lpd", "ipp"):
            scheme, port = SCHEMES[kind]
            path = device.path if is_shared else ""
            queue = Queue(name, kind, f"{scheme}://{at}/{path}", device, address, port, path=path)
        elif kind == "ipp-uuid":
            queue = Queue(name, kind, f"ipp://{at}/ipp/print{query}", device, address, 631)
        elif kind in ("dns", "bare", "local"):
            suffix = {"dns": ".lan", "bare": "", "local": ".local"}[kind]
            host = f"{device.host.lower()}{suffix}"
            scheme, port = self.random.choice((*SCHEMES.values(),))
            path = device.path if is_shared else ""
            scheme, port = ("ipp", 631) if is_shared else (scheme, port)
            queue = Queue(name, kind, f"{scheme}://{host}/{path}", device, host, port, path=path)
        elif kind == "dnssd":
            service = self.random.choice(("_ipp._tcp", "_ipp._tcp", "_pdl-datastream._tcp"))
            uri = f"dnssd://{instance.replace(' ', '%20')}.{service}.local/{query}"
            queue = Queue(name, kind, uri, device, instance, 0, service, uuid)
        else:
            target = instance.replace(" ", "_")
            uri = f"implicitclass://{target}/"
            queue = Queue(name, kind, uri, device, target, 0, "_ipp._tcp")
        self.queues.append(queue)

    # ------------------------------------------------------------------ changes

    def change(self) -> None:
        """Change the venue between two reports."""
        self.dns_state = self.random.choice(("good", "good", "good", "slow", "dead"))
        for device in list(self.devices):
            device.is_on = not device.is_gone and not self._chance(15)
            if device.kind == "printer" and not device.is_gone:
                self._change_printer(device)
        if self._chance(20):
            self._swap()
        if self._chance(15):
            hidden = self._chance(50)
            for device in self.random.sample(self.devices, 3):
                device.is_hidden = hidden and not device.is_in_vlan

    def _change_printer(self, device: Device) -> None:
        if self._chance(15):
            self._renumber(device)
        if self._chance(8):
            device.instance = f"{device.instance} (2)"
        if self._chance(8):
            device.has_mdns = not device.has_mdns
        if self._chance(6):
            device.services = dict(
                [self.random.choice([*device.services.items(), ("_http._tcp", 80)])]
            )
        if self._chance(6):
            closed = self.random.choice(device.ports)
            device.ports = tuple(port for port in device.ports if port != closed)
        if device.is_server and self._chance(15):
            device.path += "-new"
        if len(device.links) > 1 and self._chance(30):
            device.links[self.random.randrange(2)].is_up ^= True
            if not any(link.is_up for link in device.links):
                device.links[0].is_up = True
        if not device.is_on and self._chance(30):
            self._replace(device)

    def move(self, device: Device) -> None:
        """Give all interfaces of a device new addresses."""
        for link in device.links:
            link.ipv4 = self._address(VLAN if device.is_in_vlan else LAN)

    def _renumber(self, device: Device) -> None:
        """Give a printer a new address, as DHCP does.

        Sometimes its DNS names also get the new address, a camera gets the old address, or a new
        queue is set up for the printer.
        """
        link = self.random.choice(device.links)
        old, link.ipv4 = link.ipv4, self._address(VLAN if device.is_in_vlan else LAN)
        if self._chance(50):
            self.dns = {n: link.ipv4 if a == old else a for n, a in self.dns.items()}
        if self._chance(25):
            self._add_other("camera")
            self.devices[-1].links[0].ipv4 = old
        if self._chance(40):
            self.add_queue(device, self.random.choice(("raw", "ipp", "dns", "dnssd")))

    def _replace(self, device: Device) -> None:
        """Add a printer. If it is in the same network as ``device``, it replaces ``device`` and
        gets its address.
        """
        self._add_printer()
        new = self.devices[-1]
        if new.is_in_vlan == device.is_in_vlan:
            new.links = [replace(new.links[0], ipv4=device.links[0].ipv4)]
            device.is_gone = True

    def _swap(self) -> None:
        """Swap the addresses of two printers."""
        candidates = (
            device for device in self.devices if not device.is_gone and not device.is_in_vlan
        )
        printers = [device for device in candidates if device.kind == "printer"]
        if len(printers) > 1:
            first, second = self.random.sample(printers, 2)
            links = first.links[0], second.links[0]
            links[0].ipv4, links[1].ipv4 = links[1].ipv4, links[0].ipv4

    # ------------------------------------------------------------------ what CUPS does

    def device_at(self, address: str) -> Device | None:
        """Return the device that has or announces an address, None if no device does."""
        on = (device for device in self.devices if device.is_on)
        candidates = (
            device for device in on if address in (*device.addresses, *device.announced_addresses)
        )
        return next(candidates, None)

    def truth(self, queue: Queue) -> Truth:
        """Return what CUPS would do with a job of ``queue``."""
        endpoints = self._resolve(queue)
        for address, port in endpoints:
            device = self.device_at(address)
            if device is not None and port in device.ports:
                if queue.path and device.is_server and queue.path != device.path:
                    return Truth(tuple(a for a, _ in endpoints))  # the server has no such queue
                return Truth(tuple(a for a, _ in endpoints), device)
        return Truth(tuple(a for a, _ in endpoints))

    def _resolve(self, queue: Queue) -> list[tuple[str, int]]:
        if queue.kind in ("raw", "lpd", "ipp", "ipp-uuid"):
            return [(queue.target, queue.port)]
        if queue.kind in ("dns", "bare"):
            return [(address, queue.port) for address in self._dns(queue.target)]
        if queue.kind == "local":
            host = queue.target.removesuffix(".local")
            devices = (d for d in self._announcing() if d.host.lower() == host)
            return [(a, queue.port) for d in devices for a in d.announced_addresses]
        return [
            (address, device.services[queue.service])
            for device in self._announcing()
            if queue.service in device.services and self._has_name(queue, device)
            for address in device.announced_addresses
        ]

    def _has_name(self, queue: Queue, device: Device) -> bool:
        if queue.kind == "implicit":
            plain = device.instance.replace(" (", "_").replace(")", "").replace(" ", "_")
            return plain == queue.target
        return device.instance == queue.target and (
            not queue.uuid or not device.uuid or queue.uuid == device.uuid
        )

    def _dns(self, name: str) -> tuple[str, ...]:
        return (self.dns[name],) if name in self.dns and self.dns_state != "dead" else ()

    def _announcing(self) -> Iterator[Device]:
        """Yield the devices whose mDNS reaches this machine."""
        for device in self.devices:
            if device.is_on and device.has_mdns and device.services and not device.is_in_vlan:
                yield device

    # ------------------------------------------------------------------ what the collector observes

    def known_printers(self, learned: dict[str, LearnedPrinter]) -> list[KnownPrinter]:
        """Return the printers of this machine, with resolved names and learned identities."""

        def resolve(name: str) -> tuple[str, ...]:
            return self._dns(name)

        known = [queue.known_printer() for queue in self.queues]
        took_s = LOOKUP_SLOW_S if self.dns_state != "good" else 0.0
        return [
            replace(host, learned=learned.get(host.id), lookup_s=took_s if host.host else 0.0)
            for host in resolve_hosts(known, time.monotonic() + 60, resolve)
        ]

    def mac(self, device: Device, link: Link) -> str | None:
        """Return the MAC that this machine observes, None for a device in the VLAN."""
        if device.is_in_vlan:
            return None
        return self.repeater_mac if device.is_hidden else link.mac

    def observe(self, known: list[KnownPrinter]) -> Observations:
        """Return what the collector would observe. ``known`` are the printers of this machine."""
        printer_ports = {(a, p.port) for p in known for a in p.addresses if p.port}
        scanned = list(self._scanned(printer_ports))
        macs = {host.address: host.mac_address for host in scanned if host.mac_address}
        selection = choose_services(
            list(self._services()), LinkLayer(macs, (), NETWORKS), identifiers_of(known)
        )
        scanned_addresses = {host.address for host in scanned}
        silent: dict[tuple[str, int], tuple[PortState, ...]] = {
            (address, port): ("no-answer",)
            for address, port in printer_ports
            if address not in scanned_addresses and not address.startswith(f"{LAN}.")
        }
        observed = correlate(
            local=TILL,
            scanned=scanned,
            services=selection.services,
            evidence=list(self._answers({host.address for host in scanned})),
            scanned_networks=(f"{LAN}.0/24",),
            attempts=silent,
        )
        return observed.without(TILL.own_addresses)

    def _scanned(self, printer_ports: set[tuple[str, int]]) -> Iterator[ScannedHost]:
        contacted = {address for address, _ in printer_ports}
        for device in (device for device in self.devices if device.is_on):
            links = {link.ipv4: link for link in device.links}
            for address in device.addresses:
                if not address.startswith(f"{LAN}.") and address not in contacted:
                    continue
                tried = {*PORTS} if address in links and not device.is_in_vlan else set()
                tried |= {port for a, port in printer_ports if a == address}
                closed = tuple(sorted(tried - {*device.ports}))
                drops_packets = device.kind == "telephone"
                link = links.get(address, device.links[0])
                yield ScannedHost(
                    address,
                    mac_address=self.mac(device, link),
                    open_ports=tuple(sorted(tried & {*device.ports})),
                    refused_ports=() if drops_packets else closed,
                    silent_ports=closed if drops_packets else (),
                )

    def _services(self) -> Iterator[MdnsService]:
        for device in self._announcing():
            txt = (("rp", device.path), ("ty", device.model or ""))
            txt += (("uuid", device.uuid),) if device.uuid else ()
            up = [link.ipv4 for link in device.links if link.is_up]
            is_link_local = device.announced_addresses != device.addresses
            for address in up[:1] if device.announces_all or is_link_local else up:
                announced = (*(up if device.announces_all else (address,)), *device.ipv6)
                announced = tuple(device.announced_addresses) if is_link_local else announced
                for service_type, port in device.services.items():
                    host = f"{device.host}.local"
                    yield MdnsService(
                        device.instance,
                        service_type,
                        host,
                        announced,
                        port,
                        txt,
                        "eth0",
                        announcer=address,
                    )

    def _answers(self, scanned: set[str]) -> Iterator[Evidence]:
        for device in (device for device in self.devices if device.is_on and device.answers_ipp):
            for address in device.addresses:
                if address in scanned and 631 in device.ports and device.kind == "printer":
                    serial = None if device.serial == "00000000" else device.serial
                    yield Evidence(
                        address,
                        631,
                        uuid=device.uuid,
                        make_model=device.model,
                        serial=serial,
                        state="idle",
                        queue=device.path,
                    )
                    for queue in self.queues:
                        if queue.path and device.is_server and queue.path != device.path:
                            yield Evidence(address, 631, queue=queue.path, is_missing=True)


def _eui64(mac: str) -> str:
    return f"{GUA}:0:{_interface_identifier(mac)}"


def _link_local(mac: str) -> str:
    return f"fe80::{_interface_identifier(mac)}"


def _interface_identifier(mac: str) -> str:
    """Return the last four groups of an IPv6 address that contains a MAC (RFC 4291, appendix A)."""
    parts = [int(part, 16) for part in mac.split(":")]
    octets = [parts[0] ^ 2, *parts[1:3], 0xFF, 0xFE, *parts[3:]]
    return ":".join(f"{octets[i] << 8 | octets[i + 1]:x}" for i in range(0, 8, 2))
