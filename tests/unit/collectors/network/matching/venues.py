"""Generates venues whose true state is known.

The UUIDs and serial numbers of printers may be missing, shared or placeholders. Printers change
after their queues have been created.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from hypothesis import strategies as st

from collectors.contract import Interface, InterfaceAddress
from collectors.network.correlate import correlate
from collectors.network.host.local_network import LocalInterface, LocalNetwork
from collectors.network.observations import Evidence, KnownPrinter, MdnsService, Observations
from collectors.network.printers.cups import queue_printer
from collectors.network.printers.names import with_literal_addresses
from collectors.network.scan.scan import ScannedHost

SUBNET = "192.168.1"
SHARED_UUID = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
PLACEHOLDER_UUID = "00000000-0000-0000-0000-000000000000"
MODELS = ("EPSON TM-T20II", "Star TSP143IIIW", "Brother HL-L2350DW", "EPSON TM-m30")
NAMES = ("Kitchen", "Bar", "Receipt")
DRIVERS = (None, "Local Raw Printer", "Generic Text-Only Printer", "{}", "{}, driverless")
TILL = LocalNetwork(
    interfaces=(
        LocalInterface(
            Interface(
                name="eth0",
                mac_address="02:00:00:00:00:01",
                addresses=(InterfaceAddress(f"{SUBNET}.2", "ipv4", 24),),
            )
        ),
    )
)

QueueKind = Literal["raw", "ipp", "ipp-uuid", "dnssd", "dnssd-uuid", "host"]


@dataclass(frozen=True)
class Device:
    """A device of the venue. ``address`` is its current address, None while the device is off."""

    number: int
    home: str
    address: str | None
    model: str | None
    name: str
    uuid: str | None
    serial: str | None
    is_printer: bool = True
    is_announced: bool = True
    is_answering_ipp: bool = True
    is_mac_seen: bool = True

    @property
    def mac_address(self) -> str:
        return f"00:1b:a9:00:00:{self.number:02x}"

    @property
    def reported_uuid(self) -> str | None:
        """The UUID that is visible on the network, or None for a placeholder."""
        is_reporting = self.is_printer and (self.is_announced or self.is_answering_ipp)
        return self.uuid if is_reporting and self.uuid != PLACEHOLDER_UUID else None

    @property
    def reported_serial(self) -> str | None:
        """The serial number that is visible on the network, or None for a placeholder."""
        is_reporting = self.is_printer and self.is_answering_ipp
        return self.serial if is_reporting and self.serial != "00000000" else None

    @property
    def reported_model(self) -> str | None:
        is_reporting = self.is_printer and (self.is_announced or self.is_answering_ipp)
        return self.model if is_reporting else None


@dataclass(frozen=True)
class Queue:
    """A queue of this machine. It was created while its device had the address ``home`` and its
    first name.
    """

    kind: QueueKind
    device: Device
    name: str
    driver: str | None

    @property
    def uuid(self) -> str | None:
        is_in_uri = self.kind in ("ipp-uuid", "dnssd-uuid")
        return self.device.uuid if is_in_uri and self.device.uuid != PLACEHOLDER_UUID else None

    @property
    def model(self) -> str | None:
        """The model that the queue's driver names, None if it names none."""
        return self.device.model if self.driver and self.device.model in self.driver else None

    @property
    def address(self) -> str | None:
        return self.device.home if self.kind in ("raw", "ipp", "ipp-uuid") else None

    def known(self, number: int) -> KnownPrinter:
        query = f"?uuid={self.device.uuid}" if self.kind.endswith("uuid") else ""
        mac = self.device.mac_address.replace(":", "").upper()
        uri = {
            "raw": f"socket://{self.device.home}",
            "ipp": f"ipp://{self.device.home}/ipp/print",
            "ipp-uuid": f"ipp://{self.device.home}/ipp/print{query}",
            "dnssd": f"dnssd://{self.name}._ipp._tcp.local/",
            "dnssd-uuid": f"dnssd://{self.name}._ipp._tcp.local/{query}",
            "host": f"socket://BRN{mac}",
        }[self.kind]
        printer = queue_printer(f"q{number}", self.name, uri, self.driver)
        assert printer is not None
        return with_literal_addresses([printer])[0]


@dataclass(frozen=True)
class Venue:
    """The devices and queues of a venue.

    Args:
        devices: The current devices: printers, to which the queues print, and other devices.
        queues: The print queues of this machine.
        first: The devices when the queues were created. Some were off. Only the identities of the
            devices that were on can be learned.
    """

    devices: tuple[Device, ...]
    queues: tuple[Queue, ...]
    first: tuple[Device, ...]

    def before(self) -> "Venue":
        """Return the venue at the time when the queues were created."""
        return Venue(self.first, self.queues, self.first)

    def whole(self) -> "Venue":
        """Return the venue at the time when the queues were created, with every device on."""
        first = tuple(replace(each, address=each.home) for each in self.first)
        return Venue(first, self.queues, first)

    def known(self) -> list[KnownPrinter]:
        return [queue.known(number) for number, queue in enumerate(self.queues)]

    def at(self, address: str) -> Device | None:
        return next((each for each in self.devices if each.address == address), None)

    def current(self, queue: Queue) -> Device:
        return self.devices[queue.device.number]

    def observed(self) -> Observations:
        there = [each for each in self.devices if each.address is not None]
        observed = correlate(
            local=TILL,
            scanned=[_scanned(each) for each in there],
            services=[_announced(each) for each in there if each.is_announced],
            evidence=[_answer(each) for each in there if each.is_printer and each.is_answering_ipp],
            scanned_networks=(f"{SUBNET}.0/24",),
        )
        return observed.without(TILL.own_addresses)

    def is_beyond_knowledge(self, queue: Queue, device: Device) -> bool:
        """Return whether a device fits all settings of a queue. The settings then cannot show that
        it is not the queue's device.
        """
        pairs = ((queue.uuid, device.reported_uuid), (queue.model, device.reported_model))
        return all(a is None or b is None or a == b for a, b in pairs) and (
            device.address == queue.address
            or (queue.uuid is not None and queue.uuid == device.reported_uuid)
            or (queue.address is None and queue.kind != "host" and queue.name == device.name)
            or _is_twin(queue.device, device)
        )

    def could_be_known(self, queue: Queue, device: Device) -> bool:
        """Return whether the learned identity of the queue's printer shows that ``device`` is a
        different device.
        """
        is_seen = queue.device.is_mac_seen and device.is_mac_seen
        return is_seen and not _is_twin(queue.device, device)


def _is_twin(one: Device, other: Device) -> bool:
    """Return whether two devices have the same UUID and serial number.

    Such devices cannot be distinguished from one device whose Wi-Fi has a different MAC address.
    """
    reported = (other.reported_uuid, other.reported_serial)
    return (one.reported_uuid, one.reported_serial) == reported and None not in reported


def _scanned(device: Device) -> ScannedHost:
    mac = device.mac_address if device.is_mac_seen else None
    ports = (631, 9100) if device.is_printer else (80,)
    refused = () if device.is_printer else (631, 9100)
    return ScannedHost(
        device.address or "", mac_address=mac, open_ports=ports, refused_ports=refused
    )


def _announced(device: Device) -> MdnsService:
    if not device.is_printer:
        txt = (("md", "Chromecast"),)
        return MdnsService(
            device.name, "_googlecast._tcp", "", (device.address or "",), 8009, txt, "eth0"
        )
    txts = (("rp", "ipp/print"), ("ty", device.model), ("uuid", device.uuid))
    txt = tuple((key, value) for key, value in txts if value)
    host = f"device-{device.number}.local"
    return MdnsService(device.name, "_ipp._tcp", host, (device.address or "",), 631, txt, "eth0")


def _answer(device: Device) -> Evidence:
    return Evidence(
        address=device.address or "",
        port=631,
        uuid=device.reported_uuid,
        make_model=device.model,
        serial=device.serial,
        name=device.name,
        state="idle",
        queue="ipp/print",
    )


def _uuid_of(number: int) -> str:
    return f"d4d1e202-baff-3fff-46ff-3ab6db0000{number:02x}"


@st.composite
def venues(draw: Callable[..., Any]) -> Venue:
    """Generate a venue with two to six printers, up to three other devices, and queues.

    After the queues were created, each printer has kept its address, was switched off, got a new
    address, or has swapped its address with another printer.
    """
    total, strangers = draw(st.integers(2, 6)), draw(st.integers(0, 3))
    devices = [
        _device(draw, number, is_stranger=number >= total) for number in range(total + strangers)
    ]
    queues = []
    for device in devices[:total]:
        for _ in range(draw(st.integers(0, 2))):
            kind = draw(st.sampled_from(["raw", "ipp", "ipp-uuid", "dnssd", "dnssd-uuid", "host"]))
            driver = draw(st.sampled_from(DRIVERS))
            driver = driver and driver.format(device.model)
            if kind.endswith("uuid") and device.uuid is None:
                kind = kind.removesuffix("-uuid")
            queues.append(Queue(kind, device, device.name, driver))
    addresses = _draw_addresses(draw, devices, total)
    now = []
    for device, address in zip(devices, addresses, strict=True):
        name = draw(st.sampled_from([device.name, device.name, *NAMES]))
        now.append(replace(device, address=address, name=name))
    first = [
        replace(each, address=None if draw(st.integers(0, 4)) == 0 else each.home)
        for each in devices
    ]
    return Venue(tuple(now), tuple(queues), tuple(first))


def _draw_addresses(
    draw: Callable[..., Any], devices: list[Device], total: int
) -> list[str | None]:
    """Return the current address of each device. Other devices may get the former address of a
    printer.
    """
    addresses: list[str | None] = [device.home for device in devices]
    for number in range(total):
        fate = draw(st.sampled_from(["stays", "stays", "off", "moves", "swaps"]))
        if fate == "off":
            addresses[number] = None
        elif fate == "moves":
            addresses[number] = f"{SUBNET}.{150 + number}"
        elif fate == "swaps":
            other = draw(st.integers(0, total - 1))
            addresses[number], addresses[other] = addresses[other], addresses[number]
    free = [each.home for each in devices[:total] if each.home not in addresses]
    for number in range(total, len(devices)):
        if free and draw(st.booleans()):
            addresses[number] = free.pop()
    return addresses


def _device(draw: Callable[..., Any], number: int, *, is_stranger: bool) -> Device:
    uuid = draw(st.sampled_from(["own", "own", "own", "shared", "placeholder", None]))
    serial = draw(st.sampled_from([f"SN{number:05}A", "00000000", "SN77777B", None]))
    home = f"{SUBNET}.{50 + number}"
    return Device(
        number=number,
        home=home,
        address=home,
        model=draw(st.sampled_from(MODELS)),
        name=draw(st.sampled_from([*NAMES, f"Printer {number}"])),
        uuid={"own": _uuid_of(number), "shared": SHARED_UUID, "placeholder": PLACEHOLDER_UUID}.get(
            uuid
        ),
        serial=serial,
        is_printer=not is_stranger or draw(st.booleans()),
        is_announced=draw(st.booleans()),
        is_answering_ipp=draw(st.booleans()),
        is_mac_seen=draw(st.integers(0, 4)) > 0,
    )
