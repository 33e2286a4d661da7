"""Finds the device of each printer, and the evidence for it. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from collectors.network.matching.devices import (
    IDENTITIES,
    NAMES,
    By,
    Device,
    DeviceIndex,
    Match,
    evidence_of,
    group_devices,
    instance_names,
)
from collectors.network.matching.identity import mac_in_uuid
from collectors.network.matching.models import is_same_model
from collectors.network.matching.verdicts import difference, is_surely
from collectors.network.observations import KnownPrinter, Observations


@dataclass(frozen=True, slots=True)
class Located:
    """The device that a printer was matched with. ``by`` is the kind of the evidence.

    ``left`` is the address that the printer is set up with, if its device is no longer there. If
    several devices fit equally well, ``device`` is None and ``rivals`` are these devices.
    """

    by: By
    device: Device | None = None
    left: str | None = None
    rivals: tuple[Device, ...] = ()


def locate_printers(
    known: Sequence[KnownPrinter], index: DeviceIndex
) -> tuple[tuple[KnownPrinter, Located | None], ...]:
    """Return each printer with its match. Local printers and printers without a match have None."""
    first = [(printer, _locate(index, printer)) for printer in known]
    return tuple((p, _by_mac(p, _without_shared(index, p, at, first))) for p, at in first)


def located_addresses(known: Sequence[KnownPrinter], observed: Observations) -> set[str]:
    """Return the addresses of all devices that may be one of the printers."""
    located = locate_printers(known, DeviceIndex(group_devices(observed)))
    matches = (at for _, at in located if at is not None)
    devices = (device for at in matches for device in (at.device, *at.rivals) if device)
    return {address for device in devices for address in device.addresses}


def _locate(index: DeviceIndex, printer: KnownPrinter, skip: tuple[By, ...] = ()) -> Located | None:
    if printer.transport != "network" or printer.backend is not None:
        return None
    match = index.find(printer, (*skip, "name"))
    if match is None:
        return None
    device = _settle(printer, match)
    if device is None:
        return Located(match.by, rivals=match.devices)
    left = _address_left(printer, device)
    is_named = match.by in NAMES
    is_other = difference(printer, device, None, match.by) is not None
    if left is not None and _is_only_learned(printer, match.by):
        is_other = is_other or not is_surely(printer.learned, device)
    elsewhere = None
    if is_other or (is_named and left is not None):
        elsewhere = _locate(index, printer, (*skip, match.by))
    if left is not None and (is_named or is_other):
        return elsewhere
    if elsewhere is not None and elsewhere.by in IDENTITIES:
        return elsewhere
    return Located(match.by, device, left)


def _is_only_learned(printer: KnownPrinter, by: By) -> bool:
    """Return whether evidence of this kind is not in the printer's setup, but was learned."""
    return (by, None) in (("UUID", printer.uuid), ("serial number", printer.serial))


def _without_shared(
    index: DeviceIndex,
    printer: KnownPrinter,
    at: Located | None,
    all_of_them: Sequence[tuple[KnownPrinter, Located | None]],
) -> Located | None:
    """Return the match of a printer, without evidence that another printer has as well.

    Evidence is left out only if the printer seems to have moved, and another printer that is set up
    with a different address has the same value. The printer is then located by weaker evidence.
    """
    skip: tuple[By, ...] = ()
    while at is not None and at.device is not None and at.left is not None:
        own = index.evidence(printer, at.by, at.device)
        for other, _ in all_of_them:
            if other.addresses and not set(other.addresses) & set(printer.addresses):
                own -= set(evidence_of(other, at.by))
        if own:
            return at
        skip = (*skip, at.by)
        at = _locate(index, printer, skip)
    return at


def _by_mac(printer: KnownPrinter, at: Located | None) -> Located | None:
    """Report the MAC as evidence if a printer has moved and its device has the learned MAC.

    The MAC is the strongest evidence that the printer has moved.
    """
    mac = printer.learned.mac_address if printer.learned else None
    if at is None or at.left is None or at.device is None or mac not in at.device.mac_addresses:
        return at
    return replace(at, by="MAC")


def _settle(printer: KnownPrinter, match: Match) -> Device | None:
    """Return the device of a match. If several devices match, each further criterion narrows them.

    Returns None if several devices remain.
    """
    devices, name = match.devices, (printer.dns_sd_name or "").lower()
    learned_mac = printer.learned.mac_address if printer.learned else None
    identity: tuple[Callable[[Device], bool], ...] = (
        lambda device: bool(device.observations),  # not only an entry of the neighbour table
        lambda device: learned_mac in device.mac_addresses,
        lambda device: bool(set(device.addresses) & set(printer.addresses)),
        lambda device: bool(name) and name in instance_names(device),
        # A host may announce the services of other hosts. A device's own answer is better evidence.
        lambda device: any(printer.uuid in each.answered_uuids for each in device.observations),
        lambda device: (
            not {printer.mac_address, mac_in_uuid(printer.uuid)}.isdisjoint(device.mac_addresses)
        ),
    )
    likeness: tuple[Callable[[Device], bool], ...] = (
        lambda device: any(each.contact == "open" for each in device.observations),
        lambda device: any(is_same_model(printer.make_model, each) for each in device.models),
    )
    # A printer that is set up by its address, but is not there, must not be matched with a device
    # only because that device has the same model or answers.
    for fits in identity if printer.addresses else (*identity, *likeness):
        if len(devices) > 1:
            devices = tuple(each for each in devices if fits(each)) or devices
    return devices[0] if len(devices) == 1 else None


def _address_left(printer: KnownPrinter, device: Device) -> str | None:
    """Return the address that a printer is set up with, if ``device`` does not have it; else None.

    A link-local IPv6 address is ignored: a device keeps it, even if the device was not seen there.
    """
    left = [each for each in printer.addresses if not each.lower().startswith("fe80:")]
    return left[0] if left and not set(left) & set(device.addresses) else None
