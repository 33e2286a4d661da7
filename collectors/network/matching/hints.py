"""What a printer that was not found may be: pointed at, never judged by."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from collectors.network.matching.devices import BY, IDENTITIES, NAMES, Device, DeviceIndex
from collectors.network.matching.models import plain_model
from collectors.network.matching.reasons import listed
from collectors.network.matching.verdicts import difference, is_surely
from collectors.network.observations import KnownPrinter

HINTS_MAX = 4
"""More devices of one model than this tell nobody which one is meant."""


class Hints:
    """Looks among the devices that ``is_free`` tells to be no other queue's, and in reach."""

    def __init__(self, index: DeviceIndex, is_free: Callable[[Device], bool]) -> None:
        self._index = index
        self._is_free = is_free

    def about(self, printer: KnownPrinter) -> str | None:
        for look in (self._renamed, self._alike, self._of_its_name, self._of_its_model):
            if said := look(printer):
                return said
        return None if plain_model(printer.make_model) else self._only_other()

    def _renamed(self, printer: KnownPrinter) -> str | None:
        """Tell where the device is that had the name a printer is set up with."""
        if printer.learned is None or printer.addresses:
            return None
        learned = replace(printer, addresses=(printer.learned.address,))
        found = self._index.find(learned, [by for by in BY if by not in IDENTITIES])
        device = self._only_free(found.devices) if found is not None else None
        if device is None or not is_surely(printer.learned, device):
            return None
        where = device.address
        return f"the device that had it when it last answered is at {where}: was it renamed?"

    def _alike(self, printer: KnownPrinter) -> str | None:
        """Tell of the device with one thing that the printer had, which is not enough to be it."""
        found = self._index.find(printer, [by for by in BY if by not in IDENTITIES])
        device = self._only_free(found.devices) if found is not None else None
        if found is None or device is None:
            return None
        if difference(replace(printer, learned=None), device, None, found.by):
            return None
        where = device.address
        return f"a device with its {found.by} was seen at {where}: it may be the same printer"

    def _of_its_name(self, printer: KnownPrinter) -> str | None:
        found = self._index.find(printer, [by for by in BY if by not in NAMES])
        device = self._only_free(found.devices) if found is not None else None
        if device is None or difference(printer, device, None, "name"):
            return None
        return f"a device of its name was seen at {device.address}: it may be the same printer"

    def _of_its_model(self, printer: KnownPrinter) -> str | None:
        same = self._addresses(self._index.of_model(printer.make_model))
        if not 0 < len(same) <= HINTS_MAX:
            return None
        return f"the same model was seen at {listed(same)}"

    def _only_other(self) -> str | None:
        """Tell of a printer that no queue uses, if it is the only one."""
        free = self._addresses(self._index.printers())
        if len(free) != 1:
            return None
        return f"a printer that no queue of this machine uses was seen at {free[0]}"

    def _only_free(self, devices: Iterable[Device]) -> Device | None:
        """Return the only one of the devices, if it is free."""
        found = tuple(devices)
        return found[0] if len(found) == 1 and self._is_free(found[0]) else None

    def _addresses(self, devices: Iterable[Device]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.address for each in devices if self._is_free(each)))
