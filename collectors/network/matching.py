"""Which printer of the machine is which device of the network, and what is wrong with it.

Evidence counts in this order: UUID, MAC, serial number, DNS-SD name, address with port and queue,
host name; a model only breaks a tie. What stays ambiguous is said, never guessed.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from collectors.contract import Printer
from collectors.network.evidence import (
    EndpointMatch,
    KnownPrinter,
    NetworkSight,
    PrinterMatches,
    PrinterSighting,
)
from collectors.network.matching_devices import (
    IDENTITIES,
    By,
    Device,
    DeviceIndex,
    Found,
    group_devices,
    is_same_model,
)
from collectors.network.matching_reasons import endpoint, listed, sentence, state_words

PRINT_PORTS = (631, 9100, 515, 9101, 9102)
Status = Literal["reachable", "unreachable", "unknown"]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How one printer was judged; ``marked`` are the endpoints that are this printer."""

    status: Status
    reason: str
    endpoint: tuple[str, int] | None = None
    marked: tuple[tuple[str, int], ...] = ()
    device: Device | None = None


def match(known: Sequence[KnownPrinter], sight: NetworkSight) -> PrinterMatches:
    """Judge every known printer by what the network showed, in the order given."""
    matcher = _Matcher(sight)
    outcomes = [matcher.judge(printer) for printer in known]
    taken = {outcome.device.address for outcome in outcomes if outcome.device is not None}
    printers = tuple(
        _told(printer, outcome, matcher.hint(printer, outcome, taken))
        for printer, outcome in zip(known, outcomes, strict=True)
    )
    ids: dict[tuple[str, int], dict[str, None]] = {}
    for printer, outcome in zip(known, outcomes, strict=True):
        for key in outcome.marked:
            ids.setdefault(key, {})[printer.id] = None
    matches = tuple(EndpointMatch(*key, tuple(found)) for key, found in ids.items())
    return PrinterMatches(printers, matches)


class _Matcher:
    def __init__(self, sight: NetworkSight) -> None:
        self._index = DeviceIndex(group_devices(sight))
        self._contacts = {(each.address, each.port): each.outcome for each in sight.contacts}
        self._networks = tuple(ipaddress.ip_network(each) for each in sight.scanned_networks)
        self._is_blind = not (sight.sightings or sight.hosts or sight.scanned_networks)

    def judge(self, printer: KnownPrinter) -> _Outcome:
        if printer.transport != "network":
            return _judge_local(printer)
        found = self._index.find(printer)
        if found is None or found.by == "name":
            return self._judge_unmatched(printer, found)
        device = _settle(printer, found)
        if device is None:
            where = listed([each.address for each in found.devices])
            reason = f"ambiguous between {where}: all have its {found.by}"
            return _Outcome("unknown", reason)
        old = self._old_address(printer, device, found.by)
        if old is not None:
            return self._moved(printer, device, found.by, old)
        return self._judge_device(printer, device, found.by)

    def hint(self, printer: KnownPrinter, outcome: _Outcome, taken: set[str]) -> str | None:
        """Point at a device of the same model where the printer itself was not found."""
        if outcome.device is not None or outcome.status == "reachable":
            return None
        if printer.transport != "network" or outcome.reason.startswith("ambiguous"):
            return None
        same = [
            device.address
            for device in self._index.devices
            if device.address not in taken and _has_model(device, printer.make_model)
        ]
        return f"the same model was seen at {listed(same)}" if same else None

    def _judge_unmatched(self, printer: KnownPrinter, by_name: Found | None) -> _Outcome:
        if by_name is not None and len(by_name.devices) == 1 and printer.addresses:
            return self._moved(printer, by_name.devices[0], "name", printer.addresses[0])
        if self._is_blind:
            return _Outcome("unknown", "the network was not looked at")
        if printer.addresses:
            return self._judge_silent(printer.addresses[0], printer.port)
        reason = _absence(printer)
        if reason is None:
            return _Outcome("unknown", "nothing is known by which it could be found")
        return _Outcome("unreachable", reason)

    def _judge_silent(self, address: str, port: int | None) -> _Outcome:
        """Judge an address at which no device was seen."""
        where = endpoint(address, port) if port else address
        outcome = self._contacts.get((address, port or 0))
        if outcome == "refused":
            return _Outcome("unreachable", f"{where} refuses the connection")
        if outcome is not None or self._is_scanned(address):
            reason = f"no answer from {address}: is it switched on and connected?"
            return _Outcome("unreachable", reason)
        return _Outcome("unknown", f"{where} is not in a network that was looked at")

    def _judge_device(self, printer: KnownPrinter, device: Device, by: By) -> _Outcome:
        seen = _choose_port(printer, device)
        port = seen.port if seen is not None else printer.port
        if port is None:
            reason = f"{device.address} answers, but on no port for printing (matched by {by})"
            return _Outcome("unreachable", reason, device=device)
        address = seen.address if seen is not None else _own_address(printer, device)
        contact = self._contacts.get((address, port), seen.contact if seen else None)
        where = endpoint(address, port)
        matched = _matched_by(printer, by, seen)
        if contact is None and seen is not None and seen.is_announced:
            reason = f"announced by mDNS at {where}, matched by {matched}; not contacted"
            status: Status = "unknown"
        elif contact == "open":
            status, reason = "reachable", f"reachable on port {port}, matched by {matched}"
        else:
            status, reason = _judge_contact(contact, address, port, device, matched)
        key = (address, port) if seen is not None else None
        marked = _marked(printer, device, key)
        told = sentence(reason, _other_device(printer, seen, by), _state(printer, seen, device))
        return _Outcome(status, told, key, marked, device)

    def _moved(self, printer: KnownPrinter, device: Device, by: By, old: str) -> _Outcome:
        seen = _choose_port(printer, device)
        key = (seen.address, seen.port) if seen is not None else None
        place = endpoint(*key) if key else device.address
        what_is_there = (
            f"{old} is another device now"
            if self._index.at(old) is not None
            else f"nothing answers at {old} any more"
        )
        reason = (
            f"moved to {place} (same {by}); {what_is_there}: set the printer up with the new"
            " address, or give it a fixed one"
        )
        told = sentence(reason, _state(printer, seen, device))
        return _Outcome("unreachable", told, key, _marked(printer, device, key), device)

    def _old_address(self, printer: KnownPrinter, device: Device, by: By) -> str | None:
        """Return the address a printer is set up with and has left; None if it has not."""
        if by not in IDENTITIES or not printer.addresses:
            return None
        if set(printer.addresses) & set(device.addresses):
            return None
        return printer.addresses[0]

    def _is_scanned(self, address: str) -> bool:
        parsed = ipaddress.ip_address(address.partition("%")[0])
        return any(parsed in network for network in self._networks)


def _absence(printer: KnownPrinter) -> str | None:
    """Say what was looked for in vain; None where there was nothing to look for."""
    if printer.dns_sd_name:
        return f"no device announces the name {printer.dns_sd_name} by mDNS"
    if printer.host:
        return f"the name {printer.host} leads to no address"
    if printer.mac_address:
        return f"no device has the MAC {printer.mac_address}"
    return f"no device has the UUID {printer.uuid}" if printer.uuid else None


def _judge_local(printer: KnownPrinter) -> _Outcome:
    queue = "its queue is stopped on this machine" if printer.stopped else None
    words = state_words(printer.state_reasons)
    state = f"it says: {listed(words)}" if words else None
    if printer.present is None:
        why = {"ble": "Bluetooth printers are not contacted"}.get(
            printer.transport, "this system does not tell whether it is plugged in"
        )
        return _Outcome("unknown", sentence(why, queue, state))
    status: Status = "reachable" if printer.present else "unreachable"
    return _Outcome(status, sentence(printer.presence_reason, queue, state))


def _own_address(printer: KnownPrinter, device: Device) -> str:
    return next((each for each in printer.addresses if each in device.addresses), device.address)


def _settle(printer: KnownPrinter, found: Found) -> Device | None:
    """Return the one device meant; None where several are and nothing tells them apart."""
    devices = found.devices
    if len(devices) > 1:
        at_address = [each for each in devices if set(each.addresses) & set(printer.addresses)]
        devices = tuple(at_address) or devices
    if len(devices) > 1:
        same = [each for each in devices if _has_model(each, printer.make_model)]
        devices = tuple(same) or devices
    return devices[0] if len(devices) == 1 else None


def _has_model(device: Device, model: str | None) -> bool:
    return any(is_same_model(model, m) for each in device.sightings for m in each.models)


def _choose_port(printer: KnownPrinter, device: Device) -> PrinterSighting | None:
    """Return the sighting of the port the printer is set up with, else the best for printing."""
    if printer.port is not None:
        return next((each for each in device.sightings if each.port == printer.port), None)
    named = [
        each
        for each in device.sightings
        if (printer.uuid and printer.uuid in each.uuids)
        or (printer.dns_sd_name and printer.dns_sd_name in each.instances)
    ]
    candidates = named or list(device.sightings)
    ranked = sorted(candidates, key=_rank)
    best = next(iter(ranked), None)
    return best if best is not None and (named or best.port in PRINT_PORTS) else None


def _rank(sighting: PrinterSighting) -> tuple[bool, int]:
    position = (
        PRINT_PORTS.index(sighting.port) if sighting.port in PRINT_PORTS else len(PRINT_PORTS)
    )
    return (sighting.contact != "open", position)


def _judge_contact(
    contact: Literal["open", "refused", "no-answer"] | None,
    address: str,
    port: int,
    device: Device,
    matched: str,
) -> tuple[Status, str]:
    """Judge a device that was seen while the port the printer needs is not open."""
    opened = [each.port for each in device.sightings if each.contact == "open"]
    printing = [str(each) for each in PRINT_PORTS if each in opened and each != port]
    instead = f"printing is open on port {listed(printing)} instead" if printing else None
    if contact == "refused":
        refused = f"{address} refuses connections on port {port} (matched by {matched})"
        return "unreachable", sentence(refused, instead)
    if contact == "no-answer":
        silent = f"{address} is there, but port {port} does not answer (matched by {matched})"
        return "unreachable", sentence(silent, instead)
    untried = f"{address} is there (matched by {matched}), but port {port} was not tried"
    return "unknown", sentence(untried, instead)


def _matched_by(printer: KnownPrinter, by: By, seen: PrinterSighting | None) -> str:
    if by != "address":
        return by
    has_queue = seen is not None and printer.queue and printer.queue in seen.queues
    if printer.port is None:
        return "address"
    return "address, port and queue" if has_queue else "address and port"


def _marked(
    printer: KnownPrinter, device: Device, key: tuple[str, int] | None
) -> tuple[tuple[str, int], ...]:
    """Return the matched endpoint and the others that give the same UUID or DNS-SD name."""
    same = (
        (each.address, each.port)
        for each in device.sightings
        if (printer.uuid and printer.uuid in each.uuids)
        or (printer.dns_sd_name and printer.dns_sd_name in each.instances)
    )
    return tuple(dict.fromkeys((*((key,) if key else ()), *same)))


def _other_device(printer: KnownPrinter, seen: PrinterSighting | None, by: By) -> str | None:
    if by in IDENTITIES or not printer.uuid or seen is None or not seen.uuids:
        return None
    return "it gives another UUID than the printer that was set up, so it may be another one"


def _state(printer: KnownPrinter, seen: PrinterSighting | None, device: Device) -> str | None:
    """Say what the printer itself complains of, and what the spooler does."""
    sightings = [seen, *device.sightings] if seen is not None else list(device.sightings)
    own = next((each for each in sightings if each.state or each.state_reasons), None)
    is_foreign = own and printer.uuid and own.uuids and printer.uuid not in own.uuids
    reported = own.state_reasons if own and not is_foreign else ()
    words = state_words((*reported, *printer.state_reasons))
    parts = []
    if words:
        parts.append(f"the printer says: {listed(words)}")
    elif own and not is_foreign and own.state == "stopped":
        parts.append("the printer says that it is stopped")
    if printer.stopped:
        parts.append("its queue is stopped on this machine")
    return "; ".join(parts) or None


def _told(printer: KnownPrinter, outcome: _Outcome, hint: str | None) -> Printer:
    matched = endpoint(*outcome.endpoint) if outcome.endpoint else None
    return Printer(
        id=printer.id,
        name=printer.name,
        transport=printer.transport,
        status=outcome.status,
        address=printer.address or matched,
        reason=sentence(outcome.reason, hint),
        matched_endpoint=matched,
    )
