"""The plan of a LAN that one process plays: which hosts there are and how they behave."""

import ipaddress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LanService:
    """A DNS-SD service a host announces. ``instance`` may be hostile: it is sent as it is.

    ``type`` is without its domain: ``_ipp._tcp``.
    """

    instance: str
    type: str
    port: int
    txt: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.type.endswith(("._tcp", "._udp")):
            raise ValueError(f"nobody asks for services of the type {self.type}")


@dataclass(frozen=True, slots=True)
class IppPrinter:
    """A printer or queue that answers at a path, ``/ipp/print``, with attributes written like TXT
    records, ``printer-state=3``; a name that comes again adds a value."""

    path: str
    attributes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LanHost:
    """One host. Delays are round trips; ``loss`` is the share of frames lost, each way.

    Ports neither open nor filtered refuse; those of ``open_ports`` that are ``mute_ports`` accept
    and never say a word. ``drops_all`` is a host behind a firewall: it answers
    ARP and nothing else.
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
    """Of its web pages."""
    ipp: tuple[IppPrinter, ...] = ()
    """What it answers to Get-Printer-Attributes on port 631; () for no IPP."""


@dataclass(frozen=True, slots=True)
class LanPlan:
    """A LAN. The machine under test is ``agent_address`` and its gateway ``gateway``.

    ``proxy_arp_mac`` answers ARP for every address of ``proxied`` that is no host. ``excluded`` are
    addresses that may get no packet. ``filters_multicast`` drops all multicast, as some access
    points do.
    """

    subnet: str
    agent_address: str
    gateway: str
    hosts: tuple[LanHost, ...]
    proxy_arp_mac: str = ""
    proxied: str = ""
    excluded: tuple[str, ...] = ()
    filters_multicast: bool = False
    seed: int = 1
    lies: int = 0
    lies_per_s: int = 0
    """Packets that the last host sends from the first question on, and how fast (0: as fast as it
    can; see tests/lab/tap/liar.py)."""

    @property
    def prefix_length(self) -> int:
        return ipaddress.ip_network(self.subnet).prefixlen

    def open_endpoints(self) -> frozenset[tuple[str, int]]:
        return frozenset(
            (host.address, port)
            for host in self.hosts
            if not host.drops_all
            for port in host.open_ports
        )

    def macs(self) -> dict[str, str]:
        return {host.address: host.mac for host in self.hosts}
