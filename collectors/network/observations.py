"""The values that the sources of the network collector return, and the joined `Observations`.

All are frozen. The source of a value has limited the length of its strings and removed control
characters (see ``collectors/shared/text.py``). Addresses are IPv4 or IPv6 texts without a scope id.
MACs have the form ``aa:bb:cc:dd:ee:ff`` in lower case. UUIDs are in lower case with dashes.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from collectors.contract import Failure, HostSource, LearnedPrinter, Printer, SourceState, Transport
from collectors.network.matching.identity import normal_uuid
from collectors.network.scan.scan import PortState, ScannedHost
from collectors.shared.addresses import is_mdns_name

# ---------------------------------------------------------------------------- mDNS


@dataclass(frozen=True, slots=True)
class MdnsService:
    """One DNS-SD service instance as it was announced on one interface (RFC 6763).

    ``instance`` is the unescaped first label. ``type`` is like ``_ipp._tcp``. ``hostname`` is the
    SRV target without the final dot. If no SRV record was received, ``hostname`` is "" and ``port``
    is 0. The keys of ``txt`` are in lower case, in the order of the TXT record. ``announcer`` is
    the address that announced the service, or "" if it is not known. ``is_hearsay``: the announcer
    is not the device at ``addresses``.
    """

    instance: str
    type: str
    hostname: str
    addresses: tuple[str, ...]
    port: int
    txt: tuple[tuple[str, str], ...] = ()
    interface_name: str = ""
    announcer: str = ""
    is_hearsay: bool = False

    @property
    def uuid(self) -> str | None:
        """The UUID in the TXT record."""
        return normal_uuid(dict(self.txt).get("uuid"))


@dataclass(frozen=True, slots=True)
class MdnsResult:
    """The result of browsing mDNS.

    ``truncated``: the list is incomplete because of ``max_services``, another limit, the deadline
    or a cancellation. ``unicast_only`` are the interfaces on which no multicast answer arrived, but
    hosts answered unicast questions.
    """

    services: tuple[MdnsService, ...] = ()
    state: SourceState = field(default_factory=SourceState)
    truncated: bool = False
    limitations: tuple[str, ...] = ()
    unicast_only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PrinterIdentifiers:
    """The values that identify this machine's printers in announcements.

    ``names`` has each name twice: in lower case, and in the form of a queue name. ``addresses``
    are the printers' IP addresses. ``has_mdns_name``: at least one printer is set up by an mDNS
    name.
    """

    names: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()
    uuids: frozenset[str] = frozenset()
    macs: frozenset[str] = frozenset()
    has_mdns_name: bool = False


NO_IDENTIFIERS = PrinterIdentifiers()

# ---------------------------------------------------------------------------- queries


@dataclass(frozen=True, slots=True)
class SnmpTarget:
    """A printer to query by SNMP.

    Its answer becomes evidence for the print port ``port`` and for ``queue``.
    """

    address: str
    port: int
    queue: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a device reported about itself for one of its ports, or about a queue behind the port.

    It is an answer to a query (IPP, SNMP, web page), or the state that mDNS announces for a queue.
    ``state_reasons`` are IPP keywords without "none" (RFC 8011, section 5.4.12). ``name`` is the
    printer's own name. ``title`` and ``realm`` (of a login) come from its web page. ``server`` is
    the Server header of its web page or of CUPS. ``queue`` is the path that was queried or
    announced. ``is_missing``: the device answered that it has no such queue.
    """

    address: str
    port: int
    uuid: str | None = None
    make_model: str | None = None
    serial: str | None = None
    name: str | None = None
    state: Literal["idle", "processing", "stopped"] | None = None
    state_reasons: tuple[str, ...] = ()
    title: str | None = None
    realm: str | None = None
    server: str | None = None
    queue: str | None = None
    is_missing: bool = False


@dataclass(frozen=True, slots=True)
class Enrichment:
    """The answers of hosts to the queries for their names and for the details of open ports.

    ``hostnames`` maps addresses to names from reverse mDNS answers.
    """

    evidence: tuple[Evidence, ...] = ()
    hostnames: Mapping[str, str] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    limitations: tuple[str, ...] = ()


# ---------------------------------------------------------------------------- printers


@dataclass(frozen=True, slots=True)
class KnownPrinter:
    """A printer that is set up on this machine or plugged into it, with its identifying values.

    ``address`` is the text in the report: ``host:port`` or a device path. ``host`` is an IP address
    or a name. ``addresses`` are its IP addresses, which are resolved if ``host`` is a name.
    ``lookup_s`` is the time in seconds that the system's resolver took for ``host``. ``queue`` is
    the path or the name of the queue at ``host``. ``dns_sd_name`` and ``dns_sd_type`` are the
    instance name and the type (such as ``_ipp._tcp``) of the DNS-SD service in the printer's setup.
    ``learned`` is the identity that the printer had when it last answered.

    ``present`` is whether a local device (USB, serial) is plugged in, or None if that is not known.
    ``presence_reason`` describes how this was determined, or why it is not known.
    ``is_file_missing``: the device is plugged in, but the device file that the queue prints to is
    missing. ``suspended_sysfs_path`` is the folder in sysfs of a device that the kernel has
    suspended.

    ``is_queue_stopped``, ``state_reasons`` and ``is_rejecting`` (the queue accepts no new jobs) are
    from the machine's own spooler. ``stuck_jobs`` is the number of stuck jobs in its queue
    (``print_jobs.py``). ``backend`` is the CUPS backend of a queue if its device URI has an unknown
    form. ``is_on_wsd_port``: Windows sends the jobs to a WSD port.
    """

    id: str
    name: str
    transport: Transport
    source: Literal["config", "cups", "windows", "usb", "serial"]
    address: str | None = None
    host: str | None = None
    addresses: tuple[str, ...] = ()
    port: int | None = None
    queue: str | None = None
    uuid: str | None = None
    mac_address: str | None = None
    serial: str | None = None
    dns_sd_name: str | None = None
    dns_sd_type: str | None = None
    make_model: str | None = None
    present: bool | None = None
    presence_reason: str | None = None
    is_queue_stopped: bool = False
    state_reasons: tuple[str, ...] = ()
    backend: str | None = None
    learned: LearnedPrinter | None = None
    is_file_missing: bool = False
    suspended_sysfs_path: str | None = None
    is_rejecting: bool = False
    stuck_jobs: int = 0
    is_on_wsd_port: bool = False
    lookup_s: float = 0.0


SLOW_LOOKUP_S = 2.0
"""A look-up of a host name that takes at least this long is reported as a problem of the name
servers."""


def is_resolved_by_mdns(printer: KnownPrinter) -> bool:
    """Return whether the printer's address must be resolved by mDNS for each job."""
    return bool(printer.dns_sd_name) or is_mdns_name(printer.host or "")


@dataclass(frozen=True, slots=True)
class KnownPrinters:
    printers: tuple[KnownPrinter, ...] = ()
    failures: tuple[Failure, ...] = ()
    limitations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PrinterMatches:
    """The result of matching.

    ``printer_ids`` maps an address and port to the printers that were matched with it. ``learned``
    are the identities of the printers that answered. ``strangers`` are the identities of other
    devices that answer at the address of a printer which did not answer itself.
    """

    printers: tuple[Printer, ...] = ()
    printer_ids: Mapping[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)
    learned: tuple[LearnedPrinter, ...] = ()
    strangers: tuple[LearnedPrinter, ...] = ()


# ---------------------------------------------------------------------------- watched devices


@dataclass(frozen=True, slots=True)
class DeviceAnswers:
    """The addresses that answered ARP after the scan, with their MACs, and those that did not."""

    macs: Mapping[str, str] = field(default_factory=dict)
    silent: Collection[str] = ()


# ---------------------------------------------------------------------------- joined observations


@dataclass(frozen=True, slots=True)
class PortObservation:
    """An open or announced port of an address, with all evidence about it.

    ``contact`` is None if no connection to the port was tried. ``hostnames`` are the host names of
    the address. ``instances`` are the names of the services that are announced for the port, and
    ``queues`` the announced paths of its queues. ``labels`` are the names that the device
    gives itself at this port: by DNS-SD, in its answers and on its web page. ``models`` has the
    models from its own answers first. ``answered_uuids`` are the ``uuids`` that its own answers
    contain. ``is_announced``: mDNS announces the port. ``queue_states`` are the announced states of
    its queues, followed by the states that the queues themselves answered. ``state`` is None if
    there are several printers behind the port.
    """

    address: str
    port: int
    contact: PortState | None = None
    hostnames: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    answered_uuids: tuple[str, ...] = ()
    serials: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    is_announced: bool = False
    state: Literal["idle", "processing", "stopped"] | None = None
    state_reasons: tuple[str, ...] = ()
    queue_states: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class HostObservation:
    """An address of this machine or a gateway, or an address that was announced or scanned.

    ``services`` are the services announced at it. ``scanned`` is None if the scan found no host.
    ``mac_address`` may be from the neighbour table. ``model`` is the model that the host announces
    for the whole device.
    """

    address: str
    sources: tuple[HostSource, ...] = ()
    services: tuple[MdnsService, ...] = ()
    scanned: ScannedHost | None = None
    interface_name: str | None = None
    hostname: str | None = None
    mac_address: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Observations:
    """All observations, by address and by port.

    ``announcers`` maps an address to the device that announced it first: its MAC or address
    (`LinkLayer.announcer`). ``scanned_networks`` (``192.168.1.0/24``) are the ranges in which every
    address was tried: an address in them that is not in ``hosts`` did not answer. ``own_networks``
    are the networks of this machine's addresses. ``attempts`` has the results of connections to
    print ports (see `CollectedFacts`).
    """

    hosts: Mapping[str, HostObservation] = field(default_factory=dict)
    ports: Mapping[tuple[str, int], PortObservation] = field(default_factory=dict)
    announcers: Mapping[str, str] = field(default_factory=dict)
    scanned_networks: tuple[str, ...] = ()
    own_networks: tuple[str, ...] = ()
    attempts: Mapping[tuple[str, int], tuple[PortState, ...]] = field(default_factory=dict)

    def without(self, addresses: Collection[str]) -> "Observations":
        """Return the observations without the hosts and ports at ``addresses``."""
        return replace(
            self,
            hosts={a: host for a, host in self.hosts.items() if a not in addresses},
            ports={key: port for key, port in self.ports.items() if key[0] not in addresses},
        )
