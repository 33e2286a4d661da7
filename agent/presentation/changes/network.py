"""What changed between two network reports: printers, the machine's own network, hosts."""

import ipaddress
from collections.abc import Callable, Iterator
from typing import Final

from agent.presentation.changes.change import NOT_LOOKED_AT, Change, Changes, change, worst_first
from agent.presentation.changes.coverage import looked_as_far
from agent.presentation.changes.findings import Seen, finding_changes
from agent.presentation.changes.hosts import host_changes, own_networks
from agent.presentation.findings.connectivity import is_routable
from agent.presentation.findings.findings import NETWORK_RULES
from agent.presentation.hosts.rows import printer_name
from agent.presentation.plain_text import NAME_LENGTH, shorten
from agent.presentation.printer_status import STATUS_TONES, status_of
from agent.wire import limits
from agent.wire.addresses import split_host_port
from agent.wire.payloads.network import MapInterface, NetworkMap, NetworkPayload, Printer

_NO_ROUTE: Final = "this machine has no default route"
"""What the collector says where there is no gateway, and not why it could not be read."""


def network_changes(before: NetworkPayload, after: NetworkPayload) -> Changes:
    own, lines = list(_own_network(before, after)), _unread_printers(before, after)
    changes = [*_printer_changes(before, after), *own]
    if any(each.code == "network" for each in own):
        lines = (*lines, "Hosts were not compared: the machine is on another network.")
    else:
        of_hosts, more = host_changes(before, after)
        changes += of_hosts
        lines = (*lines, *more)
    looked = _looked(before, after), _looked(after, before)
    changes += finding_changes(NETWORK_RULES, (before, after), looked)
    return Changes(before.started_at, worst_first(changes), lines)


def _looked(one: NetworkPayload, other: NetworkPayload) -> Callable[[Seen[NetworkPayload]], bool]:
    return lambda _: looked_as_far(one, other)


# ---------------------------------------------------------------------------- printers


def _printer_changes(before: NetworkPayload, after: NetworkPayload) -> Iterator[Change]:
    if before.printers is None or after.printers is None:
        return
    was = {printer.id: printer for printer in before.printers}
    now = {printer.id: printer for printer in after.printers}
    for known, printer in was.items():
        if known not in now:
            is_gone = looked_as_far(after, before) and len(now) < limits.PRINTERS_MAX
            yield _printer_gone(printer, is_gone)
    for known, printer in now.items():
        if known in was:
            yield from _printer_otherwise(was[known], printer)
        else:
            is_new = looked_as_far(before, after) and len(was) < limits.PRINTERS_MAX
            yield _printer_new(printer, is_new)


def _printer_gone(printer: Printer, is_gone: bool) -> Change:
    name, states = _called(printer), (_state(printer), "" if is_gone else NOT_LOOKED_AT)
    if not is_gone:
        return change(
            "printer", printer.id, states, "muted", f"{name} was not looked at this time."
        )
    sentence = f"{name} is no longer set up on this machine."
    return change("printer", printer.id, states, "warn", sentence)


def _printer_new(printer: Printer, is_new: bool) -> Change:
    name, states = _called(printer), ("" if is_new else NOT_LOOKED_AT, _state(printer))
    words = "is new" if is_new else "is new, or was not looked at before"
    status = status_of(printer)
    tone = STATUS_TONES[status]
    sentence = f"{name} {words}: {_state_in_words(printer)}."
    is_quiet = tone == "good" or printer.transport != "network"
    return change("printer", printer.id, states, "muted" if is_quiet else tone, sentence)


def _printer_otherwise(was: Printer, now: Printer) -> Iterator[Change]:
    name, old, new = _called(now), _state(was), _state(now)
    if status_of(was) != status_of(now) or (status_of(now) == "moved" and _found(was, now)):
        words = "again " if status_of(now) == "reachable" else ""
        sentence = f"{name} is {words}{_state_in_words(now)}; it was {_state_in_words(was)}."
        yield change("printer", now.id, (old, new), STATUS_TONES[status_of(now)], sentence)
    if was.address != now.address:
        places = shorten(was.address or "", NAME_LENGTH), shorten(now.address or "", NAME_LENGTH)
        old_words, new_words = (place or "no address" for place in places)
        sentence = f"{name} is set up with {new_words} now; it was {old_words}."
        yield change("printer-address", now.id, places, "muted", sentence)
    elif status_of(was) == status_of(now) == "reachable" and _found(was, now):
        places = was.matched_endpoint or "", now.matched_endpoint or ""
        sentence = f"{name} is found at {places[1]} now; it was at {places[0]}."
        yield change("printer-place", now.id, places, "muted", sentence)


def _found(was: Printer, now: Printer) -> bool:
    """Tell whether it was found at two addresses of one family: a device often has one of each."""
    one, other = _ip(was.matched_endpoint), _ip(now.matched_endpoint)
    return one is not None and other is not None and one.version == other.version and one != other


def _ip(endpoint: str | None) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(split_host_port(endpoint or "")[0])
    except ValueError:
        return None


def _called(printer: Printer) -> str:
    name = printer_name(printer)
    return name if "printer" in name.casefold() else f"The printer {name}"


def _state(printer: Printer) -> str:
    status = status_of(printer)
    return f"moved to {printer.matched_endpoint}" if status == "moved" else status


def _state_in_words(printer: Printer) -> str:
    words = {"unreachable": "not reachable", "unknown": "in an unknown state"}
    return words.get(_state(printer), _state(printer))


def _unread_printers(before: NetworkPayload, after: NetworkPayload) -> tuple[str, ...]:
    if (before.printers is None) == (after.printers is None):
        return ()
    when = "this time" if after.printers is None else "in the earlier report"
    return (f"Printers were not looked at {when}.",)


# ---------------------------------------------------------------------------- the machine's network


def _own_network(before: NetworkPayload, after: NetworkPayload) -> Iterator[Change]:
    was, now = _read(before), _read(after)
    if was is None or now is None:
        return
    old, new = own_networks(was), own_networks(now)
    if old and new and not old & new:
        states = ", ".join(sorted(map(str, old))), ", ".join(sorted(map(str, new)))
        sentence = f"The machine is on another network: {states[1]}; it was on {states[0]}."
        yield change("network", "", states, "warn", sentence)
        return
    links = _links(was), _links(now)
    for name in dict.fromkeys((*links[0], *links[1])):
        one, other = (each.get(name) for each in links)
        yield from _link_changes(name, one, other)
        if one and other and _gateways_are_known(before) and _gateways_are_known(after):
            yield from _gateway_changes(name, one, other)


def _link_changes(
    name: str, one: MapInterface | None, other: MapInterface | None
) -> Iterator[Change]:
    states = _addresses(one), _addresses(other)
    if states[0] == states[1]:
        return
    label = shorten(name, NAME_LENGTH)
    if not states[0] or not states[1]:
        words = f"has an address now: {states[1]}" if states[1] else f"lost its address {states[0]}"
        yield change("own-address", name, states, "muted", f"The interface {label} {words}.")
        return
    sentence = f"This machine has the address {states[1]} on {label}; it was {states[0]}."
    yield change("own-address", name, states, "muted", sentence)


def _gateway_changes(name: str, one: MapInterface, other: MapInterface) -> Iterator[Change]:
    states = ", ".join(sorted(one.gateways)), ", ".join(sorted(other.gateways))
    if states[0] != states[1]:
        old, new = (state or "none" for state in states)
        sentence = f"The gateway on {shorten(name, NAME_LENGTH)} is {new}; it was {old}."
        yield change("gateway", name, states, "warn", sentence)


def _addresses(link: MapInterface | None) -> str:
    """Return its IPv4 addresses: those of IPv6 change by themselves (RFC 8981)."""
    known = (each.address for each in link.addresses if each.family == "ipv4") if link else ()
    return ", ".join(sorted(filter(is_routable, known)))


def _links(found: NetworkMap) -> dict[str, MapInterface]:
    return {link.name: link for link in found.interfaces}


def _read(payload: NetworkPayload) -> NetworkMap | None:
    """Return the map of a machine whose interfaces were read."""
    found = payload.network_map
    return found if found is not None and found.sources.interfaces.state == "succeeded" else None


def _gateways_are_known(payload: NetworkPayload) -> bool:
    return payload.unavailable.gateway in {None, _NO_ROUTE}
