"""Matches each printer of the machine with a device of the network, and judges its state. Pure.

The kinds of evidence, strongest first, are: UUID, MAC, serial number, address with port and queue,
host name, DNS-SD name. The model only decides between devices that fit equally well. If the match
is still ambiguous, it is reported as ambiguous. Two rules take precedence: a printer is not
reported as reachable if the device may be a different one, and no hint names a device that another
queue uses.
"""

from collections.abc import Container, Sequence
from dataclasses import replace

from collectors.contract import Printer
from collectors.network.matching import verdicts
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
from collectors.network.matching.reach import Reach
from collectors.network.matching.reasons import listed, sentence
from collectors.network.matching.symptoms import NOTHING_WRONG, MachineSymptoms, Symptoms
from collectors.network.matching.verdicts import Verdict, difference, unlike_learned
from collectors.network.observations import (
    KnownPrinter,
    Observations,
    PortObservation,
    PrinterMatches,
)
from collectors.shared.addresses import PRINT_PORTS, join_host_port

Key = tuple[str, int]  # an address and a port

_NOT_SEARCHED = "its address is not known, and the network was not searched for it"


def match(
    known: Sequence[KnownPrinter],
    observed: Observations,
    machine: MachineSymptoms = NOTHING_WRONG,
    *,
    printers_only: bool = False,
) -> PrinterMatches:
    """Return the status and reason of every known printer, in the given order.

    The result also has the printers of each endpoint and the identities to learn. With
    ``printers_only``, the network was not searched, and reasons contain obvious remedies as well.
    """
    matcher = _Matcher(known, observed, machine, printers_only=printers_only)
    judged = [(printer, at, matcher.judge(printer, at)) for printer, at in matcher.located]
    hints = Hints(matcher.index, matcher.is_free)
    ids: dict[Key, dict[str, None]] = {}
    for printer, _, verdict in judged:
        for key in verdict.marked:
            ids.setdefault(key, {})[printer.id] = None
    # Learn from printers that answer at their address or, with the same MAC, at another address.
    answering = (
        (printer, verdict.device, verdict.endpoint[0])
        for printer, at, verdict in judged
        if verdict.device and verdict.endpoint and at is not None
        if verdict.status == "reachable" or (at.left is not None and at.by == "MAC")
    )
    strangers = ((p, v.taken_by, v.taken_by.address) for p, _, v in judged if v.taken_by)
    return PrinterMatches(
        printers=tuple(_printer(printer, verdict, hints) for printer, _, verdict in judged),
        printer_ids={key: tuple(of_key) for key, of_key in ids.items()},
        learned=tuple(learn(answering, matcher.index.devices)),
        strangers=tuple(learn(strangers, matcher.index.devices)),
    )


class _Matcher:
    """Judges each printer by the device that it was matched with.

    ``located`` has the match of each printer. ``_arrived`` maps an address to the printer that is
    there now although it is set up with a different address. ``_held`` are the addresses of devices
    that queues use.
    """

    def __init__(
        self,
        known: Sequence[KnownPrinter],
        observed: Observations,
        machine: MachineSymptoms,
        *,
        printers_only: bool,
    ) -> None:
        self._machine = machine
        self._printers_only = printers_only
        self._reach = Reach(observed)
        self.index = DeviceIndex(group_devices(observed))
        self.located = locate_printers(known, self.index)
        matched = [(printer, at) for printer, at in self.located if at is not None]
        moved = {
            at.device.address: (printer, at.by)
            for printer, at in matched
            if at.device is not None and at.left is not None
        }
        self._arrived = {
            address: (printer, by)
            for address, (printer, by) in moved.items()
            if by == "MAC" or not self._is_still_there(printer, printer.addresses[0], moved)
        }
        self._held = {d.address for _, at in matched for d in (at.device, *at.rivals) if d}
        # A printer may still be at its address although a device elsewhere has the same identity.
        # That device may forward jobs to the printer, or share the identity by a maker's mistake.
        self._held |= {
            device.address
            for printer in known
            for address in printer.addresses
            if self._is_still_there(printer, address, self._arrived)
            and (device := self.index.at(address)) is not None
        }

    def judge(self, printer: KnownPrinter, at: Located | None) -> Verdict:
        if printer.backend is not None:
            seen = f"not checked: CUPS prints to it with the backend {printer.backend}"
            symptoms = Symptoms(printer, "unknown", seen)
            return replace(self._verdict(symptoms), is_ambiguous=True)
        if printer.transport != "network":
            return self._verdict(verdicts.see_local(printer))
        if at is None:
            return self._verdict(self._see_unmatched(printer))
        if at.device is None:
            where = listed([each.address for each in at.rivals])
            return _ambiguous(f"ambiguous between {where}: all have its {at.by}")
        if at.left is not None:
            return self._judge_moved(printer, at.device, at.by, at.left)
        return self._judge_device(printer, at.device, at.by)

    def is_free(self, device: Device) -> bool:
        """Return whether this machine could print to a device and no queue uses it."""
        return device.address not in self._held and not self._reach.obstacle(device.address)

    def _verdict(
        self, symptoms: Symptoms, device: Device | None = None, key: Key | None = None
    ) -> Verdict:
        texts = explain(symptoms, self._machine, with_all_remedies=self._printers_only)
        reason = sentence(*texts)
        marked = _marked(symptoms.printer, device, key) if device is not None else ()
        return Verdict(symptoms.status, reason, key, marked, device)

    def _see_unmatched(self, printer: KnownPrinter) -> Symptoms:
        if self._printers_only and not (printer.host or printer.dns_sd_name):
            return Symptoms(printer, "unknown", _NOT_SEARCHED)
        if self._reach.is_blind:
            seen = "it was not contacted" if self._printers_only else "the network was not examined"
            return Symptoms(printer, "unknown", seen)
        if not printer.addresses:
            return verdicts.see_missing(printer)
        address, port = printer.addresses[0], printer.port
        where, attempts = join_host_port(address, port), self._reach.attempts(address, port or 0)
        if attempts and attempts[-1] == "refused":
            seen = f"{where} refuses the connection"
            return Symptoms(printer, "unreachable", seen, attempts=attempts)
        if attempts or self._reach.is_scanned(address):
            seen = f"no answer from {address}"
            return Symptoms(printer, "unreachable", seen, in_vain="other")
        return Symptoms(printer, "unknown", f"{where} is not in a network that was scanned")

    def _judge_device(self, printer: KnownPrinter, device: Device, by: By) -> Verdict:
        seen = _choose_port(printer, device)
        other = self._other_device(printer, device, seen, by) or ""
        port = seen.port if seen is not None else printer.port
        if port is None:
            reason = f"{device.address} is there, but no print port was found (matched by {by})"
            there = "" if other else verdicts.what_is_there(device) or ""
            symptoms = Symptoms(printer, "unreachable", reason, what_is_there=there, other=other)
            return self._verdict(symptoms, None if other else device)
        address = seen.address if seen is not None else _own_address(printer, device)
        symptoms = verdicts.judge_port(
            Symptoms(
                printer,
                "unknown",
                "",
                address,
                port,
                self._reach.attempts(address, port),
                self._reach.is_answering(address),
                other=other,
            ),
            is_announced=seen is not None and seen.is_announced,
            matched_by=_matched_by(printer, by, seen),
        )
        if symptoms.status != "reachable":
            symptoms = replace(symptoms, open_instead=verdicts.open_instead(device, port))
        if other:
            return self._verdict_of_other(symptoms, device)
        symptoms = verdicts.with_own_state(replace(symptoms, models=device.models), seen, device)
        if verdicts.is_queue_missing(printer, seen):
            reason = f"{join_host_port(address, port)} answers"
            symptoms = replace(symptoms, status="unreachable", seen=reason, is_queue_missing=True)
        elif symptoms.status != "reachable" and not printer.addresses:
            symptoms = self._with_obstacle(symptoms, f"its address is {address} (matched by {by})")
        if symptoms.status == "unreachable" and not symptoms.out_of_reach and by not in IDENTITIES:
            symptoms = replace(symptoms, what_is_there=verdicts.what_is_there(device) or "")
        return self._verdict(symptoms, device, (address, port) if seen is not None else None)

    def _verdict_of_other(self, symptoms: Symptoms, device: Device) -> Verdict:
        """Return the verdict if the device at the printer's address may be a different one.

        Neither the state nor the endpoints of that device are reported for the printer.
        """
        is_open = symptoms.contact == "open"
        if is_open:
            symptoms = replace(symptoms, seen=f"{symptoms.address} answers on port {symptoms.port}")
        symptoms = replace(
            symptoms, status="unreachable" if symptoms.status == "unreachable" else "unknown"
        )
        is_taken = is_open and self._may_have_replaced(symptoms.printer, device)
        verdict = self._verdict(replace(symptoms, may_have_replaced=is_taken))
        return replace(verdict, taken_by=device if is_taken else None)

    def _other_device(
        self, printer: KnownPrinter, device: Device, seen: PortObservation | None, by: By
    ) -> str | None:
        """Describe why a device may not be the printer that it was matched with, or return None."""
        arrived, evidence = self._arrived.get(device.address, (None, by))
        if arrived is not None and by not in IDENTITIES:
            return f"the printer {arrived.name} (same {evidence}) has this address now"
        return difference(printer, device, seen, by)

    def _may_have_replaced(self, printer: KnownPrinter, device: Device) -> bool:
        """Return whether a device differs from the learned printer and no other queue uses it."""
        return unlike_learned(printer.learned, device) is not None and not any(
            at is not None
            and at.device is device
            and unlike_learned(other.learned, device) is None
            and not set(other.addresses) & set(printer.addresses)
            for other, at in self.located
        )

    def _judge_moved(self, printer: KnownPrinter, device: Device, by: By, old: str) -> Verdict:
        if by != "MAC" and self._is_still_there(printer, old, self._arrived):
            return _ambiguous(
                f"ambiguous between {old}, its configured address,"
                f" and {device.address}, which has its {by}"
            )
        seen = _choose_port(printer, device)
        key = (seen.address, seen.port) if seen is not None else None
        place = join_host_port(*key) if key else device.address
        symptoms = Symptoms(
            printer,
            "unreachable",
            f"moved to {place} (same {by})",
            key[0] if key else device.address,
            left=self._what_is_at(old, device),
        )
        symptoms = self._with_obstacle(verdicts.with_own_state(symptoms, seen, device))
        return self._verdict(symptoms, device, None if symptoms.out_of_reach else key)

    def _what_is_at(self, old: str, moved: Device) -> str:
        """Describe what is at the old address of a printer that has moved.

        A device there with only the moved printer's MAC may be an old entry of the neighbour table.
        It counts only if it answers.
        """
        there = self.index.at(old)
        is_remembered = there is not None and set(there.mac_addresses) <= set(moved.mac_addresses)
        if there is None or (is_remembered and not self._reach.is_answering(old)):
            return f"nothing answers at {old} any more"
        return f"{old} is another device now"

    def _is_still_there(self, printer: KnownPrinter, old: str, arrived: Container[str]) -> bool:
        """Return whether the device at a printer's old address may be the printer.

        That is possible if the printer's port is open there, nothing contradicts it, and no other
        printer has moved to that address (``arrived``).
        """
        there = self.index.at(old)
        is_open = printer.port is not None and self._reach.contact(old, printer.port) == "open"
        if there is None or not is_open or there.address in arrived:
            return False
        return difference(printer, there, None, "address") is None

    def _with_obstacle(self, symptoms: Symptoms, seen: str | None = None) -> Symptoms:
        """If this machine cannot print to the address, add the reason and the text ``seen``."""
        obstacle = self._reach.obstacle(symptoms.address)
        if not obstacle:
            return symptoms
        seen = seen or f"{symptoms.seen}; {symptoms.left}"
        return replace(symptoms, status="unreachable", seen=seen, out_of_reach=obstacle)


def _ambiguous(reason: str) -> Verdict:
    return Verdict("unknown", sentence(reason), is_ambiguous=True)


def _own_address(printer: KnownPrinter, device: Device) -> str:
    return next((each for each in printer.addresses if each in device.addresses), device.address)


def _choose_port(printer: KnownPrinter, device: Device) -> PortObservation | None:
    """Return the observation of the port that the printer is set up with.

    Without a port in the setup, the best port for printing is returned. If the printer is set up
    with an IPv4 address of the device, only that address counts, because jobs go there. A printer
    with only a link-local IPv6 address may use any address of the device: the scan does not contact
    link-local IPv6 addresses.
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
    """Return whether this port itself gives the printer's UUID or DNS-SD name."""
    if printer.uuid is not None and printer.uuid in observation.uuids:
        return True
    name = (printer.dns_sd_name or "").lower()
    return bool(name) and any(name in service_names(each) for each in observation.instances)


def _rank(observation: PortObservation) -> tuple[bool, int, int]:
    port = observation.port
    position = PRINT_PORTS.index(port) if port in PRINT_PORTS else len(PRINT_PORTS)
    return (observation.contact != "open", position, port)


def _marked(printer: KnownPrinter, device: Device, key: Key | None) -> tuple[Key, ...]:
    """Return the matched endpoint and the device's ports with the printer's UUID or DNS-SD name."""
    own = ((e.address, e.port) for e in device.observations if _is_own(printer, e))
    return tuple(dict.fromkeys((*((key,) if key else ()), *own)))


def _matched_by(printer: KnownPrinter, by: By, seen: PortObservation | None) -> str:
    if by != "address":
        return by
    if printer.port is None:
        return "address"
    has_queue = seen is not None and printer.queue and printer.queue in seen.queues
    return "address, port and queue" if has_queue else "address and port"


def _printer(printer: KnownPrinter, verdict: Verdict, hints: Hints) -> Printer:
    has_match = verdict.device is not None or verdict.is_ambiguous
    is_lost = printer.transport == "network" and not has_match
    matched = join_host_port(*verdict.endpoint) if verdict.endpoint else None
    return Printer(
        id=printer.id,
        name=printer.name,
        transport=printer.transport,
        status=verdict.status,
        address=printer.address or matched,
        reason=sentence(verdict.reason, hints.about(printer) if is_lost else None),
        matched_endpoint=matched,
    )
