"""Checks of this machine's network. They use the facts of a collector and a few sockets."""

import asyncio
import socket
import sys
from pathlib import Path
from typing import Final

import psutil

from agent.adapters.collector_process import CollectorProcess
from agent.doctor.check import Outcome, fail, ok, skipped, warn
from agent.doctor.context import Context
from agent.errors import CollectorError
from agent.presentation.findings.local_network import NO_ROUTE
from agent.wire.addresses import is_loopback
from collectors.contract import Interface, NetworkFacts, NetworkJob

COLLECT_WITHIN_S: Final = 1.0
LISTED_MAX: Final = 4
"""Maximum number of interfaces in the detail of an outcome."""
MDNS_GROUP: Final = "224.0.0.251"
MDNS_PORT: Final = 5353
DISCARD_PORT: Final = 9  # RFC 863
UNANSWERED_FLAGS: Final = "0x0"

_JOB: Final = NetworkJob(
    ports=(),
    max_hosts=1,
    max_services=1,
    max_duration_s=COLLECT_WITHIN_S,
    device_only=True,
    enrich=False,
)


def collector(context: Context) -> Outcome:
    """Start a collector as the daemon does. It reads this machine's network and scans nothing."""
    try:
        result = asyncio.run(CollectorProcess().collect(_JOB, lambda _: None))
    except CollectorError as error:
        return fail(str(error), "install the agent again; its collector does not start")
    if not isinstance(result.facts, NetworkFacts):
        return fail("the collector did not return network facts", "install the agent again")
    return ok("the collector starts and returns facts").with_facts(network_facts=result.facts)


def confinement(context: Context) -> Outcome:
    """Check whether the kernel confined the collector, as the collector itself reports."""
    confinement = _facts(context).confinement
    match confinement.state:
        case "confined":
            return ok("the collector can read what it needs, and write nothing")
        case "refused":
            return warn(
                f"the collector runs with all rights of its account: {confinement.reason}",
                "run a kernel with Landlock (Linux 5.13 or newer, with `landlock` in lsm=);"
                " if a container filters system calls, allow those of Landlock",
            )
    return skipped(f"the collector runs with all rights of its account: {confinement.reason}")


def interfaces(context: Context) -> Outcome:
    facts = _facts(context)
    if facts.interfaces_source.state == "failed":
        return warn(
            f"the interfaces cannot be read: {facts.interfaces_source.reason}",
            "a sandbox may forbid this: allow AF_NETLINK, or run doctor outside the sandbox",
        )
    with_ipv4 = [i for i in facts.interfaces if _ipv4(i)]
    if not with_ipv4:
        interface_names = ", ".join(i.name for i in facts.interfaces) or "there is only loopback"
        return warn(
            f"no interface has an IPv4 address ({interface_names})",
            "plug in the cable or join the Wi-Fi; check DHCP",
            may_cause=True,
        )
    return ok(", ".join(f"{i.name} {_ipv4(i)[0]}" for i in with_ipv4[:LISTED_MAX]))


def gateway(context: Context) -> Outcome:
    facts = _facts(context)
    gateways = [(g, i.name) for i in facts.interfaces for g in i.gateways]
    reason = facts.unavailable.gateway
    if not gateways and reason is not None and reason != NO_ROUTE:
        return skipped(reason)
    if not gateways:
        return warn(
            "there is no default route: other networks cannot be reached",
            "check DHCP or the static gateway setting",
            explained_by=("interfaces",),
            may_cause=True,
        )
    address, name = gateways[0]
    if _has_unanswered_arp(address):
        return warn(
            f"{address} on {name} does not answer ARP requests",
            "check that the router is on and on the same network",
            may_cause=True,
        )
    return ok(f"{address} on {name}")


def neighbours(context: Context) -> Outcome:
    """Check that the neighbour table can be read. It has the MAC addresses of hosts."""
    facts = _facts(context)
    reason = facts.unavailable.mac_address
    if not facts.interfaces:
        return skipped("there is no network interface")
    if reason is not None:
        return warn(
            f"the neighbour table cannot be read: {reason}",
            "allow AF_NETLINK if a sandbox forbids it; until then, reports lack MAC addresses",
        )
    return ok("the neighbour table can be read")


def multicast(context: Context) -> Outcome:
    """Join the mDNS group (RFC 6762) on each interface and leave it again."""
    working_interfaces, problems = [], []
    flags = _interface_flags()
    for interface in _facts(context).interfaces:
        for address in _ipv4(interface)[:1]:  # one address identifies the interface
            problem = _why_no_multicast(address, flags.get(interface.name, ""))
            if problem is None:
                working_interfaces.append(interface.name)
            else:
                problems.append(f"{interface.name} ({problem})")
    if problems:
        return warn(
            f"multicast is not possible on {', '.join(problems)}",
            "the announcements of devices on these interfaces are not received: allow multicast",
        )
    if not working_interfaces:
        return skipped("there is no interface to test")
    return ok(", ".join(working_interfaces))


def _interface_flags() -> dict[str, str]:
    """Return the flags of each interface, such as "up,multicast"; "" on a system without flags.

    Return an empty dictionary if the interfaces cannot be read.
    """
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


def mdns_port(context: Context) -> Outcome:
    """Check that port 5353 can be shared with other programs."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "SO_REUSEPORT"):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            sock.bind(("", MDNS_PORT))
        except OSError as error:
            return warn(
                f"UDP port {MDNS_PORT} is used by a program that does not share it"
                f" ({error.strerror})",
                "stop that program, or let it share: disallow-other-stacks=no in avahi-daemon.conf",
            )
    return ok(f"UDP port {MDNS_PORT} can be shared")


def local_network(context: Context) -> Outcome:
    """Check that macOS permits access to the local network.

    Since version 15, macOS asks the user for this permission.
    """
    if sys.platform == "darwin":
        return _try_local_network()
    return skipped("only macOS requires this permission")


def _try_local_network() -> Outcome:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.sendto(b"", (MDNS_GROUP, DISCARD_PORT))
        except OSError as error:
            return warn(
                f"macOS denies access to the local network ({error.strerror})",
                "run the agent as a system daemon (`sudo venue-agent service install`), or allow"
                " it in System Settings, Privacy & Security, Local Network",
                explained_by=("interfaces",),
            )
    return ok("granted")


def _facts(context: Context) -> NetworkFacts:
    if context.network_facts is None:
        raise LookupError("the collector returned no facts")
    return context.network_facts


def _ipv4(interface: Interface) -> list[str]:
    return [
        a.address for a in interface.addresses if a.family == "ipv4" and not is_loopback(a.address)
    ]


def _has_unanswered_arp(address: str, table: Path = Path("/proc/net/arp")) -> bool:
    """Return whether the kernel sent ARP requests for ``address`` without an answer."""
    try:
        return parse_unanswered_arp(table.read_text(), address)
    except OSError:
        return False


def parse_unanswered_arp(table: str, address: str) -> bool:
    """Return whether the table has ``address`` with the flags 0x0, which mean no answer.

    ``table`` is the content of /proc/net/arp (arp(7)).
    """
    rows = (line.split() for line in table.splitlines()[1:])
    return any(row[:1] == [address] and row[2:3] == [UNANSWERED_FLAGS] for row in rows)
