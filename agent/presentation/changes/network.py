"""The differences between two network reports: printers, the machine's own network, hosts."""

from collections.abc import Iterator

from agent.presentation.changes.change import (
    NOT_CHECKED,
    Change,
    Changes,
    change,
    covers,
    differences,
    most_severe_first,
)
from agent.presentation.changes.findings import Match, WasChecked, finding_changes
from agent.presentation.changes.hosts import host_changes, own_networks
from agent.presentation.findings.connectivity import is_routable
from agent.presentation.findings.findings import NETWORK_RULES
from agent.presentation.findings.local_network import are_gateways_known, readable_map
from agent.presentation.findings.watched_devices import WATCHED_NETWORK_RULES
from agent.presentation.plain_text import shorten
from agent.presentation.printer_status import (
    STATUS_SEVERITIES,
    described_name,
    is_other_address,
    status_of,
)
from agent.presentation.watched_devices import watched_devices
from agent.wire import limits
from agent.wire.payloads.network import MapInterface, NetworkMap, NetworkPayload, Printer


def network_changes(before: NetworkPayload, after: NetworkPayload) -> Changes:
    own_changes = list(_own_network(before, after))
    changes = [*_printer_changes(before, after), *own_changes]
    not_compared = _printers_not_compared(before, after)
    if any(own_change.code == "network" for own_change in own_changes):
        sentence = "Hosts were not compared: the machine is on another network."
        not_compared = (*not_compared, sentence)
    else:
        changes_in_hosts, hosts_not_compared = host_changes(before, after)
        changes += changes_in_hosts
        not_compared = (*not_compared, *hosts_not_compared)
    was_checked = _coverage(before, after), _coverage(after, before)
    changes += finding_changes(NETWORK_RULES, (before, after), was_checked)
    return Changes(before.started_at, most_severe_first(changes), not_compared)


def _coverage(one: NetworkPayload, other: NetworkPayload) -> WasChecked[NetworkPayload]:
    """Return a function that states for a finding of ``other`` whether ``one`` checked its subject.

    A watched device was checked if its state in ``one`` is not "unknown". Any other subject was
    checked if ``one`` covers ``other`` (see `covers`).
    """
    is_covered = covers(one, other)
    devices = watched_devices(one)
    checked_names = {device.subject for device in devices if device.state != "unknown"}

    def was_checked(match: Match[NetworkPayload]) -> bool:
        return match.subject in checked_names if match.rule in WATCHED_NETWORK_RULES else is_covered

    return was_checked


# ---------------------------------------------------------------------------- printers


def _printer_changes(before: NetworkPayload, after: NetworkPayload) -> Iterator[Change]:
    if before.printers is None or after.printers is None:
        return
    earlier = {printer.id: printer for printer in before.printers}
    later = {printer.id: printer for printer in after.printers}
    # A report with `PRINTERS_MAX` printers may have left out further ones. So a printer that is not
    # in this report may exist.
    for _, old, new in differences(earlier, later):
        if old and new:
            yield from _printer_change(old, new)
        elif old:
            yield _printer_removed(old, covers(after, before) and len(later) < limits.PRINTERS_MAX)
        elif new:
            yield _printer_added(new, covers(before, after) and len(earlier) < limits.PRINTERS_MAX)


def _printer_removed(printer: Printer, is_removed: bool) -> Change:
    ending = "is no longer configured" if is_removed else "was not checked this time"
    states = _state(printer), "" if is_removed else NOT_CHECKED
    sentence = f"{described_name(printer)} {ending}."
    return change("printer", printer.id, states, "warn" if is_removed else "muted", sentence)


def _printer_added(printer: Printer, is_new: bool) -> Change:
    states = "" if is_new else NOT_CHECKED, _state(printer)
    verdict = "is new" if is_new else "is new, or was not checked before"
    severity = STATUS_SEVERITIES[status_of(printer)]
    is_normal = severity == "good" or printer.transport != "network"
    sentence = f"{described_name(printer)} {verdict}: it {_predicate(printer)}."
    return change("printer", printer.id, states, "muted" if is_normal else severity, sentence)


def _printer_change(earlier: Printer, later: Printer) -> Iterator[Change]:
    name, status = described_name(later), status_of(later)
    is_elsewhere = is_other_address(earlier.matched_endpoint, later.matched_endpoint)
    if status_of(earlier) != status or (status == "moved" and is_elsewhere):
        sentence = f"{name} {_predicate(later)}; it was {_description(earlier)}."
        states = _state(earlier), _state(later)
        yield change("printer", later.id, states, STATUS_SEVERITIES[status], sentence)
    if earlier.address != later.address:
        states = shorten(earlier.address or ""), shorten(later.address or "")
        old, new = (state or "no address" for state in states)
        sentence = f"{name} is configured with {new}; it had {old}."
        yield change("printer-address", later.id, states, "muted", sentence)
    elif is_elsewhere and status == "reachable" and status_of(earlier) == "reachable":
        states = earlier.matched_endpoint or "", later.matched_endpoint or ""
        sentence = f"{name} is at {states[1]}; it was at {states[0]}."
        yield change("printer-place", later.id, states, "muted", sentence)


def _state(printer: Printer) -> str:
    status = status_of(printer)
    return f"moved to {printer.matched_endpoint}" if status == "moved" else status


def _predicate(printer: Printer) -> str:
    is_moved = status_of(printer) == "moved"
    return f"has {_state(printer)}" if is_moved else f"is {_description(printer)}"


def _description(printer: Printer) -> str:
    """Return a printer's state for a sentence: ``not reachable``, ``at 192.168.1.61:9100``."""
    return {
        "moved": f"at {printer.matched_endpoint}",
        "unreachable": "not reachable",
        "unknown": "in an unknown state",
        "reachable": "reachable",
    }[status_of(printer)]


def _printers_not_compared(before: NetworkPayload, after: NetworkPayload) -> tuple[str, ...]:
    if (before.printers is None) == (after.printers is None):
        return ()
    when = "this time" if after.printers is None else "in the earlier report"
    return (f"Printers were not checked {when}.",)


# ---------------------------------------------------------------------------- the machine's network


def _own_network(before: NetworkPayload, after: NetworkPayload) -> Iterator[Change]:
    earlier, later = readable_map(before), readable_map(after)
    if earlier is None or later is None:
        return
    old, new = own_networks(earlier), own_networks(later)
    if old and new and not old & new:
        states = ", ".join(sorted(map(str, old))), ", ".join(sorted(map(str, new)))
        sentence = f"The machine is on another network: {states[1]}; it was on {states[0]}."
        yield change("network", "", states, "warn", sentence)
        return
    are_known = are_gateways_known(before) and are_gateways_known(after)
    interfaces = _interfaces_by_name(earlier), _interfaces_by_name(later)
    for name, old_link, new_link in differences(*interfaces):
        label = shorten(name)
        if _addresses(old_link) != _addresses(new_link):
            yield _address_change(name, label, _addresses(old_link), _addresses(new_link))
        if not (old_link and new_link and are_known):
            continue
        if sorted(old_link.gateways) != sorted(new_link.gateways):
            states = ", ".join(sorted(old_link.gateways)), ", ".join(sorted(new_link.gateways))
            old_gateway, new_gateway = (state or "none" for state in states)
            sentence = f"The gateway on {label} is {new_gateway}; it was {old_gateway}."
            yield change("gateway", name, states, "warn", sentence)


def _address_change(name: str, label: str, old: str, new: str) -> Change:
    if old and new:
        sentence = f"This machine has the address {new} on {label}; it was {old}."
    elif new:
        sentence = f"The interface {label} has an address now: {new}."
    else:
        sentence = f"The interface {label} lost its address {old}."
    return change("own-address", name, (old, new), "muted", sentence)


def _addresses(interface: MapInterface | None) -> str:
    """Return the IPv4 addresses. IPv6 addresses change regularly (RFC 8981) and are left out."""
    addresses = interface.addresses if interface else ()
    ipv4_addresses = (address.address for address in addresses if address.family == "ipv4")
    return ", ".join(sorted(filter(is_routable, ipv4_addresses)))


def _interfaces_by_name(network: NetworkMap) -> dict[str, MapInterface]:
    return {interface.name: interface for interface in network.interfaces}
