"""Rules for the connection to the service: interfaces, Wi-Fi, name servers, certificate."""

import ipaddress
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from agent.presentation.findings.conditions import at_least
from agent.presentation.findings.rule import ONCE, NoteRule, ProblemRule, Rule, Values, WarningRule
from agent.presentation.findings.snapshot_facts import Fields, SnapshotFacts
from agent.presentation.humanize import (
    format_milliseconds,
    format_seconds,
    format_timestamp,
    parse_timestamp,
    percent,
)

SLOW_NAMES_MS, SLOW_SERVICE_MS = 1000, 1000
"""Minimum times of a slow look-up of the service's name, and of a slow connection to it."""
CERTIFICATE_DAYS, CERTIFICATE_LIFE = 14, 0.25
"""A certificate expires soon if less than this number of days, and less than this share of its
lifetime, remain."""
WIFI_WEAK_DBM: Final = -75
SLOW_LINK_MBPS: Final = 10
ERRORS, ERROR_SHARE = 100, 0.001
"""Minimum number of errors, and minimum share of packets with an error, for a finding."""

OWN_ADDRESS_FIX: Final = (
    "if its cable leads to one device or to the machine's management controller, do nothing;"
    " otherwise check the cable and the router's DHCP server"
)
PHYSICAL_TYPES: Final = frozenset({"ethernet", "wifi"})
"""Types of interfaces that have a cable or Wi-Fi. A tunnel, for example, has neither."""
_NAME_ERRORS: Final = (
    "the service's name does not resolve",
    "the name was not resolved in time",
)
"""The collector's error texts for a name that was not resolved. All its other error texts are about
the connection."""
_ANSWERED: Final = "answered in "
"""The start of the collector's text about a name server that answered."""
_NO_ROUTE: Final = "no route to it"
"""The collector's text about a name server to which there is no route."""


def is_routable(address: str) -> bool:
    """Return whether an address, with or without prefix length, is valid beyond its link."""
    try:
        ip = ipaddress.ip_interface(address).ip
    except ValueError:
        return False
    return not (ip.is_loopback or ip.is_link_local or ip.is_unspecified)


def is_self_assigned(address: str) -> bool:
    """Return whether a machine assigned itself this IPv4 address without DHCP (RFC 3927)."""
    try:
        ip = ipaddress.ip_interface(address).ip
    except ValueError:
        return False
    return ip.version == 4 and ip.is_link_local


def _active_interfaces(facts: SnapshotFacts) -> Iterator[tuple[str, Fields]]:
    return ((name, link) for name, link in facts.interfaces if link.flag("interface.up"))


def _is_connected(facts: SnapshotFacts) -> bool:
    addresses = (
        a for _, link in _active_interfaces(facts) for a in link.texts("interface.addresses")
    )
    return any(map(is_routable, addresses))


def _disconnected(facts: SnapshotFacts) -> tuple[Values, ...]:
    was_read = any(link.is_known("interface.addresses") for _, link in facts.interfaces)
    return ONCE if was_read and not _is_connected(facts) else ()


def _self_assigned(facts: SnapshotFacts) -> Iterator[tuple[str, Values]]:
    """Yield the type, and the name and address, of interfaces with only a self-assigned address.

    Interfaces without a cable or Wi-Fi are left out.
    """
    for name, link in _active_interfaces(facts):
        addresses, kind = link.texts("interface.addresses"), link.text("interface.type")
        address = next(filter(is_self_assigned, addresses), None)
        if address is not None and kind in PHYSICAL_TYPES and not any(map(is_routable, addresses)):
            yield kind, {"interface": name, "address": address.partition("/")[0]}


def _without_dhcp(facts: SnapshotFacts) -> Iterator[Values]:
    is_connected = _is_connected(facts)
    return (v for kind, v in _self_assigned(facts) if kind == "wifi" or not is_connected)


def _direct_cable(facts: SnapshotFacts) -> Iterator[Values]:
    is_connected = _is_connected(facts)
    return (v for kind, v in _self_assigned(facts) if kind != "wifi" and is_connected)


def _without_name_server(facts: SnapshotFacts) -> tuple[Values, ...]:
    return ONCE if facts.machine.is_absent("network.dnsServers") and _is_connected(facts) else ()


def _unresolved(facts: SnapshotFacts) -> Iterator[Values]:
    if facts.machine.text("network.service.error") in _NAME_ERRORS:
        answers = facts.machine.texts("network.dnsAnswers")
        servers = "; ".join(answers) or ", ".join(facts.machine.texts("network.dnsServers"))
        yield {"servers": servers or "none"}


def _silent_name_servers(facts: SnapshotFacts) -> Iterator[Values]:
    lines = (line.partition(": ") for line in facts.machine.texts("network.dnsAnswers"))
    results = {server: result for server, _, result in lines}
    has_answer = any(result.startswith(_ANSWERED) for result in results.values())
    for server, result in results.items():
        # A server without a route, such as on a network without IPv6, causes no delay. So it is not
        # reported if another server answers.
        if not result.startswith(_ANSWERED) and not (has_answer and result == _NO_ROUTE):
            yield {"server": server, "why": result}


def _unreachable(facts: SnapshotFacts) -> Iterator[Values]:
    why = facts.machine.text("network.service.error")
    if facts.machine.flag("network.service.reachable") is False and why not in _NAME_ERRORS:
        yield {"why": why or "no reason was given"}


def _handshake_failed(facts: SnapshotFacts) -> Iterator[Values]:
    why = facts.machine.why_failed("network.service.tlsVersion")
    if why is not None and facts.machine.flag("network.service.reachable"):
        yield {"why": why}


def _valid_for(facts: SnapshotFacts) -> timedelta | None:
    """Return the remaining validity of the certificate at the time of the snapshot."""
    ends = parse_timestamp(facts.machine.text("network.service.tlsExpiresAt"))
    return None if ends is None or facts.taken_at is None else ends - facts.taken_at


def _expired(facts: SnapshotFacts) -> Iterator[Values]:
    remaining = _valid_for(facts)
    if remaining is not None and remaining <= timedelta():
        yield {"ended": format_timestamp(facts.machine.text("network.service.tlsExpiresAt"))}


def _expiring(facts: SnapshotFacts) -> Iterator[Values]:
    remaining = _valid_for(facts)
    if remaining is not None and timedelta() < remaining < _renewal_limit(facts):
        yield {"time": format_seconds(remaining.total_seconds(), units=1)}


def _renewal_limit(facts: SnapshotFacts) -> timedelta:
    """Return the remaining validity below which a certificate should have been renewed."""
    starts = parse_timestamp(facts.machine.text("network.service.tlsIssuedAt"))
    ends = parse_timestamp(facts.machine.text("network.service.tlsExpiresAt"))
    limit = timedelta(days=CERTIFICATE_DAYS)
    if starts is None or ends is None:
        return limit
    return min(limit, CERTIFICATE_LIFE * (ends - starts))


def _untrusted(facts: SnapshotFacts) -> Iterator[Values]:
    is_trusted = facts.machine.flag("network.service.tlsTrusted")
    if is_trusted is False and not any(_expired(facts)):
        yield {"issuer": facts.machine.text("network.service.tlsIssuer") or "unnamed"}


def _wifi_weak(facts: SnapshotFacts) -> Iterator[Values]:
    for name, link in _active_interfaces(facts):
        signal = link.number("interface.wifiSignalDbm")
        if signal is not None and signal <= WIFI_WEAK_DBM:
            yield {"interface": name, "signal": f"{signal:.0f} dBm"}


def _link_slow(facts: SnapshotFacts) -> Iterator[Values]:
    for name, link in _active_interfaces(facts):
        speed = link.number("interface.speedMegabitsPerSecond")
        is_half = link.text("interface.duplex") == "half"
        is_cable = link.text("interface.type") == "ethernet" and not _is_direct(link)
        if is_cable and speed is not None and (speed <= SLOW_LINK_MBPS or is_half):
            half = ", half duplex" if is_half else ""
            yield {"interface": name, "speed": f"{speed:.0f} Mbit/s{half}"}


def _is_direct(link: Fields) -> bool:
    """Return whether a cable probably leads to one device, such as the management controller."""
    addresses = link.texts("interface.addresses")
    has_only_self_assigned = any(map(is_self_assigned, addresses)) and not any(
        map(is_routable, addresses)
    )
    return has_only_self_assigned or link.flag("interface.defaultRoute") is False


def _lossy(facts: SnapshotFacts) -> Iterator[Values]:
    # Tunnels are skipped. They count each packet that they can send to no peer as an error, even if
    # nothing is wrong.
    for name, link in facts.interfaces:
        if link.text("interface.type") not in PHYSICAL_TYPES:
            continue
        for direction, errors_key, packets_key in (
            ("received", "interface.receiveErrors", "interface.receivedPackets"),
            ("sent", "interface.sendErrors", "interface.sentPackets"),
        ):
            errors, packets = link.number(errors_key), link.number(packets_key)
            if errors is None or packets is None or errors < ERRORS:
                continue
            if errors >= ERROR_SHARE * (packets + errors):
                error_count = f"{errors:,.0f} of {packets + errors:,.0f} packets {direction}"
                yield {"interface": name, "errors": error_count}


CONNECTIVITY_RULES: Final[tuple[Rule[SnapshotFacts], ...]] = (
    ProblemRule(
        "no-network",
        "interface.up, interface.addresses",
        "no active interface has an address that is valid beyond its own link",
        "The machine is not connected to a network.",
        "check the cable, or connect to the Wi-Fi",
        _disconnected,
        explained_by=("no-dhcp-answer",),
    ),
    ProblemRule(
        "no-dhcp-answer",
        "interface.addresses, interface.type, interface.up",
        "a Wi-Fi, or the cable of a machine without another connection, is up and has only an"
        " address of 169.254.0.0/16",
        "The interface {interface} got no address by DHCP and uses {address} instead.",
        "check the cable, the Wi-Fi's password and the router's DHCP server",
        _without_dhcp,
    ),
    ProblemRule(
        "name-not-resolved",
        "network.service.error, network.dnsServers, network.dnsAnswers",
        "the service's name could not be resolved",
        "The service's name could not be resolved; name servers: {servers}.",
        "check the network and its name servers, and `service.base_url`",
        _unresolved,
        explained_by=("no-network",),
    ),
    ProblemRule(
        "service-unreachable",
        "network.service.reachable, network.service.error",
        "`network.service.reachable` is false, and the service's name was resolved",
        "The service cannot be reached: {why}.",
        "run `venue-agent doctor`: it finds out whether network, firewall, proxy or service fails",
        _unreachable,
        explained_by=("no-network",),
    ),
    ProblemRule(
        "tls-failed",
        "network.service.tlsVersion",
        "the handshake failed, though a connection was made",
        "The service was reached, but a TLS connection failed: {why}.",
        "check for a sign-in page of the network, or a firewall that inspects TLS",
        _handshake_failed,
    ),
    ProblemRule(
        "certificate-expired",
        "network.service.tlsExpiresAt",
        "expired when the snapshot was taken",
        "The service's certificate expired on {ended}.",
        "check this machine's clock; if it is correct, have the certificate renewed",
        _expired,
    ),
    ProblemRule(
        "certificate-untrusted",
        "network.service.tlsTrusted, network.service.tlsIssuer",
        "`network.service.tlsTrusted` is false, and the certificate has not expired",
        "This machine does not trust the issuer of the service's certificate: {issuer}.",
        "if the issuer is a firewall, exempt the service from inspection; if it is your own"
        " authority, install its certificate",
        _untrusted,
    ),
    WarningRule(
        "certificate-expiring",
        "network.service.tlsExpiresAt, network.service.tlsIssuedAt",
        f"less than {CERTIFICATE_DAYS} days and less than {percent(CERTIFICATE_LIFE)} of its"
        " lifetime left when the snapshot was taken",
        "The service's certificate expires in {time}.",
        "ask the operator of the service to renew it",
        _expiring,
    ),
    WarningRule(
        "no-name-server",
        "network.dnsServers",
        "none, on a machine with a network",
        "No name server (DNS) is configured.",
        "get one from the router (DHCP), or configure one",
        _without_name_server,
    ),
    WarningRule(
        "name-server-silent",
        "network.dnsAnswers",
        "the name server did not answer a query for the service's name, or answered with an error;"
        " a name server without a route counts only if no other name server answers",
        "The name server {server} does not answer: {why}.",
        "check that it is on and that no firewall blocks UDP port 53; if it is not needed, remove"
        " it, because it delays look-ups",
        _silent_name_servers,
        explained_by=("no-network", "name-not-resolved"),
    ),
    WarningRule(
        "names-slow",
        "network.service.resolveMilliseconds",
        f"at least {format_milliseconds(SLOW_NAMES_MS)}",
        "Resolving the service's name took {time}.",
        "check whether the internet connection is overloaded, or use another name server",
        at_least("network.service.resolveMilliseconds", SLOW_NAMES_MS, "time", format_milliseconds),
        explained_by=("name-server-silent",),
    ),
    WarningRule(
        "service-slow",
        "network.service.connectMilliseconds",
        f"at least {format_milliseconds(SLOW_SERVICE_MS)}",
        "Connecting to the service took {time}.",
        "check whether the internet connection is overloaded or the Wi-Fi is weak",
        at_least(
            "network.service.connectMilliseconds", SLOW_SERVICE_MS, "time", format_milliseconds
        ),
    ),
    WarningRule(
        "wifi-weak",
        "interface.wifiSignalDbm",
        f"{WIFI_WEAK_DBM} dBm or less",
        "The Wi-Fi signal at {interface} is weak: {signal}.",
        "move the machine or the access point, or use a cable",
        _wifi_weak,
    ),
    WarningRule(
        "link-slow",
        "interface.speedMegabitsPerSecond, interface.duplex, interface.type, interface.up,"
        " interface.defaultRoute, interface.addresses",
        f"a cable runs at {SLOW_LINK_MBPS} Mbit/s or less, or half duplex; a cable without a"
        " default route, or with only an address of 169.254.0.0/16, is ignored",
        "The cable at {interface} runs at only {speed}.",
        "replace the cable, then use another port of the switch: a broken wire has this effect",
        _link_slow,
    ),
    WarningRule(
        "interface-errors",
        "interface.receiveErrors, interface.sendErrors, interface.receivedPackets,"
        " interface.sentPackets, interface.type",
        f"at least {ERRORS} errors, and one in {1 / ERROR_SHARE:,.0f} packets, on a cable or Wi-Fi",
        "The interface {interface} has errors: {errors}.",
        "replace the cable, then use another port of the switch; on Wi-Fi, move closer",
        _lossy,
    ),
    NoteRule(
        "own-address-only",
        "interface.addresses, interface.type, interface.up",
        "a cable is up and has only an address of 169.254.0.0/16, on a machine with another"
        " connection",
        "The interface {interface} has only a self-assigned address: {address}.",
        OWN_ADDRESS_FIX,
        _direct_cable,
    ),
)
