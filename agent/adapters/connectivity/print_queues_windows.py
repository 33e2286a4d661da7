"""Reads the state of the local print queues from the spooler of Windows."""

from collections.abc import Sequence
from typing import Final

from agent.rules.connectivity.local_faults import LocalState
from agent.wire.controls import without_controls
from collectors.shared.host.spooler_windows import LOCAL, SpoolerPrinter, read_spooler

QUEUES_MAX: Final = 32
NAME_MAX: Final = 127
_BYTES_MAX: Final = 1 << 20  # a larger list of queues is not read
_FAULTS: Final = {
    0x00000001: "paused",
    0x00000002: "error",
    0x00000008: "paper jam",
    0x00000010: "out of paper",
    0x00000080: "offline",
    0x00001000: "not available",
    0x00040000: "out of toner",
    0x00100000: "needs an operator",
    0x00400000: "door open",
}
"""The bits of PRINTER_INFO_2.Status that stop a queue."""
_WORK_OFFLINE: Final = 0x400
"""The bit PRINTER_ATTRIBUTE_WORK_OFFLINE of PRINTER_INFO_2.Attributes."""


def read_queues() -> dict[str, LocalState] | None:
    """Return the state of each queue by name; None if the spooler does not answer."""
    try:
        return states_of(read_spooler(LOCAL, _BYTES_MAX))
    except OSError:
        return None


def states_of(printers: Sequence[SpoolerPrinter]) -> dict[str, LocalState]:
    """Return the states of the first `QUEUES_MAX` queues, by name."""
    states: dict[str, LocalState] = {}
    for each in printers[:QUEUES_MAX]:
        name = " ".join(without_controls(each.name).split())[:NAME_MAX]
        if name:
            states[name] = LocalState(fault_of(each.status, each.attributes))
    return states


def fault_of(status: int, attributes: int) -> str | None:
    """Return why a queue does not print; None if it can print."""
    faults = [text for bit, text in _FAULTS.items() if status & bit]
    if attributes & _WORK_OFFLINE and "offline" not in faults:
        faults.append("offline")
    return f"stopped ({', '.join(faults)})" if faults else None
