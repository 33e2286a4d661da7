"""Suggests devices that may be a printer that was not found.

A hint never changes the status of the printer.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from collectors.network.matching.devices import BY, IDENTITIES, NAMES, By, Device, DeviceIndex
from collectors.network.matching.models import plain_model
from collectors.network.matching.reasons import listed
from collectors.network.matching.verdicts import difference, is_surely
from collectors.network.observations import KnownPrinter

HINTS_MAX = 4
"""If more devices than this have the printer's model, no hint is given."""


class Hints:
    """Searches for hints among the devices that no queue uses (``is_free``)."""

    def __init__(self, index: DeviceIndex, is_free: Callable[[Device], bool]) -> None:
        self._index = index
        self._is_free = is_free

    def about(self, printer: KnownPrinter) -> str | None:
        for search in (self._renamed, self._alike, self._of_its_name, self._of_its_model):
            if hint := search(printer):
                return hint
        return None if plain_model(printer.make_model) else self._only_other()

    def _renamed(self, printer: KnownPrinter) -> str | None:
        """Find the device that had the printer's host name when the printer last answered."""
        if printer.learned is None or printer.addresses:
            return None
        learned = replace(printer, addresses=(printer.learned.address,))
        device, _ = self._find_free(learned, IDENTITIES)
        if device is None or not is_surely(printer.learned, device):
            return None
        where = device.address
        return f"the device that had this name when it last answered is at {where}: was it renamed?"

    def _alike(self, printer: KnownPrinter) -> str | None:
        """Find a device with one identity of the printer. One identity is not enough for a
        match."""
        device, by = self._find_free(printer, IDENTITIES)
        if device is None or difference(replace(printer, learned=None), device, None, by):
            return None
        return f"a device with its {by} was seen at {device.address}: it may be the same printer"

    def _of_its_name(self, printer: KnownPrinter) -> str | None:
        device, _ = self._find_free(printer, NAMES)
        if device is None or difference(printer, device, None, "name"):
            return None
        return f"a device of its name was seen at {device.address}: it may be the same printer"

    def _of_its_model(self, printer: KnownPrinter) -> str | None:
        same = self._free_addresses(self._index.of_model(printer.make_model))
        return f"the same model was seen at {listed(same)}" if 0 < len(same) <= HINTS_MAX else None

    def _only_other(self) -> str | None:
        """Find a printer that no queue uses, if there is exactly one."""
        free = self._free_addresses(self._index.printers())
        if len(free) != 1:
            return None
        return f"a printer that no queue of this machine uses was seen at {free[0]}"

    def _find_free(self, printer: KnownPrinter, kinds: Collection[By]) -> tuple[Device | None, By]:
        """Return the device that matches by evidence of these ``kinds``, and the kind that matched.

        Returns (None, "name") if there is no such device, if there are several, or if a queue uses
        it.
        """
        match = self._index.find(printer, [by for by in BY if by not in kinds])
        if match is None or len(match.devices) != 1 or not self._is_free(match.devices[0]):
            return None, "name"
        return match.devices[0], match.by

    def _free_addresses(self, devices: Iterable[Device]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.address for each in devices if self._is_free(each)))
