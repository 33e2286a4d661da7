"""Which printer of the machine is which device of the network, and what is wrong with it.

Evidence counts in this order: UUID, MAC, serial number, DNS-SD name, address with port and queue,
host name; a model only breaks a tie. What stays ambiguous is said, never guessed.
"""

import ipaddress
from collections.abc import Callable, Sequence

from collectors.contract import Printer
from collectors.network.matching.devices import (
    IDENTITIES,
    By,
    Device,
    DeviceIndex,
    Found,
    group_devices,
    has_model,
    service_names,
)
from collectors.network.matching.reasons import listed, sentence
from collectors.network.matching.verdicts import (
    NeededPort,
    Status,
    Verdict,
    judge_local,
    judge_port,
    printer_state,
    spooler_state,
    what_was_missing,
)
from collectors.network.observations import (
    KnownPrinter,
    Observations,
    PortObservation,
    PrinterMatches,
)
from collectors.network.scan.scan import PortState
from collectors.shared.addresses import PRINT_PORTS, join_host_port

HINTS_MAX = 4
"""More devices of one model than this tell nobody which one is meant."""


def match(known: Sequence[KnownPrinter], observed: Observations) -> PrinterMatches:
    """Judge every known printer by what the network showed, in the order given."""
    matcher = _Matcher(observed)
    verdicts = [matcher.judge(printer) for printer in known]
    taken = {verdict.device.address for verdict in verdicts if verdict.device is not None}
    printers = tuple(
        _printer(printer, verdict, matcher.hint(printer, verdict, taken))
        for printer, verdict in zip(known, verdicts, strict=True)
    )
    ids: dict[tuple[str, int], dict[str, None]] = {}
    for printer, verdict in zip(known, verdicts, strict=True):
        for key in verdict.marked:
            ids.setdefault(key, {})[printer.id] = None
    return PrinterMatches(printers, {key: tuple(found) for key, found in ids.items()})


class _Matcher:
    def __init__(self, observed: Observations) -> None:
        self._index = DeviceIndex(group_devices(observed))
        self._scanned = {a: h.scanned for a, h in observed.hosts.items() if h.scanned}
        self._networks = tuple(ipaddress.ip_network(each) for each in observed.scanned_networks)
        self._is_blind = not (observed.ports or self._scanned or observed.scanned_networks)

    def judge(self, printer: KnownPrinter) -> Verdict:
        if printer.transport != "network":
            return judge_local(printer)
        found = self._index.find(printer)
        if found is None or found.by == "name":
            return self._judge_unmatched(printer, found)
        device = _settle(printer, found)
        if device is None:
            where = listed([each.address for each in found.devices])
            reason = f"ambiguous between {where}: all have its {found.by}"
            return Verdict("unknown", reason, is_ambiguous=True)
        old = _address_left(printer, device, found.by)
        if old is not None:
            return self._moved(printer, device, found.by, old)
        return self._judge_device(printer, device, found.by)

    def hint(self, printer: KnownPrinter, verdict: Verdict, taken: set[str]) -> str | None:
        """Point at a device of the same model where the printer itself was not found."""
        is_lost = verdict.device is None and not verdict.is_ambiguous
        if printer.transport != "network" or not is_lost:
            return None
        same: dict[str, None] = {}
        for device in self._index.of_model(printer.make_model):
            if device.address not in taken:
                same[device.address] = None
            if len(same) > HINTS_MAX:
                return None
        return f"the same model was seen at {listed(tuple(same))}" if same else None

    def _judge_unmatched(self, printer: KnownPrinter, by_name: Found | None) -> Verdict:
        if by_name is not None and len(by_name.devices) == 1 and printer.addresses:
            return self._moved(printer, by_name.devices[0], "name", printer.addresses[0])
        if self._is_blind:
            return Verdict("unknown", "the network was not looked at")
        status, reason = self._judge_lost(printer)
        return Verdict(status, sentence(reason, spooler_state(printer)))

    def _judge_lost(self, printer: KnownPrinter) -> tuple[Status, str]:
        if printer.addresses:
            return self._judge_silent(printer.addresses[0], printer.port)
        reason = what_was_missing(printer)
        if reason is None:
            return "unknown", "nothing is known by which it could be found"
        return "unreachable", reason

    def _judge_silent(self, address: str, port: int | None) -> tuple[Status, str]:
        """Judge an address at which no device was seen."""
        where = join_host_port(address, port) if port else address
        contact = self._contact(address, port or 0)
        if contact == "refused":
            return "unreachable", f"{where} refuses the connection"
        if contact is not None or self._is_scanned(address):
            return "unreachable", f"no answer from {address}: is it switched on and connected?"
        return "unknown", f"{where} is not in a network that was looked at"

    def _judge_device(self, printer: KnownPrinter, device: Device, by: By) -> Verdict:
        seen = _choose_port(printer, device)
        port = seen.port if seen is not None else printer.port
        if port is None:
            reason = f"{device.address} is there, but on no port for printing (matched by {by})"
            return Verdict("unreachable", reason, device=device)
        address = seen.address if seen is not None else _own_address(printer, device)
        needed = NeededPort(
            address=address,
            port=port,
            outcome=self._contact(address, port),
            is_announced=seen is not None and seen.is_announced,
            answers_elsewhere=self._is_answering(address),
            matched_by=_matched_by(printer, by, seen),
        )
        status, reason = judge_port(needed, device)
        key = (address, port) if seen is not None else None
        said = sentence(
            reason, _other_device(printer, seen, by), printer_state(printer, seen, device)
        )
        return Verdict(status, said, key, _marked(printer, device, key), device)

    def _moved(self, printer: KnownPrinter, device: Device, by: By, old: str) -> Verdict:
        seen = _choose_port(printer, device)
        key = (seen.address, seen.port) if seen is not None else None
        place = join_host_port(*key) if key else device.address
        reason = (
            f"moved to {place} (same {by}); {self._what_is_at(old, device)}: set the printer up"
            " with the new address, or give it a fixed one"
        )
        said = sentence(reason, printer_state(printer, seen, device))
        return Verdict("unreachable", said, key, _marked(printer, device, key), device)

    def _what_is_at(self, old: str, moved: Device) -> str:
        """Say who has the old address. A MAC alone may be the neighbour table's memory."""
        there = self._index.at(old)
        is_remembered = there is not None and there.mac_address in (None, moved.mac_address)
        if there is None or (is_remembered and not self._is_answering(old)):
            return f"nothing answers at {old} any more"
        return f"{old} is another device now"

    def _contact(self, address: str, port: int) -> PortState | None:
        host = self._scanned.get(address)
        return host.contact(port) if host else None

    def _is_answering(self, address: str) -> bool:
        host = self._scanned.get(address)
        return host is not None and host.is_answering

    def _is_scanned(self, address: str) -> bool:
        parsed = ipaddress.ip_address(address.partition("%")[0])
        return any(parsed in network for network in self._networks)


def _settle(printer: KnownPrinter, found: Found) -> Device | None:
    """Return the one device meant; None where several are and nothing tells them apart."""
    devices = found.devices
    narrower: tuple[Callable[[Device], bool], ...] = (
        lambda device: bool(device.observations),  # not just a MAC the neighbour table remembers
        lambda device: bool(set(device.addresses) & set(printer.addresses)),
        # Anybody may announce what is another's: who answers and what it says then tell more.
        lambda device: any(printer.uuid in each.answered_uuids for each in device.observations),
        lambda device: device.mac_address is not None and device.mac_address == printer.mac_address,
        lambda device: any(each.contact == "open" for each in device.observations),
        lambda device: has_model(device, printer.make_model),
    )
    for fits in narrower:
        if len(devices) > 1:
            devices = tuple(each for each in devices if fits(each)) or devices
    return devices[0] if len(devices) == 1 else None


def _address_left(printer: KnownPrinter, device: Device, by: By) -> str | None:
    """Return the address a printer is set up with and has left; None if it has not."""
    if by not in IDENTITIES or not printer.addresses:
        return None
    is_still_there = set(printer.addresses) & set(device.addresses)
    return None if is_still_there else printer.addresses[0]


def _own_address(printer: KnownPrinter, device: Device) -> str:
    return next((each for each in printer.addresses if each in device.addresses), device.address)


def _choose_port(printer: KnownPrinter, device: Device) -> PortObservation | None:
    """Return what was seen of the port the printer is set up with, else the best for printing."""
    if printer.port is not None:
        return next((each for each in device.observations if each.port == printer.port), None)
    own = [each for each in device.observations if _is_own(printer, each)]
    best = min(own or device.observations, key=_rank, default=None)
    return best if best is not None and (own or best.port in PRINT_PORTS) else None


def _is_own(printer: KnownPrinter, observation: PortObservation) -> bool:
    """Tell whether this very port gives the printer's UUID or DNS-SD name."""
    if printer.uuid is not None and printer.uuid in observation.uuids:
        return True
    name = (printer.dns_sd_name or "").lower()
    return bool(name) and any(name in service_names(each) for each in observation.instances)


def _rank(observation: PortObservation) -> tuple[bool, int, int]:
    port = observation.port
    position = PRINT_PORTS.index(port) if port in PRINT_PORTS else len(PRINT_PORTS)
    return (observation.contact != "open", position, port)


def _marked(
    printer: KnownPrinter, device: Device, key: tuple[str, int] | None
) -> tuple[tuple[str, int], ...]:
    """Return the matched endpoint and the others that give the same UUID or DNS-SD name."""
    own = ((e.address, e.port) for e in device.observations if _is_own(printer, e))
    return tuple(dict.fromkeys((*((key,) if key else ()), *own)))


def _matched_by(printer: KnownPrinter, by: By, seen: PortObservation | None) -> str:
    if by != "address":
        return by
    if printer.port is None:
        return "address"
    has_queue = seen is not None and printer.queue and printer.queue in seen.queues
    return "address, port and queue" if has_queue else "address and port"


def _other_device(printer: KnownPrinter, seen: PortObservation | None, by: By) -> str | None:
    if by in IDENTITIES or not printer.uuid or seen is None or not seen.uuids:
        return None
    return "it gives another UUID than the printer that was set up, so it may be another one"


def _printer(printer: KnownPrinter, verdict: Verdict, hint: str | None) -> Printer:
    matched = join_host_port(*verdict.endpoint) if verdict.endpoint else None
    return Printer(
        id=printer.id,
        name=printer.name,
        transport=printer.transport,
        status=verdict.status,
        address=printer.address or matched,
        reason=sentence(verdict.reason, hint),
        matched_endpoint=matched,
    )
