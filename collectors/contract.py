"""The input of a collector (a job with bounds) and its output (events with facts).

The agent and its child process both import these plain frozen dataclasses. A collector does not
shorten facts to the limits of the service's contract: the agent does that. A string may hold any
text that a device on the network sent, cut to ``TEXT_MAX`` characters.

Addresses are IPv4 or IPv6 texts without a scope id. MACs have the form ``aa:bb:cc:dd:ee:ff`` in
lower case. Times are ISO 8601 in UTC. The name of a duration ends with its unit.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

TEXT_MAX = 4096
"""A collector keeps at most this many characters of a string from another device or program."""

EVENT_MAX_BYTES = 16 * 1024 * 1024
"""The longest line that a child may write. Facts are normally much shorter. Facts that are too long
are cut (``event_lines.py``)."""

# ---------------------------------------------------------------------------- jobs

PRINTER_STEP = "printer"
"""A `Failure` with this ``step`` reports that this machine does not have `NetworkJob.printer`."""

Transport = Literal["network", "serial", "ble", "usb"]


@dataclass(frozen=True, slots=True)
class ConfiguredPrinter:
    """A ``[[printers]]`` entry of the configuration.

    ``address`` is ``host:port``, a host, a MAC or a device path.
    """

    id: str
    name: str
    transport: Transport = "network"
    address: str | None = None


DeviceKind = Literal["payment-terminal", "kitchen-display", "scale", "cash-drawer", "other"]


@dataclass(frozen=True, slots=True)
class WatchedDevice:
    """A ``[[watched_devices]]`` entry of the configuration. It has an address, a MAC, or both.

    A device of the kind "payment-terminal" gets no connection and no data: its addresses are only
    resolved by ARP.
    """

    name: str
    kind: DeviceKind = "other"
    address: str | None = None
    mac_address: str | None = None


@dataclass(frozen=True, slots=True)
class LearnedPrinter:
    """The identity that a printer of this machine, or a watched device, had when it last answered.

    ``setup`` joins the host, MAC, DNS-SD name, UUID and serial number with which the printer was
    set up at that time. If they have changed since, the identity is not used. A MAC, UUID or serial
    number is learned only if no other device in the same report has it. ``replaced_at`` is the time
    at which a different device was accepted as this printer.
    """

    id: str
    setup: str = ""
    seen_at: str = ""
    address: str = ""
    mac_address: str | None = None
    uuid: str | None = None
    serial: str | None = None
    dns_sd_name: str | None = None
    hostname: str | None = None
    model: str | None = None
    replaced_at: str | None = None


@dataclass(frozen=True, slots=True)
class NetworkJob:
    """Bounds of one network report.

    If ``subnets`` is empty, the private networks of this machine are scanned. ``exclude`` are the
    addresses and networks that are not contacted. With ``device_only`` the collector contacts only
    this machine's own addresses, and no packet leaves the machine. ``ports`` are tried on each
    host. ``max_hosts`` limits the addresses to scan, and ``max_services`` the announced services.
    ``mdns_service_types`` are browsed in addition to the usual types. ``enrich`` allows the queries
    of the allow-list (IPP attributes, web page titles, reverse mDNS). If ``snmp_community`` is not
    empty, it allows one SNMP query to each of this machine's printers.

    ``devices`` are the watched devices. The payment terminals among them are only resolved by ARP.
    ``learned`` are the identities that this machine's printers and the watched devices had in
    earlier reports.

    With ``printers_only`` the collector contacts this machine's printers and nothing else. If
    ``printer`` is set, it contacts only the printer with this id, name or address.
    """

    ports: tuple[int, ...] = ()
    max_hosts: int = 256
    max_services: int = 1024
    max_duration_s: float = 30.0
    subnets: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    mdns_service_types: tuple[str, ...] = ()
    printers: tuple[ConfiguredPrinter, ...] = ()
    device_only: bool = False
    enrich: bool = True
    snmp_community: str = field(default="", repr=False)
    learned: tuple[LearnedPrinter, ...] = ()
    devices: tuple[WatchedDevice, ...] = ()
    printers_only: bool = False
    printer: str = ""
    kind: Literal["network"] = "network"


@dataclass(frozen=True, slots=True)
class ApplicationJob:
    """Bounds of one application snapshot.

    The collector connects to ``service_url`` to measure the connection, unless the configuration
    names a proxy for it (``has_proxy``). It sends no request there.
    It resolves the addresses of ``devices`` by ARP, except addresses in ``exclude``. With
    ``device_only`` it only reads the neighbour table for them. ``learned`` are the identities that
    the devices had in earlier reports.
    """

    max_duration_s: float = 10.0
    watch_processes: tuple[str, ...] = ()
    kiosk_debug_url: str = ""
    service_url: str = ""
    has_proxy: bool = False
    devices: tuple[WatchedDevice, ...] = ()
    learned: tuple[LearnedPrinter, ...] = ()
    exclude: tuple[str, ...] = ()
    device_only: bool = False
    kind: Literal["application"] = "application"


Job = NetworkJob | ApplicationJob

# ---------------------------------------------------------------------------- facts in both reports


@dataclass(frozen=True, slots=True)
class Failure:
    """A step that failed, and why."""

    step: str
    reason: str


@dataclass(frozen=True, slots=True)
class Confinement:
    """Whether the system confined the collector's process to the files that it needs.

    "not-offered": this operating system has no such confinement. "refused": the system has it, but
    it failed on this machine for ``reason``.
    """

    state: Literal["confined", "refused", "not-offered"] = "not-offered"
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class DeviceState:
    """Whether a watched device is on the network, and where.

    "present": it answers at its address, or anywhere if it has no address. "moved": it answers at
    ``address`` instead of ``moved_from``. "absent": nothing answers at ``address``; or the device
    has no configured address, and its MAC answers nowhere in the network. "replaced": another
    device answers at ``address``. "unknown": it could not be determined, for ``reason``.
    ``address`` is None only if no address of the device is known. ``other_mac`` is a MAC that
    answers at the expected address, but is not the known MAC of the device.
    """

    device: WatchedDevice
    state: Literal["present", "moved", "absent", "replaced", "unknown"]
    address: str | None = None
    moved_from: str | None = None
    other_mac: str | None = None
    reason: str | None = None


# ---------------------------------------------------------------------------- network facts


@dataclass(frozen=True, slots=True)
class SourceState:
    """The state of a source of facts. ``reason`` explains "failed" and "unsupported"."""

    state: Literal["running", "succeeded", "failed", "unsupported"] = "running"
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class InterfaceAddress:
    address: str
    family: Literal["ipv4", "ipv6"]
    prefix_length: int


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface. ``gateways`` are the gateways of its default routes, lowest metric first."""

    name: str
    addresses: tuple[InterfaceAddress, ...] = ()
    gateways: tuple[str, ...] = ()
    mac_address: str | None = None


@dataclass(frozen=True, slots=True)
class Service:
    """An open or announced port. ``reachable`` is None if no connection to it was tried.

    ``name`` is the instance name of the announced service, or the usual name of the port. ``type``
    is the type of the announced service, such as ``_ipp._tcp``.
    """

    port: int
    source: Literal["mdns", "tcp"]
    name: str | None = None
    type: str | None = None
    reachable: bool | None = None


HostSource = Literal["local", "gateway", "mdns", "tcp"]


@dataclass(frozen=True, slots=True)
class Host:
    """A host. ``latency_ms`` is the round-trip time that the kernel measured for a connection.

    ``sources`` are the ways in which the host was discovered. "tcp" stands for the scan, and
    "local" for an address of this machine.
    """

    address: str
    services: tuple[Service, ...] = ()
    reachability: Literal["reachable", "unknown"] = "unknown"
    sources: tuple[HostSource, ...] = ()
    interface_name: str | None = None
    hostname: str | None = None
    mac_address: str | None = None
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address and port. ``discovered_by`` lists "mdns" before "scan".

    ``host`` is the host name, or the address if the name is not known. ``label`` is the name of the
    service, or the usual service of the port. "reachable": the port accepts connections.
    "discovered": it was only announced.
    """

    address: str
    host: str
    port: int
    label: str
    discovered_by: tuple[Literal["mdns", "scan"], ...]
    status: Literal["reachable", "discovered"]
    model: str | None = None
    mac_address: str | None = None
    matched_printer_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Printer:
    """A printer. ``address`` is ``host:port`` or a device path.

    ``matched_endpoint`` is ``address:port``.
    """

    id: str
    name: str
    transport: Transport
    status: Literal["reachable", "unreachable", "unknown"]
    address: str | None = None
    reason: str | None = None
    matched_endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The reasons why facts about this machine are missing. None: the fact was read."""

    mac_address: str | None = None
    interfaces: str | None = None
    gateway: str | None = None
    os_version: str | None = None


@dataclass(frozen=True, slots=True)
class NetworkFacts:
    """The facts of a network report. ``printers`` is None until the sources of printers are read.

    ``scope`` is "device" if no address of the network was scanned.
    ``limitations`` describe what was not tried and what was cut, with the numbers. ``truncated``:
    facts are missing because of a limit, the deadline, a cancellation or a failure of mDNS.
    ``cancelled``: the run was cancelled before it was complete.

    ``learned`` are the identities of the printers and watched devices that answered. ``strangers``
    are the identities of other devices that answer at the address of a printer or watched device
    which did not answer itself. The agent uses both; a report contains neither.
    """

    scope: Literal["local-network", "device"]
    os_platform: str
    os_version: str | None
    started_at: str
    interfaces: tuple[Interface, ...] = ()
    hosts: tuple[Host, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    printers: tuple[Printer, ...] | None = None
    learned: tuple[LearnedPrinter, ...] = ()
    strangers: tuple[LearnedPrinter, ...] = ()
    devices: tuple[DeviceState, ...] = ()
    interfaces_source: SourceState = field(default_factory=SourceState)
    mdns_source: SourceState = field(default_factory=SourceState)
    scan_source: SourceState = field(default_factory=SourceState)
    unavailable: Unavailable = field(default_factory=Unavailable)
    failures: tuple[Failure, ...] = ()
    limitations: tuple[str, ...] = ()
    truncated: bool = False
    cancelled: bool = False
    confinement: Confinement = field(default_factory=Confinement)
    kind: Literal["network"] = "network"


# ---------------------------------------------------------------------------- application facts

FieldStatus = Literal[
    "available", "unsupported", "permission-denied", "not-applicable", "collection-failed"
]
FieldValue = str | bool | int | float | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """One fact with its source, or the reason why it is missing.

    ``value`` is given if and only if ``status`` is "available".
    """

    key: str
    source: str
    status: FieldStatus
    value: FieldValue | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class InterfaceFields:
    id: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class PeripheralFields:
    id: str
    kind: Literal["bluetooth", "usb"]
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class ApplicationFacts:
    """The facts of an application report.

    ``truncated``: a list was cut at its bound. ``failures`` are the sources that failed. For
    ``learned`` and ``strangers`` see `NetworkFacts`; here they are only those of watched devices.
    """

    started_at: str
    duration_ms: float = 0.0
    fields: tuple[Field, ...] = ()
    interfaces: tuple[InterfaceFields, ...] = ()
    peripherals: tuple[PeripheralFields, ...] = ()
    browser_fields: tuple[Field, ...] = ()
    learned: tuple[LearnedPrinter, ...] = ()
    strangers: tuple[LearnedPrinter, ...] = ()
    failures: tuple[Failure, ...] = ()
    limitations: tuple[str, ...] = ()
    truncated: bool = False
    cancelled: bool = False
    confinement: Confinement = field(default_factory=Confinement)
    kind: Literal["application"] = "application"


Facts = NetworkFacts | ApplicationFacts

# ---------------------------------------------------------------------------- events


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a step is. ``total`` is None if it is not known. ``step`` is one short word."""

    step: str
    done: int
    total: int | None = None
    event: Literal["progress"] = "progress"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All facts so far. If the child is killed, the agent uses its last checkpoint."""

    facts: Facts
    event: Literal["checkpoint"] = "checkpoint"


@dataclass(frozen=True, slots=True)
class Result:
    """All facts. This is the last event."""

    facts: Facts
    event: Literal["result"] = "result"


@dataclass(frozen=True, slots=True)
class Crash:
    """The collector itself failed. The agent uses its last checkpoint."""

    error: str
    event: Literal["crash"] = "crash"


Event = Progress | Checkpoint | Result | Crash


class Run(Protocol):
    """The methods that a collector calls to report events and to check for a cancellation."""

    def progress(self, step: str, done: int, total: int | None = None) -> None: ...

    def checkpoint(self, facts: Facts) -> None: ...

    @property
    def cancelled(self) -> bool:
        """Whether the collector must return now, with the facts so far. Check it every 100 ms."""

    def on_cancel(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` (from another thread) when the run is cancelled."""
