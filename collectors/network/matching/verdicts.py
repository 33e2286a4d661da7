"""Judges a printer by the device that it was matched with, if any."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from collectors.contract import LearnedPrinter
from collectors.network.matching.devices import By, Device, sure_macs
from collectors.network.matching.models import is_other_model
from collectors.network.matching.reasons import listed
from collectors.network.matching.symptoms import Status, Symptoms
from collectors.network.observations import Evidence, KnownPrinter, PortObservation
from collectors.shared.addresses import PRINT_PORTS, is_mdns_name

_QUEUES_OF_A_SERVER = ("printers/", "classes/")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result for one printer.

    ``endpoint`` is the address and port that the printer was matched with. ``marked`` are all
    endpoints that belong to the printer. ``taken_by`` is a different device that accepts
    connections at the printer's address.
    """

    status: Status
    reason: str
    endpoint: tuple[str, int] | None = None
    marked: tuple[tuple[str, int], ...] = ()
    device: Device | None = None
    is_ambiguous: bool = False
    taken_by: Device | None = None


def judge_port(port: Symptoms, *, is_announced: bool, matched_by: str) -> Symptoms:
    """Set the status and the description of a port from the results of connections to it."""
    address, number, matched = port.address, port.port, f"matched by {matched_by}"
    status: Status = "unreachable" if port.contact else "unknown"
    if port.contact == "open":
        status, seen = "reachable", f"reachable on port {number}, {matched}"
    elif port.contact == "refused":
        seen = f"{address} refuses connections on port {number} ({matched})"
    elif port.contact and port.is_answering:
        seen = f"{address} is there, but port {number} does not answer ({matched})"
    elif port.contact:
        seen = (
            f"no answer from {address} on port {number} or any other port;"
            " only its MAC was seen lately"
        )
    elif is_announced:
        seen = f"announced by mDNS on port {number} of {address}, {matched}; not contacted"
    else:
        seen = f"{address} is there ({matched}), but port {number} was not tried"
    return replace(port, status=status, seen=seen)


def see_local(printer: KnownPrinter) -> Symptoms:
    """Judge a printer that is plugged into this machine or paired with it."""
    if printer.present is None:
        why = printer.presence_reason or "this system does not report whether it is plugged in"
        if printer.transport == "ble":
            why = "Bluetooth printers are not contacted"
        return Symptoms(printer, "unknown", why)
    status: Status = "reachable" if printer.present else "unreachable"
    return Symptoms(printer, status, printer.presence_reason or "")


def see_missing(printer: KnownPrinter) -> Symptoms:
    """Return the symptoms of a printer that matched no device: what was searched for."""
    status: Status = "unreachable"
    if printer.dns_sd_name:
        seen = f"no device announces the name {printer.dns_sd_name} by mDNS"
        return Symptoms(printer, status, seen, in_vain="other")
    if printer.host:
        seen = f"no address was found for the name {printer.host}"
        is_announced = is_mdns_name(printer.host)
        return Symptoms(printer, status, seen, in_vain="other" if is_announced else "host name")
    if printer.mac_address or printer.uuid:
        what = f"MAC {printer.mac_address}" if printer.mac_address else f"UUID {printer.uuid}"
        return Symptoms(printer, status, f"no device has the {what}", in_vain="other")
    return Symptoms(printer, "unknown", "its setup has no address, name, MAC or UUID to search for")


def difference(
    printer: KnownPrinter, device: Device, seen: PortObservation | None, by: By
) -> str | None:
    """Describe why a device may not be the printer that it was matched with.

    Returns None if nothing contradicts the match. ``by`` is the evidence of the match. A match by
    MAC is not doubted, because a MAC is unique. A match by UUID is doubted, because some makers
    give one UUID to all devices with the same firmware.
    """
    if by == "MAC":
        return None
    printing = device.print_ports
    answers = [seen] if seen is not None and seen.uuids else printing
    models = [model for each in printing for model in each.models]
    differences = (
        (
            _is_foreign(printer.uuid, (u for each in answers for u in each.uuids)),
            "it gives another UUID than the printer that was set up",
        ),
        (_has_other_mac(printer, device), "it has another MAC than the printer that was set up"),
        (
            _is_foreign(printer.serial, (s for each in printing for s in each.serials)),
            "it gives another serial number than the printer that was set up",
        ),
        (
            bool(models)
            and not (printer.queue or "").startswith(_QUEUES_OF_A_SERVER)
            and all(is_other_model(printer.make_model, model) for model in models),
            f"it is of the model {next(iter(models), '')}, not {printer.make_model}",
        ),
    )
    text = next((text for is_so, text in differences if is_so), None)
    text = f"{text}, so that it may be another device" if text else None
    return unlike_learned(printer.learned, device) or text


def unlike_learned(learned: LearnedPrinter | None, device: Device) -> str | None:
    """Describe how a device differs from a printer's learned identity; None if it does not.

    A printer has different MACs on Wi-Fi and on cable. Some makers give one UUID or serial number
    to many devices. So two equal identities outweigh a different MAC, but one equal identity does
    not.
    """
    if learned is None or is_surely(learned, device):
        return None
    marks = ((mark, own, given) for mark, own, given in _marks(learned, device) if own and given)
    mark, own, given = next((each for each in marks if each[1] not in each[2]), (None, None, ()))
    if mark is None:
        return None
    who = ", ".join((*filter(None, (_name_of(device),)), f"{mark} {given[0]}"))
    when = f" on {learned.seen_at[:10]}" if learned.seen_at else ""
    return f"another device answers there: {who}, while the printer had {mark} {own}{when}"


def is_surely(learned: LearnedPrinter | None, device: Device) -> bool:
    """Return whether a device is certainly the learned printer.

    The device must have the printer's MAC, or two of these: its serial number, UUID and host name.
    """
    if learned is None:
        return False
    same = [mark for mark, own, given in _marks(learned, device) if own in given]
    return "MAC" in same or len(same) + (learned.hostname in device.hostnames) > 1


def _marks(
    learned: LearnedPrinter, device: Device
) -> tuple[tuple[By, str | None, Sequence[str]], ...]:
    return (
        ("MAC", learned.mac_address, device.mac_addresses),
        ("serial number", learned.serial, device.serials),
        ("UUID", learned.uuid, device.uuids),
    )


def _name_of(device: Device) -> str | None:
    labels = (label for each in device.observations for label in each.labels)
    return next(iter((*device.models, *labels, *device.hostnames)), None)


def _has_other_mac(printer: KnownPrinter, device: Device) -> bool:
    own = tuple(sure_macs(printer))
    return bool(own and device.mac_addresses) and not any(
        mac.endswith(own) for mac in device.mac_addresses
    )


def _is_foreign(own: str | None, given: Iterable[str]) -> bool:
    all_given = set(given)
    return bool(own and all_given) and own not in all_given


def what_is_there(device: Device) -> str | None:
    """Return the name of a device without print ports, which may have taken a printer's address.

    Returns None if the device has a print port or no known name.
    """
    return None if device.print_ports else _name_of(device)


def is_queue_missing(printer: KnownPrinter, seen: PortObservation | None) -> bool:
    """Return whether a server answered that it does not have the printer's queue."""
    states = [e for e in (seen.queue_states if seen else ()) if e.queue == printer.queue]
    return bool(states) and states[-1].is_missing


def with_own_state(symptoms: Symptoms, seen: PortObservation | None, device: Device) -> Symptoms:
    """Add the state that the device reports for the printer's queue, or else for the printer."""
    printer = symptoms.printer
    states = tuple(reversed(seen.queue_states if seen is not None else ()))
    of_queue = (each for each in states if printer.queue and each.queue == printer.queue)
    of_uuid = (each for each in states if printer.uuid and each.uuid == printer.uuid)
    ports = (*((seen,) if seen is not None else ()), *device.observations)
    of_port = (port for port in ports if _may_be_state_of(port, printer))
    own = next(chain[Evidence | PortObservation](of_queue, of_uuid, of_port), None)
    if own is None:
        return symptoms
    return replace(symptoms, own_reasons=own.state_reasons, is_stopped=own.state == "stopped")


def _may_be_state_of(observation: PortObservation, printer: KnownPrinter) -> bool:
    """Return whether a port has reported a state and may belong to this printer."""
    is_foreign = printer.uuid and observation.uuids and printer.uuid not in observation.uuids
    return not is_foreign and bool(observation.state or observation.state_reasons)


def open_instead(device: Device, port: int) -> str:
    """Return a list of the device's other print ports that accept connections."""
    opened = {each.port for each in device.observations if each.contact == "open"}
    return listed([str(each) for each in PRINT_PORTS if each in opened and each != port])
