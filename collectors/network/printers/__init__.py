"""Reads the printers that are set up on this machine, from all sources of its platform."""

import sys
import time
from collections.abc import Sequence

from collectors.contract import ConfiguredPrinter
from collectors.network.observations import KnownPrinters
from collectors.network.printers.configured import configured_printer
from collectors.network.printers.cups import read_cups_printers
from collectors.network.printers.host_names import with_literal_addresses
from collectors.network.printers.serial_ports import (
    is_port_present,
    read_serial_printers,
    with_serial,
)
from collectors.network.printers.usb import read_usb_printers, with_usb
from collectors.network.printers.windows import read_windows_printers

SPOOLER_TIME_S = 3.0


def read_known_printers(
    configured: Sequence[ConfiguredPrinter], deadline_s: float, *, platform: str = sys.platform
) -> KnownPrinters:
    """Return configured printers first, then queues, then devices without a queue.

    Nothing is sent to the network: host names are resolved later by ``resolve_hosts``.
    ``deadline_s`` is a time of ``time.monotonic()``. Never raises. If a source fails, the result
    has a failure for it.
    """
    spooler_deadline_s = min(deadline_s, time.monotonic() + SPOOLER_TIME_S)
    if platform == "win32":
        queues = read_windows_printers()
    else:
        queues = read_cups_printers(spooler_deadline_s)
    printers = (*map(configured_printer, configured), *queues.printers)
    printers = with_usb(printers, read_usb_printers())
    printers = with_serial(
        printers, read_serial_printers(), is_port_present if platform != "win32" else None
    )
    return KnownPrinters(with_literal_addresses(printers), queues.failures, queues.limitations)
