"""Determines the verdict on each printer of the machine from the observations. No I/O.

The table of verdicts (`table.py`) decides. Two rules take precedence. A printer is not reported as
reachable if the device at its address may be a different one. A hint never names a device that
another queue uses.
"""

from collections.abc import Sequence
from dataclasses import replace

from collectors.contract import Printer
from collectors.network.matching import verdicts
from collectors.network.matching.cases import Case, Cases, choose_observation, is_own
from collectors.network.matching.causes import explain
from collectors.network.matching.devices import Device, DeviceIndex, group_devices
from collectors.network.matching.learned import learn
from collectors.network.matching.reasons import join_names, sentence
from collectors.network.matching.recognise import find_alike
from collectors.network.matching.symptoms import NOTHING_WRONG, MachineSymptoms, Symptoms
from collectors.network.matching.table import Occupant, Row, decide
from collectors.network.matching.verdicts import Hints, Key, Verdict
from collectors.network.observations import KnownPrinter, Observations, PrinterMatches
from collectors.shared.addresses import join_host_port

_SEARCHED = ("MAC", "UUID", "nothing")
"""What is known of a printer without an address (`Case.problem`). Only a search of the network
could find the printer."""


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
    index = DeviceIndex(group_devices(observed))
    builder = _VerdictBuilder(Cases(known, observed, index), machine, printers_only=printers_only)
    results = [builder.verdict(number, printer) for number, printer in enumerate(known)]
    hints = Hints(index, builder.cases.is_free)
    ids: dict[Key, dict[str, None]] = {}
    for result in results:
        for key in result.endpoints:
            ids.setdefault(key, {})[result.printer.id] = None
    answering = (
        (v.printer, v.device, v.learned_address) for v in results if v.device and v.learned_address
    )
    strangers = ((v.printer, v.taken_by, v.taken_by.address) for v in results if v.taken_by)
    return PrinterMatches(
        printers=tuple(_printer(result, hints) for result in results),
        printer_ids={key: tuple(of_key) for key, of_key in ids.items()},
        learned=tuple(learn(answering, index)),
        strangers=tuple(learn(strangers, index)),
    )


class _VerdictBuilder:
    """Returns the verdict on a printer: the outcome of the table, and the reason."""

    def __init__(self, cases: Cases, machine: MachineSymptoms, *, printers_only: bool) -> None:
        self.cases = cases
        self._machine = machine
        self._printers_only = printers_only

    def verdict(self, number: int, printer: KnownPrinter) -> Verdict:
        case = self.cases.by_number.get(number)
        if case is None:
            return self._to_verdict(verdicts.local_symptoms(printer))
        if self.cases.reach.has_no_observations or (
            self._printers_only and case.problem in _SEARCHED
        ):
            return self._to_verdict(Symptoms(printer, "unknown", self._why_not_examined(case)))
        situation = self.cases.situation(case)
        row = decide(situation)
        if row.outcome in ("unresolved", "renamed", "several"):
            return self._unresolved_verdict(case, row)
        if row.outcome == "moved":
            return self._moved_verdict(case, row, situation.occupant)
        if row.outcome == "off" or case.device is None:
            return self._absent_verdict(case, row)
        return self._present_verdict(case, row, case.device)

    def _why_not_examined(self, case: Case) -> str:
        if self._printers_only and case.problem in _SEARCHED:
            return "its address is not known, and the network was not searched for it"
        return "it was not contacted" if self._printers_only else "the network was not examined"

    def _to_verdict(
        self, symptoms: Symptoms, device: Device | None = None, key: Key | None = None
    ) -> Verdict:
        texts = explain(symptoms, self._machine, with_all_remedies=self._printers_only)
        reason = sentence(*texts)
        observations = device.observations if device else ()
        ports = [(e.address, e.port) for e in observations if is_own(symptoms.printer, e)]
        unique_keys = tuple(dict.fromkeys((*((key,) if key else ()), *ports)))
        return Verdict(symptoms.printer, symptoms.status, reason, key, unique_keys, device)

    def _unresolved_verdict(self, case: Case, row: Row) -> Verdict:
        if row.outcome == "several":
            addresses = join_names([rival.address for rival in case.rivals])
            evidence = (
                f"ambiguous between {addresses}: all have its {verdicts.name_kind(case.printer)}"
            )
            symptoms = Symptoms(case.printer, row.status, evidence)
            return replace(self._to_verdict(symptoms), has_candidates=True)
        symptoms = verdicts.unresolved_symptoms(case)
        if row.outcome == "unresolved":
            return self._to_verdict(symptoms)
        other = case.elsewhere[0]
        observation = choose_observation(case.printer, other.device.observations)
        key = (observation.address, observation.port) if observation else None
        # If the device has the announced address, only its service has changed.
        has_announced = case.announced_address in other.device.addresses
        device_address = "" if has_announced else f"{other.device.address} (same {other.by})"
        symptoms = replace(symptoms, device_address=device_address)
        return self._to_verdict(symptoms, other.device, key)

    def _absent_verdict(self, case: Case, row: Row) -> Verdict:
        """Return the verdict on a printer if no device is known at its address.

        If only the MAC of a device at this address is known, this verdict is used as well.
        """
        printer, address, port = case.printer, case.address, case.port
        endpoint, reach = join_host_port(address, port), self.cases.reach
        attempts = reach.attempts(address, port or 0)
        symptoms = Symptoms(printer, row.status, seen="", attempts=attempts)
        if row.outcome == "not tried":
            evidence = f"{endpoint} is not in a network that was scanned"
        elif symptoms.contact == "refused":
            evidence = f"{endpoint} refuses the connection"
        elif case.device is not None:  # only its MAC is known
            evidence = f"no answer from {address} on port {port} or any other port"
        else:
            evidence = f"no answer from {address}"
            symptoms = replace(symptoms, attempts=(), failed_lookup="other")
        devices, by = find_alike(printer, self.cases.index)
        obstacle = reach.obstacle(devices[0].address) if len(devices) == 1 else ""
        if obstacle and row.outcome == "off":
            other = devices[0].address
            evidence = f"{evidence}; a device with its {by} was seen at {other}"
            symptoms = replace(symptoms, address=other, out_of_reach=obstacle, failed_lookup="")
        return self._to_verdict(replace(symptoms, seen=evidence))

    def _present_verdict(self, case: Case, row: Row, device: Device) -> Verdict:
        """Return the verdict on a printer with a device at its destination."""
        printer, address, port = case.printer, case.address, case.port
        observation, matched_by = case.observation, verdicts.matched_by(case)
        difference = self._difference(case, device) if row.outcome == "taken" else ""
        symptoms = Symptoms(printer, row.status, seen="", difference=difference)
        if port is None:
            evidence = (
                f"{device.address} is there, but no print port was found (matched by {matched_by})"
            )
            occupant_name = "" if difference else verdicts.occupant_name(device)
            symptoms = replace(symptoms, seen=evidence, occupant_name=occupant_name)
            return self._to_verdict(symptoms, None if difference else device)
        reach = self.cases.reach
        symptoms = replace(
            symptoms,
            address=address,
            port=port,
            attempts=reach.attempts(address, port),
            is_answering=reach.is_answering(address),
        )
        symptoms = verdicts.describe_port(symptoms, case)
        if symptoms.contact != "open":
            instead = verdicts.other_open_ports(device, port)
            symptoms = replace(symptoms, other_open_ports=instead)
        if difference:
            return self._taken_verdict(symptoms, case, device)
        symptoms = verdicts.with_own_state(
            replace(symptoms, models=device.models), observation, device
        )
        if verdicts.is_queue_missing(printer, observation):
            evidence = f"{join_host_port(address, port)} answers"
            symptoms = replace(symptoms, status="unreachable", seen=evidence, is_queue_missing=True)
        elif row.status != "reachable" and not printer.addresses:
            evidence = f"its address is {address} (matched by {matched_by})"
            symptoms = self._with_obstacle(symptoms, evidence)
        is_certain = case.comparison.likeness == "same"
        if symptoms.status == "unreachable" and not symptoms.out_of_reach and not is_certain:
            symptoms = replace(symptoms, occupant_name=verdicts.occupant_name(device))
        verdict = self._to_verdict(
            symptoms, device, (address, port) if observation is not None else None
        )
        return replace(verdict, learned_address=address if symptoms.status == "reachable" else "")

    def _difference(self, case: Case, device: Device) -> str:
        """Describe why the device at a printer's address is a different one."""
        if owner := self.cases.owner(case, device):
            return f"the printer {owner[0]} (same {owner[1]}) has this address now"
        return case.comparison.difference

    def _taken_verdict(self, symptoms: Symptoms, case: Case, device: Device) -> Verdict:
        """Return the verdict on a printer if a different device has the printer's address.

        The state and the endpoints of that device are not reported for the printer.
        """
        is_used = any(
            other.may_print_to(device) or other.evidence(device)
            for other in self.cases.others(case)
        )
        is_open = symptoms.contact == "open"
        if is_open:
            symptoms = replace(symptoms, seen=f"{symptoms.address} answers on port {symptoms.port}")
        is_new = is_open and case.comparison.contradicts_learned and not is_used
        verdict = self._to_verdict(replace(symptoms, may_have_replaced=is_new))
        return replace(verdict, taken_by=device if is_new else None)

    def _moved_verdict(self, case: Case, row: Row, occupant: Occupant | None) -> Verdict:
        (other,) = case.elsewhere
        device = other.device
        observation = choose_observation(case.printer, device.observations)
        key = (observation.address, observation.port) if observation else None
        users = [e.printer.name for e in self.cases.others(case) if e.may_print_to(device)]
        old_address_state = f"another device has {case.address} now"
        if occupant == "nobody":
            old_address_state = f"nothing answers at {case.address} any more"
        symptoms = Symptoms(
            case.printer,
            row.status,
            seen=f"moved to {join_host_port(*key) if key else device.address} (same {other.by})",
            address=key[0] if key else device.address,
            old_address_state=old_address_state,
            set_up_as=join_names(users),
        )
        symptoms = self._with_obstacle(verdicts.with_own_state(symptoms, observation, device))
        verdict = self._to_verdict(symptoms, device, None if symptoms.out_of_reach else key)
        return replace(verdict, learned_address=device.address if other.by == "MAC" and key else "")

    def _with_obstacle(self, symptoms: Symptoms, evidence: str | None = None) -> Symptoms:
        """If this machine cannot print to the address, return the symptoms with the reason.

        In this case, ``evidence`` replaces ``symptoms.seen``. If ``evidence`` is None, the state
        of the old address is appended to ``symptoms.seen``.
        """
        obstacle = self.cases.reach.obstacle(symptoms.address)
        if not obstacle:
            return symptoms
        evidence = evidence or f"{symptoms.seen}; {symptoms.old_address_state}"
        return replace(symptoms, status="unreachable", seen=evidence, out_of_reach=obstacle)


def _printer(verdict: Verdict, hints: Hints) -> Printer:
    printer = verdict.printer
    is_named = verdict.device is not None or verdict.has_candidates
    is_lost = printer.transport == "network" and not is_named and not printer.backend
    matched_endpoint = join_host_port(*verdict.endpoint) if verdict.endpoint else None
    return Printer(
        id=printer.id,
        name=printer.name,
        transport=printer.transport,
        status=verdict.status,
        address=printer.address or matched_endpoint,
        reason=sentence(verdict.reason, hints.about(printer) if is_lost else None),
        matched_endpoint=matched_endpoint,
    )
