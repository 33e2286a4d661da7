"""Which printer of the machine is which device of the network, and what is wrong with it.

Evidence counts in this order: UUID, MAC, serial number, address with port and queue, host name,
DNS-SD name; a model only breaks a tie. What stays ambiguous is said, never guessed; two rules stand
above all others: nothing is reachable that may be another thing, and nobody is pointed at a device
that another queue holds.
"""

import ipaddress
from collections.abc import Container, Sequence
from dataclasses import replace

from collectors.contract import LearnedPrinter, Printer
from collectors.network.matching.causes import explain
from collectors.network.matching.devices import (
    IDENTITIES,
    By,
    Device,
    DeviceIndex,
    group_devices,
    service_names,
)
from collectors.network.matching.hints import Hints
from collectors.network.matching.learned import learn
from collectors.network.matching.locate import Located, locate_printers
from collectors.network.matching.reasons import listed, sentence
from collectors.network.matching.symptoms import (
    NOTHING_WRONG,
    MachineSymptoms,
    OutOfReach,
    Symptoms,
)
from collectors.network.matching.verdicts import (
    NeededPort,
    Verdict,
    difference,
    is_queue_missing,
    judge_port,
    open_instead,
    own_state,
    see_local,
    see_missing,
    unlike_learned,
    what_is_there,
)
from collectors.network.observations import (
    KnownPrinter,
    Observations,
    PortObservation,
    PrinterMatches,
)
from collectors.network.scan.scan import PortState
from collectors.shared.addresses import PRINT_PORTS, Network, join_host_port, parse_networks

Key = tuple[str, int]  # an address and a port

_USUAL_PREFIX = 24
_LINK_LOCAL = ipaddress.IPv4Network("169.254.0.0/16")  # RFC 3927


def match(
    known: Sequence[KnownPrinter], observed: Observations, machine: MachineSymptoms = NOTHING_WRONG
) -> PrinterMatches:
    """Judge every known printer by what the network showed, in the order given."""
    matcher = _Matcher(known, observed, machine)
    verdicts = [matcher.judge(printer, at) for printer, at in matcher.located]
    hints = Hints(matcher.index, matcher.is_free)
    printers = tuple(
        _printer(printer, verdict, hints.about(printer) if _is_lost(printer, verdict) else None)
        for printer, verdict in zip(known, verdicts, strict=True)
    )
    ids: dict[tuple[str, int], dict[str, None]] = {}
    for printer, verdict in zip(known, verdicts, strict=True):
        for key in verdict.marked:
            ids.setdefault(key, {})[printer.id] = None
    matched = {key: tuple(found) for key, found in ids.items()}
    return PrinterMatches(printers, matched, matcher.learned(verdicts), matcher.strangers(verdicts))


class _Matcher:
    def __init__(
        self, known: Sequence[KnownPrinter], observed: Observations, machine: MachineSymptoms
    ) -> None:
        self._machine = machine
        self._observed_attempts = observed.attempts
        self.index = DeviceIndex(group_devices(observed))
        self._scanned = {a: h.scanned for a, h in observed.hosts.items() if h.scanned}
        self._networks = parse_networks(observed.scanned_networks)
        self._own_networks = parse_networks(observed.own_networks)
        self._usual_networks = [_usual_network(each) for each in self._own_networks]
        self._is_blind = not (observed.ports or self._scanned or observed.scanned_networks)
        self.located = locate_printers(known, self.index)
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
        self._held |= {device.address for a in still if (device := self.index.at(a)) is not None}

    def judge(self, printer: KnownPrinter, at: Located | None) -> Verdict:
        if printer.backend is not None:
            seen = f"not followed: CUPS prints to it by the backend {printer.backend}"
            return self._verdict(Symptoms(printer, "unknown", seen), is_ambiguous=True)
        if printer.transport != "network":
            return self._verdict(see_local(printer))
        if at is None:
            return self._verdict(self._see_unmatched(printer))
        if at.device is None:
            where = listed([each.address for each in at.rivals])
            seen = f"ambiguous between {where}: all have its {at.by}"
            return Verdict("unknown", sentence(seen), is_ambiguous=True)
        if at.left is not None:
            return self._moved(printer, at.device, at.by, at.left)
        return self._judge_device(printer, at.device, at.by)

    def _verdict(
        self,
        symptoms: Symptoms,
        device: Device | None = None,
        key: Key | None = None,
        *,
        is_ambiguous: bool = False,
        taken_by: Device | None = None,
    ) -> Verdict:
        return Verdict(
            symptoms.status,
            sentence(*explain(symptoms, self._machine)),
            key,
            _marked(symptoms.printer, device, key) if device is not None else (),
            device,
            is_ambiguous,
            taken_by,
        )

    def learned(self, verdicts: Sequence[Verdict]) -> tuple[LearnedPrinter, ...]:
        """Return what the printers are that answer, where they are set up or, by MAC, elsewhere."""
        found = (
            (printer, verdict.device, verdict.endpoint[0])
            for (printer, at), verdict in zip(self.located, verdicts, strict=True)
            if verdict.device and verdict.endpoint and at is not None
            if verdict.status == "reachable" or (at.left is not None and at.by == "MAC")
        )
        return tuple(learn(found, self.index.devices))

    def strangers(self, verdicts: Sequence[Verdict]) -> tuple[LearnedPrinter, ...]:
        """Return what answers instead of printers that were seen nowhere."""
        found = (
            (printer, verdict.taken_by, verdict.taken_by.address)
            for (printer, _), verdict in zip(self.located, verdicts, strict=True)
            if verdict.taken_by is not None
        )
        return tuple(learn(found, self.index.devices))

    def is_free(self, device: Device) -> bool:
        """Tell whether no queue holds a device that this machine could print to."""
        return device.address not in self._held and self._can_reach(device.address)

    # ------------------------------------------------------------------ how it is

    def _see_unmatched(self, printer: KnownPrinter) -> Symptoms:
        if self._is_blind:
            return Symptoms(printer, "unknown", "the network was not looked at")
        if not printer.addresses:
            return see_missing(printer)
        address, port = printer.addresses[0], printer.port
        where, attempts = join_host_port(address, port), self._attempts(address, port or 0)
        if attempts and attempts[-1] == "refused":
            return Symptoms(
                printer, "unreachable", f"{where} refuses the connection", attempts=attempts
            )
        if attempts or self._is_scanned(address):
            seen = f"no answer from {address}"
            return Symptoms(printer, "unreachable", seen, in_vain="other")
        return Symptoms(printer, "unknown", f"{where} is not in a network that was looked at")

    def _judge_device(self, printer: KnownPrinter, device: Device, by: By) -> Verdict:
        seen = _choose_port(printer, device)
        other = self._other_device(printer, device, seen, by)
        port = seen.port if seen is not None else printer.port
        if port is None:
            reason = f"{device.address} is there, but on no port for printing (matched by {by})"
            there = "" if other else what_is_there(device) or ""
            told = Symptoms(printer, "unreachable", reason, what_is_there=there, other=other or "")
            return self._verdict(told, None if other else device)
        address = seen.address if seen is not None else _own_address(printer, device)
        needed = NeededPort(
            address=address,
            port=port,
            attempts=self._attempts(address, port),
            is_announced=seen is not None and seen.is_announced,
            answers_elsewhere=self._is_answering(address),
            matched_by=_matched_by(printer, by, seen),
        )
        status, reason = judge_port(needed)
        told = Symptoms(
            printer,
            status,
            reason,
            address,
            port,
            needed.attempts,
            needed.answers_elsewhere,
            other=other or "",
            open_instead=open_instead(device, port) if status != "reachable" else "",
        )
        if other is not None:
            return self._verdict_of_other(told, device)
        own, key = own_state(printer, seen, device), (address, port) if seen is not None else None
        told = replace(
            told,
            models=tuple(model for each in device.observations for model in each.models),
            own_reasons=own.state_reasons if own else (),
            is_stopped=own is not None and own.state == "stopped",
        )
        if is_queue_missing(printer, seen):
            reason = f"{join_host_port(address, port)} answers"
            told = replace(told, status="unreachable", seen=reason, is_queue_missing=True)
        elif status != "reachable" and not printer.addresses:
            told = self._out_of_reach(told, f"its address is {address} (matched by {by})")
        if told.status == "unreachable" and not told.out_of_reach and by not in IDENTITIES:
            told = replace(told, what_is_there=what_is_there(device) or "")
        return self._verdict(told, device, key)

    def _verdict_of_other(self, told: Symptoms, device: Device) -> Verdict:
        """Judge what may be another thing: not its state, and nothing that others look for."""
        is_open = told.contact == "open"
        if is_open:
            told = replace(told, seen=f"{told.address} answers on port {told.port}")
        told = replace(told, status="unreachable" if told.status == "unreachable" else "unknown")
        is_taken = is_open and self._may_have_replaced(told.printer, device)
        told = replace(told, may_have_replaced=is_taken)
        return self._verdict(told, taken_by=device if is_taken else None)

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
        own = own_state(printer, seen, device)
        told = Symptoms(
            printer,
            "unreachable",
            f"moved to {place} (same {by})",
            device.address,
            left=self._what_is_at(old, device),
            own_reasons=own.state_reasons if own else (),
            is_stopped=own is not None and own.state == "stopped",
        )
        out = self._out_of_reach(replace(told, address=key[0] if key else device.address))
        return self._verdict(out, device, None if out.out_of_reach else key)

    def _what_is_at(self, old: str, moved: Device) -> str:
        """Say who has the old address. A MAC alone may be the neighbour table's memory."""
        there = self.index.at(old)
        is_remembered = there is not None and set(there.mac_addresses) <= set(moved.mac_addresses)
        if there is None or (is_remembered and not self._is_answering(old)):
            return f"nothing answers at {old} any more"
        return f"{old} is another device now"

    def _is_still_there(self, printer: KnownPrinter, old: str, arrived: Container[str]) -> bool:
        """Tell whether what answers at the address it is set up with may well be the printer;
        it is not where another one has ``arrived``."""
        there = self.index.at(old)
        is_open = printer.port is not None and self._contact(old, printer.port) == "open"
        if there is None or not is_open or there.address in arrived:
            return False
        return difference(printer, there, None, "address") is None

    def _out_of_reach(self, told: Symptoms, seen: str | None = None) -> Symptoms:
        """Add why this machine cannot print to an address, if it cannot; and ``seen`` then."""
        if self._can_reach(told.address):
            return told
        parsed = ipaddress.ip_address(told.address.partition("%")[0])
        is_masked = any(parsed in each for each in self._usual_networks)
        why: OutOfReach = "wrong mask" if is_masked else "other network"
        return replace(
            told,
            status="unreachable",
            seen=seen or f"{told.seen}; {told.left}",
            out_of_reach="link-local" if parsed in _LINK_LOCAL else why,
        )

    def _can_reach(self, address: str) -> bool:
        parsed = ipaddress.ip_address(address.partition("%")[0])
        if parsed in _LINK_LOCAL:
            return False
        nearby = (*self._own_networks, *self._networks)
        is_near = not self._own_networks or any(parsed in network for network in nearby)
        return is_near or parsed.version == 6 or self._is_answering(address)

    def _attempts(self, address: str, port: int) -> tuple[PortState, ...]:
        """Return how a port was found, one time after the other."""
        last = self._contact(address, port)
        return self._observed_attempts.get((address, port)) or ((last,) if last else ())

    def _contact(self, address: str, port: int) -> PortState | None:
        host = self._scanned.get(address)
        return host.contact(port) if host else None

    def _is_answering(self, address: str) -> bool:
        host = self._scanned.get(address)
        return host is not None and host.is_answering

    def _is_scanned(self, address: str) -> bool:
        parsed = ipaddress.ip_address(address.partition("%")[0])
        return any(parsed in network for network in self._networks)


def _is_lost(printer: KnownPrinter, verdict: Verdict) -> bool:
    """Tell whether a printer of the network was not found, nor several that may be it."""
    is_seen = verdict.device is not None or verdict.is_ambiguous
    return printer.transport == "network" and not is_seen


def _usual_network(own: Network) -> Network:
    """Return the /24 around a smaller IPv4 network, else the network itself."""
    is_small = own.version == 4 and own.prefixlen > _USUAL_PREFIX
    return own.supernet(new_prefix=_USUAL_PREFIX) if is_small else own


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
