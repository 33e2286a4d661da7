"""Which printer of the machine is which device of the network, and what is wrong with it.

Evidence counts in this order: UUID, MAC, serial number, address with port and queue, host name,
DNS-SD name; a model only breaks a tie. What stays ambiguous is said, never guessed; two rules stand
above all others: nothing is reachable that may be another thing, and nobody is pointed at a device
that another queue holds.
"""

import ipaddress
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from shlex import quote

from collectors.contract import LearnedPrinter, Printer
from collectors.network.matching.devices import (
    BY,
    IDENTITIES,
    NAMES,
    By,
    Device,
    DeviceIndex,
    group_devices,
    service_names,
)
from collectors.network.matching.learned import learn
from collectors.network.matching.locate import Located, locate_printers
from collectors.network.matching.models import plain_model
from collectors.network.matching.reasons import listed, sentence
from collectors.network.matching.verdicts import (
    NeededPort,
    Status,
    Verdict,
    difference,
    is_surely,
    judge_local,
    judge_port,
    missing_queue,
    printer_state,
    replacement,
    spooler_state,
    unlike_learned,
    what_is_there,
    what_was_missing,
)
from collectors.network.observations import (
    KnownPrinter,
    Observations,
    PortObservation,
    PrinterMatches,
)
from collectors.network.scan.scan import PortState
from collectors.shared.addresses import PRINT_PORTS, join_host_port, parse_networks

HINTS_MAX = 4
"""More devices of one model than this tell nobody which one is meant."""

_FORGET = "venue-agent printers forget"
_LINK_LOCAL = ipaddress.IPv4Network("169.254.0.0/16")  # RFC 3927


def match(known: Sequence[KnownPrinter], observed: Observations) -> PrinterMatches:
    """Judge every known printer by what the network showed, in the order given."""
    matcher = _Matcher(known, observed)
    verdicts = [matcher.judge(printer, at) for printer, at in matcher.located]
    printers = tuple(
        _printer(printer, verdict, matcher.hint(printer, verdict))
        for printer, verdict in zip(known, verdicts, strict=True)
    )
    ids: dict[tuple[str, int], dict[str, None]] = {}
    for printer, verdict in zip(known, verdicts, strict=True):
        for key in verdict.marked:
            ids.setdefault(key, {})[printer.id] = None
    matched = {key: tuple(found) for key, found in ids.items()}
    return PrinterMatches(printers, matched, matcher.learned(verdicts), matcher.strangers(verdicts))


class _Matcher:
    def __init__(self, known: Sequence[KnownPrinter], observed: Observations) -> None:
        self._index = DeviceIndex(group_devices(observed))
        self._scanned = {a: h.scanned for a, h in observed.hosts.items() if h.scanned}
        self._networks = parse_networks(observed.scanned_networks)
        self._own_networks = parse_networks(observed.own_networks)
        self._is_blind = not (observed.ports or self._scanned or observed.scanned_networks)
        self.located = locate_printers(known, self._index)
        seen = [at for _, at in self.located if at is not None]
        own = (at.device for at in seen if at.device is not None)
        self._held = {d.address for d in (*own, *(d for at in seen for d in at.rivals))}
        moved = {
            at.device.address: (printer, at.by)
            for printer, at in self.located
            if at is not None and at.device is not None and at.left is not None
        }
        self._arrived = {
            address: (printer, by)
            for address, (printer, by) in moved.items()
            if by == "MAC" or not self._is_still_there(printer, printer.addresses[0], moved)
        }
        # What has a printer's identity elsewhere may be a relay of it, or have the same by mistake.
        still = [
            address
            for printer in known
            for address in printer.addresses
            if self._is_still_there(printer, address, self._arrived)
        ]
        self._held |= {device.address for a in still if (device := self._index.at(a)) is not None}

    def judge(self, printer: KnownPrinter, at: Located | None) -> Verdict:
        if printer.backend is not None:
            reason = f"not followed: CUPS prints to it by the backend {printer.backend}"
            return Verdict("unknown", sentence(reason, spooler_state(printer)), is_ambiguous=True)
        if printer.transport != "network":
            return judge_local(printer)
        if at is None:
            return self._judge_unmatched(printer)
        if at.device is None:
            where = listed([each.address for each in at.rivals])
            reason = f"ambiguous between {where}: all have its {at.by}"
            return Verdict("unknown", reason, is_ambiguous=True)
        if at.left is not None:
            return self._moved(printer, at.device, at.by, at.left)
        return self._judge_device(printer, at.device, at.by)

    def learned(self, verdicts: Sequence[Verdict]) -> tuple[LearnedPrinter, ...]:
        """Return what the printers are that answer, where they are set up or, by MAC, elsewhere."""
        found = (
            (printer, verdict.device, verdict.endpoint[0])
            for (printer, at), verdict in zip(self.located, verdicts, strict=True)
            if verdict.device and verdict.endpoint and at is not None
            if verdict.status == "reachable" or (at.left is not None and at.by == "MAC")
        )
        return tuple(learn(found, self._index.devices))

    def strangers(self, verdicts: Sequence[Verdict]) -> tuple[LearnedPrinter, ...]:
        """Return what answers instead of printers that were seen nowhere."""
        found = (
            (printer, verdict.taken_by, verdict.taken_by.address)
            for (printer, _), verdict in zip(self.located, verdicts, strict=True)
            if verdict.taken_by is not None
        )
        return tuple(learn(found, self._index.devices))

    def hint(self, printer: KnownPrinter, verdict: Verdict) -> str | None:
        """Point at what a printer that was not found may be; never at what another queue holds."""
        is_lost = verdict.device is None and not verdict.is_ambiguous
        if printer.transport != "network" or not is_lost:
            return None

        def is_free(device: Device) -> bool:
            return device.address not in self._held and self._can_reach(device.address)

        for look in (self._renamed, self._alike, self._of_its_name):
            if said := look(printer, is_free):
                return said
        same: dict[str, None] = {}
        for device in filter(is_free, self._index.of_model(printer.make_model)):
            same[device.address] = None
            if len(same) > HINTS_MAX:
                return None
        if same:
            return f"the same model was seen at {listed(tuple(same))}"
        return None if plain_model(printer.make_model) else self._only_other(is_free)

    def _renamed(self, printer: KnownPrinter, is_free: Callable[[Device], bool]) -> str | None:
        """Tell where the device is that had the name a printer is set up with."""
        if printer.learned is None or printer.addresses:
            return None
        learned = replace(printer, addresses=(printer.learned.address,))
        found = self._index.find(learned, [by for by in BY if by not in IDENTITIES])
        device = found.devices[0] if found is not None and len(found.devices) == 1 else None
        if device is None or not is_free(device) or not is_surely(printer.learned, device):
            return None
        where = device.address
        return f"the device that had it when it last answered is at {where}: was it renamed?"

    def _alike(self, printer: KnownPrinter, is_free: Callable[[Device], bool]) -> str | None:
        """Tell of the device with one thing that the printer had, which is not enough to be it."""
        found = self._index.find(printer, [by for by in BY if by not in IDENTITIES])
        device = found.devices[0] if found is not None and len(found.devices) == 1 else None
        if found is None or device is None or not is_free(device):
            return None
        if difference(replace(printer, learned=None), device, None, found.by):
            return None
        where = device.address
        return f"a device with its {found.by} was seen at {where}: it may be the same printer"

    def _of_its_name(self, printer: KnownPrinter, is_free: Callable[[Device], bool]) -> str | None:
        found = self._index.find(printer, [by for by in BY if by not in NAMES])
        devices = found.devices if found is not None else ()
        if len(devices) != 1 or not is_free(devices[0]):
            return None
        if difference(printer, devices[0], None, "name"):
            return None
        where = devices[0].address
        return f"a device of its name was seen at {where}: it may be the same printer"

    def _only_other(self, is_free: Callable[[Device], bool]) -> str | None:
        """Tell of a printer that no queue uses, if it is the only one."""
        free = [device.address for device in self._index.printers() if is_free(device)]
        if len(free) != 1:
            return None
        return f"a printer that no queue of this machine uses was seen at {free[0]}"

    # ------------------------------------------------------------------ how it is

    def _judge_unmatched(self, printer: KnownPrinter) -> Verdict:
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
        other = self._other_device(printer, device, seen, by)
        port = seen.port if seen is not None else printer.port
        if port is None:
            reason = f"{device.address} is there, but on no port for printing (matched by {by})"
            told = sentence(reason, other or what_is_there(device))
            return Verdict("unreachable", told, device=None if other else device)
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
        if other is not None:
            # What answers may be another thing: not its state, and nothing that others look for.
            status = "unreachable" if status == "unreachable" else "unknown"
            if needed.outcome == "open":
                reason, other = f"{address} answers on port {port}, but {other}", None
            is_taken = needed.outcome == "open" and self._may_have_replaced(printer, device)
            hint = f"if it has replaced the printer: {_FORGET} {quote(printer.id)}"
            said = sentence(reason, other, hint if is_taken else None, spooler_state(printer))
            return Verdict(status, said, taken_by=device if is_taken else None)
        if missing := missing_queue(printer, seen):
            where = join_host_port(address, port)
            status, reason = "unreachable", f"{where} answers, but {missing}"
        elif (
            status != "reachable"
            and not printer.addresses
            and (place := self._out_of_reach(address))
        ):
            status, reason = "unreachable", f"its address is {address} (matched by {by}), {place}"
        elif status == "unreachable" and by not in IDENTITIES:
            reason = sentence(reason, what_is_there(device))
        key = (address, port) if seen is not None else None
        said = sentence(reason, replacement(printer, status), printer_state(printer, seen, device))
        return Verdict(status, said, key, _marked(printer, device, key), device)

    def _other_device(
        self, printer: KnownPrinter, device: Device, seen: PortObservation | None, by: By
    ) -> str | None:
        """Say by what a device shows that it may not be the printer found at its address."""
        arrived, its = self._arrived.get(device.address, (None, by))
        if arrived is not None and by not in IDENTITIES:
            return f"it is the printer {arrived.name} (same {its}) that has this address now"
        return difference(printer, device, seen, by)

    def _may_have_replaced(self, printer: KnownPrinter, device: Device) -> bool:
        """Tell whether a device that is not what a printer was is no other queue's either."""
        return unlike_learned(printer.learned, device) is not None and not any(
            at is not None
            and at.device is device
            and unlike_learned(other.learned, device) is None
            and not set(other.addresses) & set(printer.addresses)
            for other, at in self.located
        )

    def _moved(self, printer: KnownPrinter, device: Device, by: By, old: str) -> Verdict:
        if by != "MAC" and self._is_still_there(printer, old, self._arrived):
            reason = f"ambiguous between {old}, set up, and {device.address}, which has its {by}"
            return Verdict("unknown", reason, is_ambiguous=True)
        seen = _choose_port(printer, device)
        key = (seen.address, seen.port) if seen is not None else None
        place = join_host_port(*key) if key else device.address
        now = f"moved to {place} (same {by})"
        there = self._what_is_at(old, device)
        marked, state = _marked(printer, device, key), printer_state(printer, seen, device)
        if out := self._out_of_reach(key[0] if key else device.address):
            said = sentence(f"{now}, {out}; {there}", state)
            return Verdict("unreachable", said, None, marked, device)
        reason = f"{now}; {there}: set the printer up with the new address, or give it a fixed one"
        return Verdict("unreachable", sentence(reason, state), key, marked, device)

    def _what_is_at(self, old: str, moved: Device) -> str:
        """Say who has the old address. A MAC alone may be the neighbour table's memory."""
        there = self._index.at(old)
        is_remembered = there is not None and set(there.mac_addresses) <= set(moved.mac_addresses)
        if there is None or (is_remembered and not self._is_answering(old)):
            return f"nothing answers at {old} any more"
        return f"{old} is another device now"

    def _is_still_there(self, printer: KnownPrinter, old: str, arrived: Container[str]) -> bool:
        """Tell whether what answers at the address it is set up with may well be the printer;
        it is not where another one has ``arrived``."""
        there = self._index.at(old)
        is_open = printer.port is not None and self._contact(old, printer.port) == "open"
        if there is None or not is_open or there.address in arrived:
            return False
        return difference(printer, there, None, "address") is None

    def _out_of_reach(self, address: str) -> str | None:
        """Say why this machine cannot print to an address; None where it can."""
        if self._can_reach(address):
            return None
        if ipaddress.ip_address(address.partition("%")[0]) in _LINK_LOCAL:
            return (
                "which a device gives itself when no DHCP server answers it: see that it is"
                " connected to this network, and restart it or give it a fixed address"
            )
        return "which is in another network than this machine: bring both into one network"

    def _can_reach(self, address: str) -> bool:
        parsed = ipaddress.ip_address(address.partition("%")[0])
        if parsed in _LINK_LOCAL:
            return False
        nearby = (*self._own_networks, *self._networks)
        is_near = not self._own_networks or any(parsed in network for network in nearby)
        return is_near or parsed.version == 6 or self._is_answering(address)

    def _contact(self, address: str, port: int) -> PortState | None:
        host = self._scanned.get(address)
        return host.contact(port) if host else None

    def _is_answering(self, address: str) -> bool:
        host = self._scanned.get(address)
        return host is not None and host.is_answering

    def _is_scanned(self, address: str) -> bool:
        parsed = ipaddress.ip_address(address.partition("%")[0])
        return any(parsed in network for network in self._networks)


def _own_address(printer: KnownPrinter, device: Device) -> str:
    return next((each for each in printer.addresses if each in device.addresses), device.address)


def _choose_port(printer: KnownPrinter, device: Device) -> PortObservation | None:
    """Return what was seen of the port the printer is set up with, else the best for printing.

    At the printer's own address, if it is an IPv4 one of the device: what answers at another is
    not what is printed to. A link-local IPv6 address is never contacted by itself.
    """
    seen, own_v4 = device.observations, {each for each in printer.addresses if ":" not in each}
    if own_v4 & set(device.addresses):
        seen = tuple(each for each in seen if each.address in own_v4)
    if printer.port is not None:
        return min((e for e in seen if e.port == printer.port), key=_rank, default=None)
    own = [each for each in seen if _is_own(printer, each)]
    best = min(own or seen, key=_rank, default=None)
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
