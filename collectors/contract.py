"""The input of a collector (a job with bounds) and its output (events with facts).

Plain frozen dataclasses that both processes import. Facts are unclipped: the limits of the
service's contract are the agent's business. Strings may hold anything a stranger on the network
wrote, except that a collector bounds each to ``TEXT_MAX`` characters.

Addresses are printable IPv4 or IPv6 without scope ids, MACs lower-case ``aa:bb:cc:dd:ee:ff``,
times ISO 8601 in UTC, durations in the unit of the name.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

TEXT_MAX = 4096
"""Characters kept of any string from outside."""

EVENT_MAX_BYTES = 16 * 1024 * 1024
"""The longest line a child may write: facts stay far below it. A longer one is left out."""

# ---------------------------------------------------------------------------- jobs

Transport = Literal["network", "serial", "ble", "usb"]


@dataclass(frozen=True, slots=True)
class ConfiguredPrinter:
    """A ``[[printers]]`` entry. ``address`` is ``host:port``, a host, a MAC or a device path."""

    id: str
    name: str
    transport: Transport = "network"
    address: str | None = None


@dataclass(frozen=True, slots=True)
class LearnedPrinter:
    """What a printer of this machine was when it last answered.

    ``setup`` is what it was set up with then: a printer that was set up again has no history.
    MAC, UUID and serial number are given only where no other device in sight had the same.
    ``replaced_at`` is when a different device was accepted as this printer.
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

    ``subnets`` empty means this machine's own private networks. With ``device_only`` nothing but
    this machine's own addresses is contacted and no packet leaves it. ``enrich`` allows the
    questions of the allow-list (IPP attributes, web page titles, reverse mDNS), ``snmp_community``
    one SNMP question to each of this machine's printers. ``learned`` is what earlier reports
    learned of them.
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
    kind: Literal["network"] = "network"


@dataclass(frozen=True, slots=True)
class ApplicationJob:
    """Bounds of one application snapshot. ``service_url`` is only asked whether it answers."""

    max_duration_s: float = 10.0
    watch_processes: tuple[str, ...] = ()
    kiosk_debug_url: str = ""
    service_url: str = ""
    kind: Literal["application"] = "application"


Job = NetworkJob | ApplicationJob

# ---------------------------------------------------------------------------- facts, both kinds


@dataclass(frozen=True, slots=True)
class Failure:
    """A step that failed, and why."""

    step: str
    reason: str


@dataclass(frozen=True, slots=True)
class Confinement:
    """Whether the system held the collector's process to what it needs to read.

    "not-offered": this operating system has no means for it. "refused": it has, and did not do
    it here; ``reason`` is why.
    """

    state: Literal["confined", "refused", "not-offered"] = "not-offered"
    reason: str | None = None


# ---------------------------------------------------------------------------- network facts


@dataclass(frozen=True, slots=True)
class SourceState:
    """How a source of facts ended; ``reason`` is given unless it succeeded or still runs."""

    state: Literal["running", "succeeded", "failed", "unsupported"] = "running"
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class InterfaceAddress:
    address: str
    family: Literal["ipv4", "ipv6"]
    prefix_length: int


@dataclass(frozen=True, slots=True)
class Interface:
    """``gateways`` are the default routes through it, best (lowest metric) first."""

    name: str
    addresses: tuple[InterfaceAddress, ...] = ()
    gateways: tuple[str, ...] = ()
    mac_address: str | None = None


@dataclass(frozen=True, slots=True)
class Service:
    """An open or announced port. ``reachable`` is None when it was not tried."""

    port: int
    source: Literal["mdns", "tcp"]
    name: str | None = None
    type: str | None = None
    reachable: bool | None = None


HostSource = Literal["local", "gateway", "mdns", "tcp"]


@dataclass(frozen=True, slots=True)
class Host:
    """``latency_ms`` is the kernel's round-trip time of a connection, where one was made."""

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
    """One address and port. ``discovered_by`` is in the order mdns, scan."""

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
    """``address`` is ``host:port`` or a device path, ``matched_endpoint`` is ``address:port``."""

    id: str
    name: str
    transport: Transport
    status: Literal["reachable", "unreachable", "unknown"]
    address: str | None = None
    reason: str | None = None
    matched_endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class Unavailable:
    """What this machine does not let us read, and why."""

    mac_address: str | None = None
    interfaces: str | None = None
    gateway: str | None = None
    os_version: str | None = None


@dataclass(frozen=True, slots=True)
class NetworkFacts:
    """``printers`` is None until the printer sources were read.

    ``limitations`` describe what was not tried or was cut, with the number; ``truncated``: a
    bound of the job was reached; ``cancelled``: it was stopped early. ``learned`` is of the
    printers that answered, ``strangers`` of the other devices that answer at the address of a
    printer which was not found. Neither is in a report.
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
    """One fact with its source, or why it is missing. A value is given exactly when available."""

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
    """``truncated``: a bound cut the lists; ``failures`` are the sources that failed."""

    started_at: str
    duration_ms: float = 0.0
    fields: tuple[Field, ...] = ()
    interfaces: tuple[InterfaceFields, ...] = ()
    peripherals: tuple[PeripheralFields, ...] = ()
    browser_fields: tuple[Field, ...] = ()
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
    """``total`` is None where it is not known. ``step`` is a short plain word."""

    step: str
    done: int
    total: int | None = None
    event: Literal["progress"] = "progress"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All facts so far; the last one counts if the child is killed."""

    facts: Facts
    event: Literal["checkpoint"] = "checkpoint"


@dataclass(frozen=True, slots=True)
class Result:
    """All facts; nothing follows."""

    facts: Facts
    event: Literal["result"] = "result"


@dataclass(frozen=True, slots=True)
class Crash:
    """The collector itself failed; only the last checkpoint counts."""

    error: str
    event: Literal["crash"] = "crash"


Event = Progress | Checkpoint | Result | Crash


class Run(Protocol):
    """The interface of a collector to the process that runs it."""

    def progress(self, step: str, done: int, total: int | None = None) -> None: ...

    def checkpoint(self, facts: Facts) -> None: ...

    @property
    def cancelled(self) -> bool:
        """Whether to return the facts so far at once. Check it at least every 100 ms."""

    def on_cancel(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` (from another thread) when the run is cancelled."""
