"""The rules on a network report: printers first, then what keeps the venue's devices apart."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from agent.presentation.findings.connectivity import is_routable, is_self_assigned
from agent.presentation.findings.rule import HERE, Rule, Sighting
from agent.presentation.humanize import milliseconds_in_words
from agent.presentation.printer_status import StatusWord, status_of
from agent.wire.payloads.network import (
    MapHost,
    MapInterface,
    NetworkMap,
    NetworkPayload,
    Printer,
    SourceFailed,
)

GATEWAY_SLOW_MS: Final = 100

_NO_ROUTE: Final = "this machine has no default route"
"""What the collector says where there is no gateway, and not why it could not be read."""
_SAYS: Final = re.compile(r"\b[Tt]he (?:printer|spooler) says: ([^;]+)")
_HARMLESS: Final = re.compile(r"low on |asked to |holds new jobs|.* nearly ")
_STOPPED: Final = ("the printer says that it is stopped", "its queue is stopped on this machine")


def _with_status(payload: NetworkPayload, status: StatusWord) -> Iterator[Printer]:
    return (printer for printer in payload.printers or () if status_of(printer) == status)


def _words_of(printer: Printer) -> dict[str, str]:
    name = printer.name or printer.id
    at = f"at {printer.address}" if printer.address else ""
    return {"printer": name if "printer" in name.casefold() else f"The printer {name}", "at": at}


def _unreachable(payload: NetworkPayload) -> Iterator[Sighting]:
    return map(_words_of, _with_status(payload, "unreachable"))


def _moved(payload: NetworkPayload) -> Iterator[Sighting]:
    for printer in _with_status(payload, "moved"):
        places = {"old": printer.address or "", "new": printer.matched_endpoint or ""}
        yield {**_words_of(printer), **places}


def _unjudged(payload: NetworkPayload) -> Iterator[Sighting]:
    # Whether one at a cable, or paired, is there, many systems do not tell.
    network = (p for p in _with_status(payload, "unknown") if p.transport == "network")
    return map(_words_of, network)


def _complaining(payload: NetworkPayload) -> Iterator[Sighting]:
    for printer in payload.printers or ():
        says = ", ".join(_complaints(printer.reason or ""))
        if says:
            yield {**_words_of(printer), "says": says}


def _complaints(reason: str) -> Iterator[str]:
    """Yield what a reason quotes of a printer that somebody has to see to."""
    for quoted in dict.fromkeys(_SAYS.findall(reason)):
        for each in re.split(r", | and ", quoted):
            if not _HARMLESS.match(each):
                yield each
    if any(stopped in reason for stopped in _STOPPED):
        yield "stopped"


def _read(payload: NetworkPayload) -> NetworkMap | None:
    """Return the map of a machine whose interfaces were read."""
    found = payload.network_map
    return found if found is not None and found.sources.interfaces.state == "succeeded" else None


def _scanned(payload: NetworkPayload) -> NetworkMap | None:
    """Return the map of a network that was scanned to the end."""
    found = _read(payload)
    if found is None or payload.scope != "local-network":
        return None
    return found if found.sources.scan.state == "succeeded" else None


def _in_use(found: NetworkMap) -> tuple[MapInterface, ...]:
    """Return the interfaces with an address that reaches beyond their link."""
    return tuple(i for i in found.interfaces if any(is_routable(a.address) for a in i.addresses))


def _disconnected(payload: NetworkPayload) -> tuple[Sighting, ...]:
    found = _read(payload)
    return HERE if found is not None and not _in_use(found) else ()


def _without_dhcp(payload: NetworkPayload) -> Iterator[Sighting]:
    found = _read(payload)
    for link in found.interfaces if found is not None else ():
        addresses = [known.address for known in link.addresses]
        own = next(filter(is_self_assigned, addresses), None)
        if own is not None and not any(map(is_routable, addresses)):
            yield {"interface": link.name, "address": own}


def _without_gateway(payload: NetworkPayload) -> tuple[Sighting, ...]:
    found = _read(payload)
    is_read = payload.unavailable.gateway in {None, _NO_ROUTE}
    if found is None or not is_read or not _in_use(found):
        return ()
    return () if any(link.gateways for link in found.interfaces) else HERE


def _gateways(found: NetworkMap | None) -> tuple[MapHost, ...]:
    return () if found is None else tuple(h for h in found.hosts if "gateway" in h.sources)


def _gateway_silent(payload: NetworkPayload) -> Iterator[Sighting]:
    for host in _gateways(_scanned(payload)):
        if host.reachability != "reachable" and host.mac_address is None:
            yield {"gateway": host.address}


def _gateway_slow(payload: NetworkPayload) -> Iterator[Sighting]:
    for host in _gateways(payload.network_map):
        if host.latency_ms is not None and host.latency_ms >= GATEWAY_SLOW_MS:
            yield {"gateway": host.address, "time": milliseconds_in_words(host.latency_ms)}


def _alone(payload: NetworkPayload) -> tuple[Sighting, ...]:
    found = _scanned(payload)
    if found is None or not _gateways(found):
        return ()
    others = (h for h in found.hosts if not {"gateway", "local"} & set(h.sources))
    return () if any(others) else HERE


def _same_address(payload: NetworkPayload) -> Iterator[Sighting]:
    """Yield each address that two interfaces of this machine have, or two MACs answer for."""
    found = payload.network_map
    if found is None:
        return
    own = Counter(
        address
        for link in found.interfaces
        for address in {known.address for known in link.addresses}
        if is_routable(address)
    )
    macs: dict[str, dict[str, None]] = {}
    seen = [(e.address, e.mac_address) for e in payload.endpoints]
    for address, mac in (*seen, *((h.address, h.mac_address) for h in found.hosts)):
        if mac is not None:
            macs.setdefault(address, {})[mac.lower()] = None
    for address, count in own.items():
        if count > 1:
            yield {"address": address, "whose": f"{count} interfaces of this machine"}
    for address, known in macs.items():
        if len(known) > 1 and is_routable(address):
            yield {"address": address, "whose": f"the MACs {' and '.join(known)}"}


def _failed_sources(payload: NetworkPayload) -> Iterator[Sighting]:
    found = payload.network_map
    if found is None:
        return
    for what, source in (
        ("Reading the interfaces", found.sources.interfaces),
        ("Scanning the network", found.sources.scan),
        ("Listening for announcements (mDNS)", found.sources.mdns),
    ):
        if isinstance(source, SourceFailed):
            yield {"what": what, "why": source.reason}


def _unfinished(payload: NetworkPayload) -> tuple[Sighting, ...]:
    found = payload.network_map
    return HERE if found is not None and found.state != "completed" else ()


NETWORK_RULES: Final[tuple[Rule[NetworkPayload], ...]] = (
    Rule(
        "printer-moved",
        "problem",
        "printers[].status, matchedEndpoint",
        "unreachable, and found at another address",
        "{printer} has moved from {old} to {new}.",
        "set it up with the new address, or have the router give it a fixed one",
        _moved,
    ),
    Rule(
        "printer-unreachable",
        "problem",
        "printers[].status",
        "unreachable, and found nowhere else",
        "{printer} {at} is not reachable.",
        "see that it is on and connected; the reason stands under Printers",
        _unreachable,
    ),
    Rule(
        "no-network",
        "problem",
        "networkMap.interfaces[].addresses",
        "no interface has an address that reaches beyond its own link",
        "The machine is on no network.",
        "check the cable or join the Wi-Fi",
        _disconnected,
    ),
    Rule(
        "no-dhcp-answer",
        "problem",
        "networkMap.interfaces[].addresses",
        "an interface has nothing but an address of 169.254.0.0/16",
        "The interface {interface} was given no address and took {address} itself.",
        "check the cable, the Wi-Fi's password and that the router gives addresses (DHCP)",
        _without_dhcp,
    ),
    Rule(
        "gateway-silent",
        "problem",
        "networkMap.hosts[] that are gateways",
        "no answer and no MAC address, though the scan succeeded",
        "The gateway {gateway} does not answer: there is no way out of this network.",
        "see that the router is on and that this machine is set up for its network",
        _gateway_silent,
    ),
    Rule(
        "address-conflict",
        "problem",
        "networkMap.interfaces[].addresses, MAC addresses of hosts and endpoints",
        "one address on two interfaces of this machine, or of two MAC addresses",
        "The address {address} is used twice: by {whose}.",
        "give one of them another address, or let the router give both (DHCP)",
        _same_address,
    ),
    Rule(
        "printer-needs-attention",
        "warning",
        "printers[].reason",
        "quotes the printer or its queue as stopped, out of paper or toner, jammed, open, …",
        "{printer} needs attention: {says}.",
        "go to the printer: its panel says what it needs; then resume its queue",
        _complaining,
    ),
    Rule(
        "nothing-but-gateway",
        "warning",
        "networkMap.hosts[]",
        "the scan succeeded, and nothing was found but this machine and the gateway",
        "Nothing answers on this network but the gateway.",
        "see whether this is a guest network, or one that keeps its devices apart (client"
        " isolation, VLAN)",
        _alone,
    ),
    Rule(
        "no-gateway",
        "warning",
        "networkMap.interfaces[].gateways",
        "none, on a machine that has a network",
        "No gateway is set: there is no way out of this network.",
        "let the router give the address (DHCP), or set its address as gateway",
        _without_gateway,
    ),
    Rule(
        "gateway-slow",
        "warning",
        "networkMap.hosts[].latencyMs of gateways",
        f"at least {milliseconds_in_words(GATEWAY_SLOW_MS)}",
        "The gateway {gateway} answers slowly: after {time}.",
        "see whether the Wi-Fi is weak or the network overloaded",
        _gateway_slow,
    ),
    Rule(
        "source-failed",
        "warning",
        "networkMap.sources",
        "failed",
        "{what} failed: {why}.",
        "run `venue-agent doctor`: it says what stands in the way",
        _failed_sources,
    ),
    Rule(
        "report-unfinished",
        "warning",
        "networkMap.state",
        "not completed",
        "The report was cut short: there may be more than it shows.",
        "ask for another; on a large network raise `network.max_duration_seconds`",
        _unfinished,
    ),
    Rule(
        "printer-not-judged",
        "note",
        "printers[].status, transport",
        "unknown, of a printer on the network",
        "{printer} {at} could not be judged.",
        "the reason stands under Printers",
        _unjudged,
    ),
)
