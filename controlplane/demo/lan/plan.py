"""The plan of a simulated LAN: its hosts and their behaviour."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LanService:
    """A DNS-SD service that a host announces.

    Args:
        instance: The instance name. Its first 63 bytes are sent unchanged, and may be hostile.
        type: The service type without its domain, such as ``_ipp._tcp``.
    """

    instance: str
    type: str
    port: int
    txt: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.type.endswith(("._tcp", "._udp")):
            raise ValueError(f"{self.type} is not a type of DNS-SD services")


@dataclass(frozen=True, slots=True)
class IppPrinter:
    """A printer or queue that replies at a path, such as ``/ipp/print``.

    ``attributes`` has lines ``name=value``, such as ``printer-state=3``. Consecutive lines with the
    same name are the values of one attribute.
    """

    path: str
    attributes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LanHost:
    """A simulated host.

    ``latency_ms`` and ``jitter_ms`` apply to a round trip. ``loss`` is the share of lost frames in
    each direction. A filtered port does not reply at all. A port that is neither open nor filtered
    refuses connections. An open port in ``mute_ports`` accepts connections and never sends data. A
    host with ``drops_all`` replies only to ARP and to multicast mDNS queries, as if it had a
    firewall. A host with ``loses_first_arp`` does not reply to the first ARP request, like a device
    that was asleep.
    """

    address: str
    mac: str
    open_ports: tuple[int, ...] = ()
    filtered_ports: tuple[int, ...] = ()
    mute_ports: tuple[int, ...] = ()
    drops_all: bool = False
    latency_ms: float = 0.3
    jitter_ms: float = 0.2
    loss: float = 0.0
    loses_first_arp: bool = False
    hostname: str = ""
    services: tuple[LanService, ...] = ()
    title: str = "Lab host"
    """The title of the host's web pages."""
    ipp: tuple[IppPrinter, ...] = ()
    """The printers that reply to Get-Printer-Attributes on port 631; () means no IPP."""


@dataclass(frozen=True, slots=True)
class LanPlan:
    """A LAN. ``agent_address`` is the address of the machine that runs the agent."""

    subnet: str
    agent_address: str
    gateway: str
    hosts: tuple[LanHost, ...]
