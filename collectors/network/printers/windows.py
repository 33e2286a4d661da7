"""Reads the printers of a Windows machine from the spooler, and their ports from the registry."""

import ipaddress
import re
from dataclasses import replace

from collectors.contract import Failure
from collectors.network.observations import KnownPrinter, KnownPrinters
from collectors.network.printers.device_uri import parse_device_uri
from collectors.network.printers.windows_registry import (
    RAW_PORT,
    SERIAL_PORTS,
    Registry,
    find_print_port,
    read_key,
)
from collectors.shared.addresses import join_host_port, split_host_port
from collectors.shared.host.spooler_windows import Spooler, SpoolerPrinter, read_spooler
from collectors.shared.text import clean_text

PRINTERS_MAX = 512
STEP = "printers: Windows spooler"

_WORK_OFFLINE = 0x400  # PRINTER_ATTRIBUTE_WORK_OFFLINE
_STATUS_REASONS = (  # PRINTER_STATUS_*, in the words of IPP's printer-state-reasons
    (0x00000001, "paused"),
    (0x00000002, "other-error"),
    (0x00000008, "media-jam"),
    (0x00000010, "media-empty"),
    (0x00000040, "media-needed"),
    (0x00000080, "offline-report"),
    (0x00000800, "output-area-full"),
    (0x00001000, "offline-report"),
    (0x00020000, "toner-low"),
    (0x00040000, "toner-empty"),
    (0x00400000, "cover-open"),
)
_STOPPED = 0x00000001 | 0x00000080  # PRINTER_STATUS_PAUSED and PRINTER_STATUS_OFFLINE
_VIRTUAL = re.compile(
    r"(?i)(?:PORTPROMPT|FILE|NUL|XPSPORT|SHRFAX|OneNote|Microsoft|CPW\d+:)"
    r"|(?:AD_Port|RustDesk)"  # a printer redirected by AnyDesk or RustDesk
    r"|TS\d{3}$"  # a printer redirected by remote desktop
    r"|[^.\\]*PDF[^.\\]*$"  # the port monitors of PDF writers: FOXIT_PDF:, PDFCreator:
    r"|(?:[A-Z]:)?\\[^\\]|.*\\\*\.\w+$"  # the path of a file, or a pattern of file names
    r"|\\\\\.\\"  # a pipe to a program
)
_USB = re.compile(r"(?i)^(?:USB|TMUSB|DOT4_?)\d+")
_EPSON = re.compile(r"(?i)ESDPRT\d+:?$")
"""Matches all ports of Epson's port monitor. Most of them are USB ports."""

_NO_USB = re.compile(r"(?i)\b(?:COM\d*|LPT\d*|serial|parallel)\b")
"""Matches the name or driver of a printer that is not a USB printer."""

_SERIAL = re.compile(r"(?i)^(?:COM|LPT)(\d+):?$")
_IP_PORT = re.compile(r"^(?:IP_)?([\d.]+(?::\d+)?)(?:_\d+)?$")
_URL = re.compile(r"(?i)(?:https?|ipps?)://")


def read_windows_printers(
    spooler: Spooler = read_spooler, registry: Registry = read_key
) -> KnownPrinters:
    """Return the printers of the spooler. Never raises.

    If the spooler is stopped, the result has a failure.
    """
    try:
        spooler_printers = spooler()
    except OSError as error:
        cause = error.strerror or error
        reason = f"the print spooler does not answer ({cause}): start the service Print Spooler"
        return KnownPrinters(failures=(Failure(STEP, reason),))
    printers = (_printer(printer, registry) for printer in spooler_printers[:PRINTERS_MAX])
    left_out = len(spooler_printers) - PRINTERS_MAX
    return KnownPrinters(
        printers=tuple(printer for printer in printers if printer is not None),
        limitations=(f"printers of the spooler left out: {left_out}",) if left_out > 0 else (),
    )


def _printer(entry: SpoolerPrinter, registry: Registry) -> KnownPrinter | None:
    """Convert a printer of the spooler.

    Returns None if it prints to a file, to a program or over a remote-desktop connection.
    """
    # A printer pool lists its ports, separated by commas. Only the first one is examined.
    port_name = entry.port_name.split(",")[0].strip()
    if not port_name or _VIRTUAL.match(port_name):
        return None
    name = clean_text(entry.name)
    base = KnownPrinter(
        id=f"windows:{name[:255]}",
        name=name,
        transport="network",
        source="windows",
        make_model=clean_text(entry.driver_name) or None,
        is_queue_stopped=bool(entry.status & _STOPPED or entry.attributes & _WORK_OFFLINE),
        state_reasons=_reasons(entry),
    )
    return _with_destination(base, port_name, registry)


def _with_destination(printer: KnownPrinter, port_name: str, registry: Registry) -> KnownPrinter:
    if printer.name.startswith("\\\\"):
        # A connection to a printer of another machine. The port belongs to that machine.
        return _shared_printer(printer, printer.name)
    text = f"{printer.name} {printer.make_model}"
    if _USB.match(port_name) or (_EPSON.match(port_name) and not _NO_USB.search(text)):
        return replace(printer, transport="usb", address=clean_text(port_name))
    if _EPSON.match(port_name):
        return replace(printer, transport="serial", address=clean_text(port_name))
    if serial := _SERIAL.match(port_name):
        is_com = port_name.upper().startswith("COM")
        path = f"COM{serial[1]}" if is_com else clean_text(port_name)
        present = _has_serial_port(registry, path) if is_com else None
        return replace(printer, transport="serial", address=path, present=present)
    if port_name.startswith("\\\\"):
        return _shared_printer(printer, clean_text(port_name))
    return _with_network_port(printer, port_name, registry)


def _shared_printer(printer: KnownPrinter, share: str) -> KnownPrinter:
    """Add the destination of a printer that another machine shares as ``\\\\machine\\name``."""
    return replace(printer, address=share, host=share.strip("\\").split("\\")[0])


def _with_network_port(printer: KnownPrinter, port_name: str, registry: Registry) -> KnownPrinter:
    port = find_print_port(registry, port_name)
    if port is not None:
        return replace(
            printer,
            host=port.host,
            port=port.port,
            queue=port.queue,
            uuid=port.uuid,
            is_on_wsd_port=port.is_wsd,
            address=join_host_port(port.host, port.port) if port.host else None,
        )
    if _URL.match(port_name):
        return _internet_printer(printer, port_name)
    host, number = _literal_address(port_name)
    if host is None:
        return replace(printer, address=clean_text(port_name))
    return replace(printer, host=host, port=number, address=f"{host}:{number}")


def _internet_printer(printer: KnownPrinter, url: str) -> KnownPrinter:
    """Add the destination from a port whose name is a URL, as in Windows' Internet Printing."""
    device = parse_device_uri(url)
    if device.host is None:
        return replace(printer, address=None)
    address = join_host_port(device.host, device.port)
    return replace(printer, host=device.host, port=device.port, queue=device.queue, address=address)


def _literal_address(port_name: str) -> tuple[str | None, int]:
    """Parse the address in the name of a port: ``IP_192.168.1.50``, ``192.168.1.50:9100``."""
    match = _IP_PORT.match(port_name)
    host, number = split_host_port(match[1]) if match else (None, None)
    try:
        return str(ipaddress.IPv4Address(host or "")), number or RAW_PORT
    except ValueError:
        return None, RAW_PORT


def _has_serial_port(registry: Registry, path: str) -> bool | None:
    values = registry(SERIAL_PORTS)
    return None if values is None else path in values.values()


def _reasons(entry: SpoolerPrinter) -> tuple[str, ...]:
    reasons = [word for bit, word in _STATUS_REASONS if entry.status & bit]
    if entry.attributes & _WORK_OFFLINE:
        reasons.append("offline-report")
    return tuple(dict.fromkeys(reasons))
