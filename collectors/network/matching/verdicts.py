"""What is said of a printer once it is known which device it is, or that it is none."""

from dataclasses import dataclass
from typing import Literal

from collectors.network.matching.devices import Device
from collectors.network.matching.reasons import listed, sentence, state_words
from collectors.network.observations import KnownPrinter, PortObservation
from collectors.network.scan.scan import PortState
from collectors.shared.addresses import PRINT_PORTS

Status = Literal["reachable", "unreachable", "unknown"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one printer was judged; ``marked`` are the endpoints that are this printer."""

    status: Status
    reason: str
    endpoint: tuple[str, int] | None = None
    marked: tuple[tuple[str, int], ...] = ()
    device: Device | None = None
    is_ambiguous: bool = False


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
        why = "this system does not tell whether it is plugged in"
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


def printer_state(
    printer: KnownPrinter, seen: PortObservation | None, device: Device
) -> str | None:
    """Say what the printer itself complains of, and what the machine's spooler does."""
    observations = (*((seen,) if seen is not None else ()), *device.observations)
    own = next((each for each in observations if _speaks_for(each, printer)), None)
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
