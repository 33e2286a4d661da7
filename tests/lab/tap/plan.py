"""Creates random plans of LANs for tests, and stores them as JSON.

Tests compare reports with the plan.
"""

import ipaddress
import json
import random
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from controlplane.demo.lan.plan import IppPrinter, LanHost, LanPlan, LanService

WEB_PORTS = frozenset({80, 443, 8008, 8043, 8080})
VENUE_PORTS = (22, 53, 80, 139, 443, 445, 515, 554, 631, 8008, 8043, 8080, 8443, 9100, 9101)
_OPEN_SETS = (
    (80, 443),
    (22, 80),
    (139, 445),
    (80, 515, 631, 9100),
    (9100,),
    (8008, 8043),
    (554, 80),
    (22, 443, 8443),
    (53, 80, 443),
    (),
)


@dataclass(frozen=True, slots=True)
class LabPlan(LanPlan):
    """A LAN of the tests.

    Args:
        proxied_network: The network behind proxy ARP; "" means none.
        proxy_arp_mac: The MAC that answers ARP for each address of this network that has no host.
        excluded: Addresses that must not receive any packet.
        terminals: MACs of payment terminals, which must not receive any packet with content.
        filters_multicast: Whether all multicast is dropped, as some access points do.
        seed: The seed of the random numbers for the plan.
        lies: The number of packets that the last host sends after the first query (see liar.py).
        lies_per_s: The rate of these packets. 0 means as fast as possible.
    """

    proxy_arp_mac: str = ""
    proxied_network: str = ""
    excluded: tuple[str, ...] = ()
    terminals: tuple[str, ...] = ()
    filters_multicast: bool = False
    seed: int = 1
    lies: int = 0
    lies_per_s: int = 0

    def open_endpoints(self) -> frozenset[tuple[str, int]]:
        return frozenset(
            (host.address, port)
            for host in self.hosts
            if not host.drops_all
            for port in host.open_ports
        )

    def macs(self) -> dict[str, str]:
        return {host.address: host.mac for host in self.hosts}


def plan_lan(subnet: str, host_count: int, *, seed: int = 1, wifi_share: float = 0.35) -> LabPlan:
    """Return a plan with ``host_count`` hosts: the gateway, and others at random addresses.

    The share ``wifi_share`` of the hosts behaves as on Wi-Fi: a latency of 5 to 60 ms, up to 80 ms
    of jitter and 1 % loss in each direction. 15 % of these hosts also lose the first ARP request.
    One host in ten drops all packets except ARP.
    """
    rng = random.Random(seed)
    network = ipaddress.ip_network(subnet)
    addresses = [str(network[1]), *map(str, _sample(rng, network, host_count))]
    agent_address = addresses.pop()
    wifi = set(rng.sample(range(1, host_count), round(host_count * wifi_share)))
    arp_losers = set(rng.sample(sorted(wifi), round(len(wifi) * 0.15)))
    hosts = tuple(
        _host(rng, number, address, is_wifi=number in wifi, loses_first_arp=number in arp_losers)
        for number, address in enumerate(addresses)
    )
    return LabPlan(subnet, agent_address, str(network[1]), hosts, seed=seed)


def with_mute_pages(plan: LabPlan, count: int) -> LabPlan:
    """Let ``count`` hosts accept connections to their first web port but send nothing.

    A device that hangs behaves in this way.
    """
    rng = random.Random(plan.seed)
    pages = [h for h in plan.hosts if not h.drops_all and WEB_PORTS & set(h.open_ports)]
    mute_addresses = {h.address for h in rng.sample(pages, count)}
    hosts = (
        replace(h, mute_ports=tuple(p for p in h.open_ports if p in WEB_PORTS)[:1])
        if h.address in mute_addresses
        else h
        for h in plan.hosts
    )
    return replace(plan, hosts=tuple(hosts))


def with_silent_hosts(plan: LabPlan) -> LabPlan:
    """Let a quarter of the hosts drop packets to closed ports, and all Wi-Fi hosts lose their first
    ARP request.
    """
    rng = random.Random(plan.seed)
    silent_addresses = {host.address for host in rng.sample(plan.hosts[1:], len(plan.hosts) // 4)}
    hosts = (
        replace(
            host,
            filtered_ports=tuple(port for port in VENUE_PORTS if port not in host.open_ports)
            if host.address in silent_addresses
            else host.filtered_ports,
            loses_first_arp=host.loss > 0,
        )
        for host in plan.hosts
    )
    return replace(plan, hosts=tuple(hosts))


def _sample(
    rng: random.Random, network: ipaddress.IPv4Network | ipaddress.IPv6Network, count: int
) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    return [network[i] for i in rng.sample(range(2, network.num_addresses - 1), count)]


def _host(
    rng: random.Random, number: int, address: str, *, is_wifi: bool, loses_first_arp: bool
) -> LanHost:
    open_ports = (53, 80, 443) if number == 0 else rng.choice(_OPEN_SETS)
    closed = [port for port in VENUE_PORTS if port not in open_ports]
    filtered = tuple(rng.sample(closed, rng.choice((0, 0, 0, 2))))
    return LanHost(
        address=address,
        mac=f"02:1a:{number >> 24 & 255:02x}:{number >> 16 & 255:02x}"
        f":{number >> 8 & 255:02x}:{number & 255:02x}",
        open_ports=open_ports,
        filtered_ports=filtered if number else (),
        drops_all=number > 0 and number % 10 == 5,
        latency_ms=rng.uniform(5, 60) if is_wifi else rng.uniform(0.2, 2),
        jitter_ms=80.0 if is_wifi else 0.3,
        loss=0.01 if is_wifi else 0.0,
        loses_first_arp=loses_first_arp,
    )


def save_plan(plan: LabPlan, path: Path) -> None:
    path.write_text(json.dumps(asdict(plan)), "utf-8")


def load_plan(path: Path) -> LabPlan:
    raw = json.loads(path.read_text("utf-8"))
    hosts = tuple(_load_host(host) for host in raw["hosts"])
    lists = {name: tuple(raw[name]) for name in ("excluded", "terminals")}
    return LabPlan(**{**raw, "hosts": hosts, **lists})


def _load_host(raw: dict[str, Any]) -> LanHost:
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in raw.items()}
    values["services"] = tuple(
        LanService(**{**service, "txt": tuple(service["txt"])}) for service in raw["services"]
    )
    values["ipp"] = tuple(
        IppPrinter(ipp_printer["path"], tuple(ipp_printer["attributes"]))
        for ipp_printer in raw["ipp"]
    )
    return LanHost(**values)
