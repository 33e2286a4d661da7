"""Checks of this machine's network, seen through a collector's eyes and a few sockets."""

import asyncio
import ipaddress
import socket
import sys
from pathlib import Path
from typing import Final

import psutil

from agent.adapters.collector_process import CollectorProcess
from agent.doctor.check import Finding, fail, ok, skipped, warn
from agent.doctor.context import Context
from agent.errors import CollectorError
from collectors.contract import Interface, NetworkFacts, NetworkJob

COLLECT_WITHIN_S: Final = 1.0
MDNS_GROUP: Final = "224.0.0.251"
MDNS_PORT: Final = 5353
DISCARD_PORT: Final = 9  # RFC 863
NUD_INCOMPLETE: Final = "0x0"

_JOB: Final = NetworkJob(
    ports=(),
    max_hosts=1,
    max_services=1,
    max_duration_s=COLLECT_WITHIN_S,
    device_only=True,
    enrich=False,
)


def collector(context: Context) -> Finding:
    """Start the collector's process as the daemon does; it looks at this machine only."""
    try:
        collected = asyncio.run(CollectorProcess().collect(_JOB, lambda _: None))
    except CollectorError as error:
        return fail(str(error), "install the agent again; its collector does not start")
    if not isinstance(collected.facts, NetworkFacts):
        return fail("it told facts of another kind", "install the agent again")
    context.facts = collected.facts
    return ok("it starts and tells facts")


def confinement(context: Context) -> Finding:
    """Was the collector held to what it needs to read? It told by its own facts."""
    found = _facts(context).confinement
    match found.state:
        case "confined":
            return ok("it can read what it needs, and write nowhere")
        case "refused":
            return warn(
                f"the collector runs with all rights of its account: {found.reason}",
                "run a kernel with Landlock (Linux 5.13 or newer, `landlock` among its lsm=), and"
                " allow its system calls where a container filters them",
            )
    return skipped(f"the collector runs with all rights of its account: {found.reason}")


def interfaces(context: Context) -> Finding:
    facts = _facts(context)
    if facts.interfaces_source.state == "failed":
        return warn(
            f"they cannot be read: {facts.interfaces_source.reason}",
            "a sandbox may forbid it: allow AF_NETLINK, or run doctor outside",
        )
    up = [i for i in facts.interfaces if _ipv4(i)]
    if not up:
        others = ", ".join(i.name for i in facts.interfaces) or "none but loopback"
        return warn(
            f"no interface has an IPv4 address ({others})",
            "plug in the cable or join the Wi-Fi; check DHCP",
            may_cause=True,
        )
    return ok(", ".join(f"{i.name} {_ipv4(i)[0]}" for i in up[:4]))


def gateway(context: Context) -> Finding:
    facts = _facts(context)
    found = [(g, i.name) for i in facts.interfaces for g in i.gateways]
    if not found:
        return warn(
            "there is no default route: nothing beyond this network can be reached",
            "check DHCP or the static gateway setting",
            explained_by=("interfaces",),
            may_cause=True,
        )
    address, name = found[0]
    if _leaves_arp_unanswered(address):
        return warn(
            f"{address} on {name} does not answer to ARP",
            "check that the router is on and on the same network",
            may_cause=True,
        )
    return ok(f"{address} on {name}")


def neighbours(context: Context) -> Finding:
    """Can the table of neighbours be read, which names the devices' hardware addresses?"""
    facts = _facts(context)
    reason = facts.unavailable.mac_address
    if not facts.interfaces:
        return skipped("there is no network interface whose neighbours it could name")
    if reason is not None:
        return warn(
            f"the neighbour table cannot be read: {reason}",
            "reports will lack hardware addresses; a sandbox may forbid AF_NETLINK",
        )
    return ok("it can be read")


def multicast(context: Context) -> Finding:
    """Join the mDNS group (RFC 6762) on each interface and leave it again."""
    able, unable = [], []
    flags = _interface_flags()
    for interface in _facts(context).interfaces:
        for address in _ipv4(interface)[:1]:
            problem = _why_no_multicast(address, flags.get(interface.name, ""))
            if problem is None:
                able.append(interface.name)
            else:
                unable.append(f"{interface.name} ({problem})")
    if unable:
        return warn(
            f"not on {', '.join(unable)}",
            "devices there are not found by their announcements: allow multicast on the interface",
        )
    if not able:
        return skipped("there is no interface to try it on")
    return ok(", ".join(able))


def _interface_flags() -> dict[str, str]:
    """Return the flags of each interface, as "up,multicast"; empty where the system has none."""
    try:
        return {name: state.flags for name, state in psutil.net_if_stats().items()}
    except (psutil.Error, OSError):
        return {}


def _why_no_multicast(address: str, flags: str) -> str | None:
    """Return why the interface with ``address`` cannot take part in multicast; None if it can."""
    if flags and "multicast" not in flags.split(","):
        return "its MULTICAST flag is off"
    membership = socket.inet_aton(MDNS_GROUP) + socket.inet_aton(address)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    except OSError as error:
        return error.strerror or str(error)
    return None


def mdns_port(context: Context) -> Finding:
    """Can port 5353 be shared? Others may use it too, as long as they let us."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "SO_REUSEPORT"):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            sock.bind(("", MDNS_PORT))
        except OSError as error:
            return warn(
                f"UDP port {MDNS_PORT} is taken by a program that does not share it"
                f" ({error.strerror})",
                "stop that program, or let it share: disallow-other-stacks=no in avahi-daemon.conf",
            )
    return ok(f"UDP port {MDNS_PORT} can be shared")


def local_network(context: Context) -> Finding:
    """macOS 15 and later ask a person whether a program may talk to the local network."""
    if sys.platform == "darwin":
        return _ask_for_local_network()
    return skipped("only macOS asks for it")


def _ask_for_local_network() -> Finding:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.sendto(b"", (MDNS_GROUP, DISCARD_PORT))
        except OSError as error:
            return warn(
                f"macOS denies it ({error.strerror})",
                "run the agent as a system daemon (`sudo venue-agent service install`), or allow"
                " it in System Settings, Privacy & Security, Local Network",
                explained_by=("interfaces",),
            )
    return ok("granted")


def _facts(context: Context) -> NetworkFacts:
    if context.facts is None:
        raise LookupError("the collector told nothing")
    return context.facts


def _ipv4(interface: Interface) -> list[str]:
    return [
        a.address
        for a in interface.addresses
        if a.family == "ipv4" and not ipaddress.ip_address(a.address).is_loopback
    ]


def _leaves_arp_unanswered(address: str, table: Path = Path("/proc/net/arp")) -> bool:
    """Tell whether the kernel asked for ``address`` and nobody answered."""
    try:
        return parse_unanswered_arp(table.read_text(), address)
    except OSError:
        return False


def parse_unanswered_arp(table: str, address: str) -> bool:
    """Read /proc/net/arp (arp(7)): flags 0x0 is an entry without an answer."""
    rows = (line.split() for line in table.splitlines()[1:])
    return any(row[:1] == [address] and row[2:3] == [NUD_INCOMPLETE] for row in rows)
