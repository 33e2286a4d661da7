"""The values that the sources of the network collector exchange, and the table of all of them.

Plain frozen values. Every string in them was bounded and freed of control characters by the
source that made them (see ``text.py``). Addresses are printable IPv4 or IPv6 without scope ids,
MACs lower-case ``aa:bb:cc:dd:ee:ff``, UUIDs lower-case with dashes, times of the monotonic clock.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from collectors.contract import Failure, HostSource, LearnedPrinter, Printer, SourceState, Transport
from collectors.network.scan.scan import PortState, ScannedHost
from collectors.shared.addresses import is_mdns_name

# ---------------------------------------------------------------------------- mDNS


@dataclass(frozen=True, slots=True)
class MdnsService:
    """One DNS-SD service instance as seen on one interface (RFC 6763).

    ``instance`` is the unescaped first label, ``type`` is like ``_ipp._tcp``, ``hostname`` is the
    SRV target without the trailing dot ("" when no SRV record came), ``port`` 0 likewise.
    ``txt`` keys are lower-case, in the order sent. ``announcer`` is the address that sent it, ""
    if unknown; ``is_hearsay``: ``addresses`` are those of other devices.
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


@dataclass(frozen=True, slots=True)
class MdnsFindings:
    """``truncated`` when ``max_services`` or the deadline cut the list. ``unicast_only`` are
    interfaces on which no multicast answer came, and hosts answered when each was asked alone."""

    services: tuple[MdnsService, ...] = ()
    state: SourceState = field(default_factory=SourceState)
    truncated: bool = False
    limitations: tuple[str, ...] = ()
    unicast_only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What identifies this machine's own printers in announcements.

    ``names`` are instance names in lower case and as queues are named after them, ``addresses``
    literal ones of printers. ``is_called``: some printer is printed to by an mDNS name.
    """

    names: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()
    uuids: frozenset[str] = frozenset()
    macs: frozenset[str] = frozenset()
    is_called: bool = False


NOTHING_WANTED = Wanted()

# ---------------------------------------------------------------------------- questions


@dataclass(frozen=True, slots=True)
class SnmpTarget:
    """A printer that is asked by SNMP, and the port and queue for which it answers."""

    address: str
    port: int
    queue: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """The answer to an allow-listed question (IPP attributes, web page) to one address and port.

    ``state_reasons`` are IPP keywords without "none" (RFC 8011, section 5.4.12), ``name`` is the
    printer's own name, ``title``, ``realm`` (of a login) and ``server`` are of its web page.
    ``queue`` is the requested path; ``is_missing``: there is no such queue.
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
class HostName:
    """A name a host gave for its own address (reverse mDNS)."""

    address: str
    hostname: str


@dataclass(frozen=True, slots=True)
class Enrichment:
    evidence: tuple[Evidence, ...] = ()
    hostnames: tuple[HostName, ...] = ()
    failures: tuple[Failure, ...] = ()
    limitations: tuple[str, ...] = ()


# ---------------------------------------------------------------------------- printers


@dataclass(frozen=True, slots=True)
class KnownPrinter:
    """A printer this machine is set up for, with everything by which it can be recognised.

    ``address`` is what the report shows: ``host:port`` or a device path. ``host`` is a literal
    address or a name; ``addresses`` are the literal ones (of ``host`` resolved, if it is a name).
    ``present`` is whether a local device (USB, serial) is there, None if that is unknown.
    ``stopped`` and ``state_reasons`` are from the machine's own spooler. ``backend``
    names the CUPS backend of a queue whose device URI has no form that is known. ``learned``
    is its identity when it last answered. ``is_file_missing``: the device is there, but not
    the device file that is printed to, ``suspended`` is the sysfs folder of one that the kernel has
    suspended. ``stuck_jobs`` are those of its queue that need a user.
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
    make_model: str | None = None
    present: bool | None = None
    presence_reason: str | None = None
    stopped: bool = False
    state_reasons: tuple[str, ...] = ()
    backend: str | None = None
    learned: LearnedPrinter | None = None
    is_file_missing: bool = False
    suspended: str | None = None
    is_rejecting: bool = False
    stuck_jobs: int = 0
    is_on_wsd_port: bool = False


def is_called_by_mdns(printer: KnownPrinter) -> bool:
    """Return whether each job must find the printer by a multicast question."""
    return bool(printer.dns_sd_name) or is_mdns_name(printer.host or "")


@dataclass(frozen=True, slots=True)
class KnownPrinters:
    printers: tuple[KnownPrinter, ...] = ()
    failures: tuple[Failure, ...] = ()
    limitations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PrinterMatches:
    """``printer_ids`` are the printers matched to an address and port, ``learned`` is what those
    that answered were found to be, ``strangers`` the other devices that answer at the addresses of
    printers that were not found."""

    printers: tuple[Printer, ...] = ()
    printer_ids: Mapping[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)
    learned: tuple[LearnedPrinter, ...] = ()
    strangers: tuple[LearnedPrinter, ...] = ()


# ---------------------------------------------------------------------------- all of it, joined


@dataclass(frozen=True, slots=True)
class PortObservation:
    """An open or announced port of an address, with all the evidence of what it is.

    ``contact`` is None when the port was only announced and never tried. ``hostnames`` are the
    names of its address, ``labels`` what the port is called: by DNS-SD, by itself, by its page.
    ``models`` start with its own answers, ``answered_uuids`` are those of ``uuids`` in its answers.
    ``is_announced``: by mDNS. ``queue_states`` are what was announced of its queues, then what they
    answered; ``state`` is that of a port with one printer.
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
    """An address of which anything is known: this machine's, a gateway's, announced or scanned.

    ``services`` are those announced under it, ``scanned`` is None if the scan found no host,
    ``mac_address`` may be the neighbour table's, ``model`` is what it announces of itself as a
    whole.
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

    ``announcers`` has who announced an address first, ``scanned_networks`` (``192.168.1.0/24``)
    are the ranges in which every address was tried, so that a missing answer is evidence.
    ``own_networks`` are those that this machine has an address in. ``attempts`` are the results of
    all connections to print ports that did not answer at once.
    """

    hosts: Mapping[str, HostObservation] = field(default_factory=dict)
    ports: Mapping[tuple[str, int], PortObservation] = field(default_factory=dict)
    announcers: Mapping[str, str] = field(default_factory=dict)
    scanned_networks: tuple[str, ...] = ()
    own_networks: tuple[str, ...] = ()
    attempts: Mapping[tuple[str, int], tuple[PortState, ...]] = field(default_factory=dict)

    def without(self, addresses: Collection[str]) -> "Observations":
        """Return the observations of all other addresses."""
        return replace(
            self,
            hosts={a: host for a, host in self.hosts.items() if a not in addresses},
            ports={key: port for key, port in self.ports.items() if key[0] not in addresses},
        )
