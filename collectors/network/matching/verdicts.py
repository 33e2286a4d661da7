"""Describes what was observed of a printer and of the device at its destination. No I/O."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import chain

from collectors.network.matching.cases import Case
from collectors.network.matching.devices import Device, DeviceIndex
from collectors.network.matching.models import plain_model
from collectors.network.matching.reasons import join_names
from collectors.network.matching.recognise import compare, find_alike, name_of
from collectors.network.matching.symptoms import FailedLookup, Status, Symptoms
from collectors.network.observations import (
    SLOW_LOOKUP_S,
    Evidence,
    KnownPrinter,
    PortObservation,
)
from collectors.shared.addresses import PRINT_PORTS

HINTS_MAX = 4
"""If more devices than this have the printer's model, the model is not used as a hint."""

_MAYBE = "it may be the same printer"

Key = tuple[str, int]  # an address and a port


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result for ``printer``.

    ``endpoint`` is the address and port that the printer was matched with. ``endpoints`` are all
    addresses and ports that belong to the printer. ``device`` is its device. The agent learns the
    identity of this device with the address ``learned_address``, unless ``learned_address`` is "".
    ``has_candidates``: the reason names the devices that may be the printer. If it names them or
    the printer's device, no hint (`Hints`) is added. ``taken_by`` is a different device that
    accepts connections at the printer's address.
    """

    printer: KnownPrinter
    status: Status
    reason: str
    endpoint: Key | None = None
    endpoints: tuple[Key, ...] = ()
    device: Device | None = None
    learned_address: str = ""
    has_candidates: bool = False
    taken_by: Device | None = None


def describe_port(symptoms: Symptoms, case: Case) -> Symptoms:
    """Add a description of the printer's port, from the results of connections to it."""
    address, number, matched = case.address, case.port, f"matched by {matched_by(case)}"
    is_announced = case.observation is not None and case.observation.is_announced
    if symptoms.contact == "open":
        evidence = f"reachable on port {number}, {matched}"
    elif symptoms.contact == "refused":
        evidence = f"{address} refuses connections on port {number} ({matched})"
    elif symptoms.contact and symptoms.is_answering:
        evidence = f"{address} is there, but port {number} does not answer ({matched})"
    elif symptoms.contact:
        origin = "it is only announced by mDNS" if is_announced else "only its MAC was seen lately"
        evidence = f"no answer from {address} on port {number} or any other port; {origin}"
    elif is_announced:
        evidence = f"announced by mDNS on port {number} of {address}, {matched}; not contacted"
    else:
        evidence = f"{address} is there ({matched}), but port {number} was not tried"
    return replace(symptoms, seen=evidence)


def matched_by(case: Case) -> str:
    """Return the strongest evidence by which a printer was matched with its destination."""
    printer, device, observation = case.printer, case.device, case.observation
    if printer.uuid and device and printer.uuid in device.uuids:
        return "UUID"
    if case.comparison.by:
        return case.comparison.by
    if printer.serial and device and printer.serial in device.serials:
        return "serial number"
    if not printer.addresses:
        return "host name" if printer.host and not printer.dns_sd_name else name_kind(printer)
    if printer.port is None:
        return "address"
    has_queue = observation is not None and printer.queue and printer.queue in observation.queues
    return "address, port and queue" if has_queue else "address and port"


def name_kind(printer: KnownPrinter) -> str:
    """Return what identifies the device of a printer without an address."""
    if printer.dns_sd_name:
        return "DNS-SD name"
    return "MAC" if printer.mac_address else "UUID"


def local_symptoms(printer: KnownPrinter) -> Symptoms:
    """Return the symptoms of a local printer, or of one that CUPS reaches by an unknown backend."""
    if printer.backend is not None:
        evidence = f"not checked: CUPS prints to it with the backend {printer.backend}"
        return Symptoms(printer, "unknown", evidence)
    if printer.present is None:
        reason = printer.presence_reason or "this system does not report whether it is plugged in"
        if printer.transport == "ble":
            reason = "Bluetooth printers are not contacted"
        return Symptoms(printer, "unknown", reason)
    status: Status = "reachable" if printer.present else "unreachable"
    return Symptoms(printer, status, printer.presence_reason or "")


def unresolved_symptoms(case: Case) -> Symptoms:
    """Return the symptoms of a printer whose destination cannot be resolved."""
    printer, name = case.printer, case.printer.dns_sd_name
    failed_lookup: FailedLookup = "other"
    if case.problem == "host name":
        is_slow = printer.lookup_s >= SLOW_LOOKUP_S
        failed_lookup = "name server" if is_slow else "host name"
        evidence = f"no address was found for the name {printer.host}"
        if is_slow:
            evidence = f"the name servers did not answer for the name {printer.host}"
    elif case.problem == "mDNS name":
        evidence = f"no address was found for the name {printer.host}"
    elif case.problem == "type":
        kind = printer.dns_sd_type or "a printer"
        failed_lookup = "service"
        evidence = f"{name} is announced at {case.announced_address}, but not as {kind}"
    elif case.problem == "UUID" and name:
        failed_lookup = "service"
        evidence = (
            f"the UUID of {name} at {case.announced_address} differs from that of the printer that"
            " was set up"
        )
    elif case.problem == "service":
        evidence = f"no device announces the name {name} by mDNS"
    elif case.problem in ("MAC", "UUID"):
        evidence = f"no device has the {case.problem} {printer.mac_address or printer.uuid}"
    else:
        evidence = "its setup has no address, name, MAC or UUID to search for"
        return Symptoms(printer, "unknown", evidence)
    return Symptoms(printer, "unreachable", evidence, failed_lookup=failed_lookup)


def occupant_name(device: Device) -> str:
    """Return the name of a device without print ports, which may have taken a printer's address.

    Returns "" if the device has a print port or no known name.
    """
    return "" if device.print_ports else name_of(device) or ""


def is_queue_missing(printer: KnownPrinter, observation: PortObservation | None) -> bool:
    """Return whether a server answered that it does not have the printer's queue."""
    all_states = observation.queue_states if observation else ()
    states = [state for state in all_states if state.queue == printer.queue]
    return bool(states) and states[-1].is_missing


def with_own_state(
    symptoms: Symptoms, observation: PortObservation | None, device: Device
) -> Symptoms:
    """Add the state that the device reports for the printer's queue, or else for the printer."""
    printer = symptoms.printer
    states = tuple(reversed(observation.queue_states if observation is not None else ()))
    of_queue = (state for state in states if printer.queue and state.queue == printer.queue)
    of_uuid = (state for state in states if printer.uuid and state.uuid == printer.uuid)
    ports = (*((observation,) if observation is not None else ()), *device.observations)
    of_port = (port for port in ports if _may_be_state_of(port, printer))
    own_state = next(chain[Evidence | PortObservation](of_queue, of_uuid, of_port), None)
    if own_state is None:
        return symptoms
    is_stopped = own_state.state == "stopped"
    return replace(symptoms, own_reasons=own_state.state_reasons, is_stopped=is_stopped)


def _may_be_state_of(observation: PortObservation, printer: KnownPrinter) -> bool:
    """Return whether a port has reported a state and may belong to this printer."""
    is_foreign = printer.uuid and observation.uuids and printer.uuid not in observation.uuids
    return not is_foreign and bool(observation.state or observation.state_reasons)


def other_open_ports(device: Device, port: int) -> str:
    """Return a list of the device's print ports, other than ``port``, that accept connections."""
    open_ports = {o.port for o in device.observations if o.contact == "open"} - {port}
    return join_names([str(other_port) for other_port in PRINT_PORTS if other_port in open_ports])


class Hints:
    """Suggests devices that may be a printer that was not found.

    Only devices that no queue uses (``is_free``) are suggested. A hint never changes a status.
    """

    def __init__(self, index: DeviceIndex, is_free: Callable[[Device], bool]) -> None:
        self._index = index
        self._is_free = is_free

    def about(self, printer: KnownPrinter) -> str | None:
        alike, by = find_alike(printer, self._index)  # one identity is not enough for a match
        named = self._index.having("instances", printer.dns_sd_name or printer.name)
        for kind, devices in ((by, alike), ("name", named)):
            if address := self._only_free_address(printer, devices):
                return f"a device with its {kind} was seen at {address}: {_MAYBE}"
        addresses = self._free_addresses(self._index.of_model(printer.make_model))
        if 0 < len(addresses) <= HINTS_MAX:
            return f"the same model was seen at {join_names(addresses)}"
        if plain_model(printer.make_model):
            return None
        free = self._free_addresses(self._index.printers())
        if len(free) == 1:
            return f"a printer that no queue of this machine uses was seen at {free[0]}"
        return None

    def _only_free_address(self, printer: KnownPrinter, devices: tuple[Device, ...]) -> str | None:
        """Return the address of the only device in ``devices``.

        Returns None if there is not exactly one device, if a queue uses it, or if it is certainly
        not the printer.
        """
        if len(devices) != 1 or not self._is_free(devices[0]):
            return None
        setup = replace(printer, learned=None)
        is_other = compare(setup, devices[0], self._index).likeness == "different"
        return None if is_other else devices[0].address

    def _free_addresses(self, devices: Iterable[Device]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(device.address for device in devices if self._is_free(device)))
