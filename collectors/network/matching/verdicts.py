"""What is said of a printer once it is known which device it is, or that it is none."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from collectors.contract import LearnedPrinter
from collectors.network.matching.devices import By, Device, sure_macs
from collectors.network.matching.models import is_other_model
from collectors.network.matching.reasons import listed, sentence, state_words
from collectors.network.observations import KnownPrinter, PortObservation, QueueState
from collectors.network.scan.scan import PortState
from collectors.shared.addresses import PRINT_PORTS

Status = Literal["reachable", "unreachable", "unknown"]

_QUEUES_OF_A_SERVER = ("printers/", "classes/")


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one printer was judged; ``marked`` are the endpoints that are this printer, ``taken_by``
    is another device than it was that takes connections at its address."""

    status: Status
    reason: str
    endpoint: tuple[str, int] | None = None
    marked: tuple[tuple[str, int], ...] = ()
    device: Device | None = None
    is_ambiguous: bool = False
    taken_by: Device | None = None


@dataclass(frozen=True, slots=True)
class NeededPort:
    """How the port a printer needs was found; ``outcome`` is None when it was not tried.

    ``answers_elsewhere`` tells whether any port of the address accepted or refused.
    """

    address: str
    port: int
    outcome: PortState | None
    is_announced: bool
    answers_elsewhere: bool
    matched_by: str


def judge_port(needed: NeededPort, device: Device) -> tuple[Status, str]:
    """Judge a device that was found by what its port did."""
    address, port, matched = needed.address, needed.port, f"matched by {needed.matched_by}"
    if needed.outcome == "open":
        return "reachable", f"reachable on port {port}, {matched}"
    if needed.outcome == "refused":
        reason = f"{address} refuses connections on port {port} ({matched})"
        return "unreachable", sentence(reason, _open_instead(device, port))
    if needed.outcome == "no-answer":
        return "unreachable", _silence(needed, device)
    if needed.is_announced:
        return "unknown", f"announced by mDNS on port {port} of {address}, {matched}; not contacted"
    reason = f"{address} is there ({matched}), but port {port} was not tried"
    return "unknown", sentence(reason, _open_instead(device, port))


def judge_local(printer: KnownPrinter) -> Verdict:
    """Judge a printer that hangs on the machine itself, or is paired with it."""
    if printer.present is None:
        why = printer.presence_reason or "this system does not tell whether it is plugged in"
        if printer.transport == "ble":
            why = "Bluetooth printers are not contacted"
        return Verdict("unknown", sentence(why, spooler_state(printer)))
    status: Status = "reachable" if printer.present else "unreachable"
    return Verdict(status, sentence(printer.presence_reason, spooler_state(printer)))


def what_was_missing(printer: KnownPrinter) -> str | None:
    """Say what was looked for in vain; None where there was nothing to look for."""
    if printer.dns_sd_name:
        return f"no device announces the name {printer.dns_sd_name} by mDNS"
    if printer.host:
        return f"no address was found for the name {printer.host}"
    if printer.mac_address:
        return f"no device has the MAC {printer.mac_address}"
    return f"no device has the UUID {printer.uuid}" if printer.uuid else None


def difference(
    printer: KnownPrinter, device: Device, seen: PortObservation | None, by: By
) -> str | None:
    """Say by what a device shows that it may be another than the printer it was taken for; None
    where it shows nothing of the kind. ``by`` is what it was taken for the printer by: a MAC is no
    other device's, but makers do give one UUID to all devices of a firmware."""
    if by == "MAC":
        return None
    printing = [each for each in device.observations if each.port in PRINT_PORTS]
    told = [seen] if seen is not None and seen.uuids else printing
    models = [model for each in printing for model in each.models]
    differences = (
        (
            _is_foreign(printer.uuid, (u for each in told for u in each.uuids)),
            "it gives another UUID than the printer that was set up",
        ),
        (
            _has_other_mac(printer, device),
            "it has another MAC than the printer that was set up",
        ),
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
    said = next((said for is_so, said in differences if is_so), None)
    said = f"{said}, so that it may be another device" if said else None
    return unlike_learned(printer.learned, device) or said


def unlike_learned(learned: LearnedPrinter | None, device: Device) -> str | None:
    """Say that a device shows another identity than the printer had when it last answered.

    On Wi-Fi a printer has another MAC than on a cable; but makers give one UUID or serial number to
    many devices, so that two things that are the same outweigh another MAC, and one does not.
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
    """Tell whether a device has the MAC of a printer, or two other things that it had."""
    if learned is None:
        return False
    same = [mark for mark, own, given in _marks(learned, device) if own in given]
    return "MAC" in same or len(same) + (learned.hostname in device.hostnames) > 1


def _marks(
    learned: LearnedPrinter, device: Device
) -> tuple[tuple[By, str | None, Sequence[str]], ...]:
    ports = device.observations
    return (
        ("MAC", learned.mac_address, device.mac_addresses),
        ("serial number", learned.serial, [serial for each in ports for serial in each.serials]),
        ("UUID", learned.uuid, [uuid for each in ports for uuid in each.uuids]),
    )


def replacement(printer: KnownPrinter, status: Status) -> str | None:
    """Say that a printer was taken for the one that was there before it."""
    since = printer.learned.replaced_at if printer.learned else None
    if since is None or status != "reachable":
        return None
    return f"since {since[:10]} it is another device than before: was the printer replaced?"


def _name_of(device: Device) -> str | None:
    models = (model for each in device.observations for model in each.models)
    labels = (label for each in device.observations for label in each.labels)
    return next(iter((*models, *labels, *device.hostnames)), None)


def _has_other_mac(printer: KnownPrinter, device: Device) -> bool:
    own = tuple(sure_macs(printer))
    return bool(own and device.mac_addresses) and not any(
        mac.endswith(own) for mac in device.mac_addresses
    )


def _is_foreign(own: str | None, given: Iterable[str]) -> bool:
    all_given = set(given)
    return bool(own and all_given) and own not in all_given


def what_is_there(device: Device) -> str | None:
    """Name a device that shows no port for printing, so that it may have taken the address."""
    if any(each.port in PRINT_PORTS for each in device.observations):
        return None
    name = _name_of(device)
    return f"what answers there is {name}: has another device taken the address?" if name else None


def missing_queue(printer: KnownPrinter, seen: PortObservation | None) -> str | None:
    """Say that a server does not have the queue that is printed to; None where it may have."""
    asked = [e for e in (seen.queue_states if seen else ()) if e.queue == printer.queue]
    if not asked or not asked[-1].is_missing:
        return None
    return f"it has no queue {printer.queue}: was it renamed or removed there?"


def printer_state(
    printer: KnownPrinter, seen: PortObservation | None, device: Device
) -> str | None:
    """Say what the printer itself complains of, and what the machine's spooler does."""
    own = _own_state(printer, seen, device)
    words = state_words((*(own.state_reasons if own else ()), *printer.state_reasons))
    said = f"the printer says: {listed(words)}" if words else None
    if said is None and own is not None and own.state == "stopped":
        said = "the printer says that it is stopped"
    return "; ".join(part for part in (said, _stopped(printer)) if part) or None


def spooler_state(printer: KnownPrinter) -> str | None:
    """Say what this machine's spooler knows of a printer that was not asked itself."""
    words = state_words(printer.state_reasons)
    said = f"the spooler says: {listed(words)}" if words else None
    return "; ".join(part for part in (said, _stopped(printer)) if part) or None


def _own_state(
    printer: KnownPrinter, seen: PortObservation | None, device: Device
) -> QueueState | PortObservation | None:
    """Return the state of the queue that is printed to, else that of the only printer there."""
    told = tuple(reversed(seen.queue_states if seen is not None else ()))
    of_queue = (each for each in told if printer.queue and each.queue == printer.queue)
    of_uuid = (each for each in told if printer.uuid and each.uuid == printer.uuid)
    ports = (*((seen,) if seen is not None else ()), *device.observations)
    of_port = (port for port in ports if _speaks_for(port, printer))
    return next((each for found in (of_queue, of_uuid, of_port) for each in found), None)


def _speaks_for(observation: PortObservation, printer: KnownPrinter) -> bool:
    """Tell whether a port has a printer's state and may be this one's."""
    is_foreign = printer.uuid and observation.uuids and printer.uuid not in observation.uuids
    return not is_foreign and bool(observation.state or observation.state_reasons)


def _silence(needed: NeededPort, device: Device) -> str:
    address, port = needed.address, needed.port
    if needed.answers_elsewhere:
        reason = f"{address} is there, but port {port} does not answer"
        return sentence(f"{reason} (matched by {needed.matched_by})", _open_instead(device, port))
    return (
        f"no answer from {address} on port {port} or any other, only its MAC was seen lately:"
        " is it switched on and connected?"
    )


def _open_instead(device: Device, port: int) -> str | None:
    opened = {each.port for each in device.observations if each.contact == "open"}
    printing = [str(each) for each in PRINT_PORTS if each in opened and each != port]
    return f"printing is open on port {listed(printing)} instead" if printing else None


def _stopped(printer: KnownPrinter) -> str | None:
    return "its queue is stopped on this machine" if printer.stopped else None
