"""The rules on the way out: interfaces and Wi-Fi, name servers, the service and its certificate."""

import ipaddress
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from agent.presentation.findings.rule import HERE, Rule, Sighting
from agent.presentation.findings.snapshot_facts import Fields, SnapshotFacts
from agent.presentation.humanize import (
    milliseconds_in_words,
    moment,
    moment_in_words,
    percent,
    seconds_in_words,
)

SLOW_NAMES_MS, SLOW_SERVICE_MS = 1000, 1000
CERTIFICATE_DAYS, CERTIFICATE_LIFE = 14, 0.25
WIFI_WEAK_DBM: Final = -75
SLOW_LINK_MBPS: Final = 10
ERRORS, ERROR_SHARE = 100, 0.001

_REAL_LINKS: Final = frozenset({"ethernet", "wifi"})
_NAME_ERRORS: Final = (
    "the service's name does not resolve",
    "the name was not resolved in time",
)
"""What the collector says where the name, and not the service, is the trouble."""


def is_routable(address: str) -> bool:
    """Tell whether an address (its prefix length may follow) reaches beyond its own link."""
    try:
        known = ipaddress.ip_interface(address).ip
    except ValueError:
        return False
    return not (known.is_loopback or known.is_link_local or known.is_unspecified)


def is_self_assigned(address: str) -> bool:
    """Tell an IPv4 address that a machine gives itself where DHCP is silent (RFC 3927)."""
    try:
        known = ipaddress.ip_interface(address).ip
    except ValueError:
        return False
    return known.version == 4 and known.is_link_local


def _up(facts: SnapshotFacts) -> Iterator[tuple[str, Fields]]:
    return ((name, link) for name, link in facts.interfaces if link.flag("interface.up"))


def _is_connected(facts: SnapshotFacts) -> bool:
    addresses = (a for _, link in _up(facts) for a in link.texts("interface.addresses"))
    return any(map(is_routable, addresses))


def _disconnected(facts: SnapshotFacts) -> tuple[Sighting, ...]:
    was_read = any(link.is_known("interface.addresses") for _, link in facts.interfaces)
    return HERE if was_read and not _is_connected(facts) else ()


def _without_dhcp(facts: SnapshotFacts) -> Iterator[Sighting]:
    for name, link in _up(facts):
        addresses = link.texts("interface.addresses")
        own = next(filter(is_self_assigned, addresses), None)
        is_real = link.text("interface.type") in _REAL_LINKS
        if own is not None and is_real and not any(map(is_routable, addresses)):
            yield {"interface": name, "address": own.partition("/")[0]}


def _nameless(facts: SnapshotFacts) -> tuple[Sighting, ...]:
    return HERE if facts.machine.is_absent("network.dnsServers") and _is_connected(facts) else ()


def _unresolved(facts: SnapshotFacts) -> Iterator[Sighting]:
    if facts.machine.text("network.service.error") in _NAME_ERRORS:
        servers = ", ".join(facts.machine.texts("network.dnsServers"))
        yield {"servers": servers or "none is set"}


def _unreachable(facts: SnapshotFacts) -> Iterator[Sighting]:
    why = facts.machine.text("network.service.error")
    if facts.machine.flag("network.service.reachable") is False and why not in _NAME_ERRORS:
        yield {"why": why or "no reason was given"}


def _slow(facts: SnapshotFacts, key: str, limit_ms: float) -> Iterator[Sighting]:
    took = facts.machine.number(key)
    if took is not None and took >= limit_ms:
        yield {"time": milliseconds_in_words(took)}


def _names_slow(facts: SnapshotFacts) -> Iterator[Sighting]:
    return _slow(facts, "network.service.resolveMilliseconds", SLOW_NAMES_MS)


def _service_slow(facts: SnapshotFacts) -> Iterator[Sighting]:
    return _slow(facts, "network.service.connectMilliseconds", SLOW_SERVICE_MS)


def _handshake_failed(facts: SnapshotFacts) -> Iterator[Sighting]:
    why = facts.machine.why_failed("network.service.tlsVersion")
    if why is not None and facts.machine.flag("network.service.reachable"):
        yield {"why": why}


def _valid_for(facts: SnapshotFacts) -> timedelta | None:
    """Return how long the certificate holds from when the snapshot was taken."""
    ends = moment(facts.machine.text("network.service.tlsExpiresAt"))
    return None if ends is None or facts.taken_at is None else ends - facts.taken_at


def _expired(facts: SnapshotFacts) -> Iterator[Sighting]:
    left = _valid_for(facts)
    if left is not None and left <= timedelta():
        ended = moment_in_words(facts.machine.text("network.service.tlsExpiresAt"))
        yield {"ended": ended}


def _expiring(facts: SnapshotFacts) -> Iterator[Sighting]:
    left = _valid_for(facts)
    if left is not None and timedelta() < left < _renewed_before(facts):
        yield {"time": seconds_in_words(left.total_seconds(), units=1)}


def _renewed_before(facts: SnapshotFacts) -> timedelta:
    """Return when a certificate is renewed at the latest; one for six days has days left only."""
    starts = moment(facts.machine.text("network.service.tlsIssuedAt"))
    ends = moment(facts.machine.text("network.service.tlsExpiresAt"))
    least = timedelta(days=CERTIFICATE_DAYS)
    return (
        least if starts is None or ends is None else min(least, CERTIFICATE_LIFE * (ends - starts))
    )


def _untrusted(facts: SnapshotFacts) -> Iterator[Sighting]:
    left = _valid_for(facts)
    is_expired = left is not None and left <= timedelta()
    if facts.machine.flag("network.service.tlsTrusted") is False and not is_expired:
        yield {"issuer": facts.machine.text("network.service.tlsIssuer") or "unnamed"}


def _wifi_weak(facts: SnapshotFacts) -> Iterator[Sighting]:
    for name, link in _up(facts):
        signal = link.number("interface.wifiSignalDbm")
        if signal is not None and signal <= WIFI_WEAK_DBM:
            yield {"interface": name, "signal": f"{signal:.0f} dBm"}


def _link_slow(facts: SnapshotFacts) -> Iterator[Sighting]:
    for name, link in _up(facts):
        speed = link.number("interface.speedMegabitsPerSecond")
        is_cable = link.text("interface.type") == "ethernet"
        if is_cable and speed is not None and speed <= SLOW_LINK_MBPS:
            yield {"interface": name, "speed": f"{speed:.0f} Mbit/s"}


def _lossy(facts: SnapshotFacts) -> Iterator[Sighting]:
    # A tunnel counts what it has no peer for as errors.
    real = ((n, i) for n, i in facts.interfaces if i.text("interface.type") in _REAL_LINKS)
    for name, link in real:
        for way, errors_key, packets_key in (
            ("received", "interface.receiveErrors", "interface.receivedPackets"),
            ("sent", "interface.sendErrors", "interface.sentPackets"),
        ):
            errors, packets = link.number(errors_key), link.number(packets_key)
            if errors is None or packets is None or errors < ERRORS:
                continue
            if errors >= ERROR_SHARE * (packets + errors):
                of = f"{errors:,.0f} of {packets + errors:,.0f} packets {way}"
                yield {"interface": name, "errors": of}


CONNECTIVITY_RULES: Final[tuple[Rule[SnapshotFacts], ...]] = (
    Rule(
        "no-network",
        "problem",
        "interface.up, interface.addresses",
        "no interface that is up has an address that reaches beyond its own link",
        "The machine is on no network.",
        "check the cable or join the Wi-Fi",
        _disconnected,
        explained_by=("no-dhcp-answer",),
    ),
    Rule(
        "no-dhcp-answer",
        "problem",
        "interface.addresses, interface.type, interface.up",
        "a cable or Wi-Fi is up with nothing but an address of 169.254.0.0/16",
        "The interface {interface} was given no address and took {address} itself.",
        "check the cable, the Wi-Fi's password and that the router gives addresses (DHCP)",
        _without_dhcp,
    ),
    Rule(
        "name-not-resolved",
        "problem",
        "network.service.error, network.dnsServers",
        "the service's name was not resolved",
        "The service's name was not resolved; name servers: {servers}.",
        "check the network and its name servers, and `service.base_url`",
        _unresolved,
        explained_by=("no-network",),
    ),
    Rule(
        "service-unreachable",
        "problem",
        "network.service.reachable, network.service.error",
        "false, though its name was resolved",
        "The service was not reached: {why}.",
        "`venue-agent doctor` tells where the way ends: network, firewall, proxy or service",
        _unreachable,
        explained_by=("no-network",),
    ),
    Rule(
        "tls-failed",
        "problem",
        "network.service.tlsVersion",
        "the handshake failed, though a connection was made",
        "The service was reached, but nothing can be agreed with it: {why}.",
        "look for a sign-in page of the network or a firewall that inspects TLS",
        _handshake_failed,
    ),
    Rule(
        "certificate-expired",
        "problem",
        "network.service.tlsExpiresAt",
        "expired when the snapshot was taken",
        "The service's certificate expired on {ended}.",
        "check this machine's clock; if it is right, have the certificate renewed",
        _expired,
    ),
    Rule(
        "certificate-untrusted",
        "problem",
        "network.service.tlsTrusted, network.service.tlsIssuer",
        "false, though it has not expired",
        "This machine does not trust the service's certificate; it is issued by {issuer}.",
        "where the issuer is a firewall, exempt the service from inspection; where it is your own"
        " authority, install its certificate",
        _untrusted,
    ),
    Rule(
        "certificate-expiring",
        "warning",
        "network.service.tlsExpiresAt, network.service.tlsIssuedAt",
        f"less than {CERTIFICATE_DAYS} days left when the snapshot was taken, and less than"
        f" {percent(CERTIFICATE_LIFE)} of its life",
        "The service's certificate expires in {time}.",
        "have it renewed; whoever runs the service knows how",
        _expiring,
    ),
    Rule(
        "no-name-server",
        "warning",
        "network.dnsServers",
        "none is set, on a machine that has a network",
        "No name server (DNS) is set.",
        "let the router give one (DHCP), or set one by hand",
        _nameless,
    ),
    Rule(
        "names-slow",
        "warning",
        "network.service.resolveMilliseconds",
        f"at least {milliseconds_in_words(SLOW_NAMES_MS)}",
        "Resolving the service's name took {time}.",
        "see whether the first name server answers at all; put one that does first",
        _names_slow,
    ),
    Rule(
        "service-slow",
        "warning",
        "network.service.connectMilliseconds",
        f"at least {milliseconds_in_words(SLOW_SERVICE_MS)}",
        "Connecting to the service took {time}.",
        "see whether the internet line is overloaded or the Wi-Fi weak",
        _service_slow,
    ),
    Rule(
        "wifi-weak",
        "warning",
        "interface.wifiSignalDbm",
        f"{WIFI_WEAK_DBM} dBm or less",
        "The Wi-Fi signal at {interface} is weak: {signal}.",
        "move the machine or the access point, or lay a cable",
        _wifi_weak,
    ),
    Rule(
        "link-slow",
        "warning",
        "interface.speedMegabitsPerSecond, interface.type, interface.up",
        f"{SLOW_LINK_MBPS} Mbit/s or less on a cable",
        "The cable at {interface} carries only {speed}.",
        "change the cable, then the port of the switch: a broken wire has this effect",
        _link_slow,
    ),
    Rule(
        "interface-errors",
        "warning",
        "interface.receiveErrors, interface.sendErrors, interface.receivedPackets,"
        " interface.sentPackets, interface.type",
        f"at least {ERRORS} errors, and one in {1 / ERROR_SHARE:,.0f} packets, of a cable or Wi-Fi",
        "The interface {interface} has errors: {errors}.",
        "change the cable, then the port of the switch; on Wi-Fi move closer",
        _lossy,
    ),
)
