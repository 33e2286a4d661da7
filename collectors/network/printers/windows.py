"""Reads the printers of a Windows machine from the spooler, and their ports from the registry.

The key of a Standard TCP/IP port contains its host. The key of a WSD port contains only the
printer's UUID. The address at which Windows last found that printer is in the key of the printer
below ``Enum``.
"""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace

from collectors.contract import Failure
from collectors.network.matching.identity import normal_uuid
from collectors.network.observations import KnownPrinter, KnownPrinters
from collectors.network.printers.device_uri import parse_device_uri
from collectors.shared.addresses import ipv4_host, join_host_port, split_host_port
from collectors.shared.host.spooler_windows import Spooler, SpoolerPrinter, read_spooler
from collectors.shared.text import clean_text

PRINTERS_MAX = 512
STEP = "printers: Windows spooler"

MONITORS = r"SYSTEM\CurrentControlSet\Control\Print\Monitors"
TCP_PORTS = MONITORS + r"\Standard TCP/IP Port\Ports"
WSD_PORTS = MONITORS + r"\WSD Port\Ports"
WSD_DEVICES = r"SYSTEM\CurrentControlSet\Enum\SWD\DAFWSDProvider"
SERIAL_PORTS = r"HARDWARE\DEVICEMAP\SERIALCOMM"

_LPR = 2  # the value Protocol of a port: 1 is RAW, 2 is LPR
_LPD_PORT = 515
RAW_PORT = 9100
_URL_HOST = re.compile(r"https?://(?:\[(?P<v6>[0-9A-Fa-f:.]+)[^\]]*\]|(?P<host>[^:/\s]+))")
_VALUES_MAX = 256

RegistryValue = str | int | None
Registry = Callable[[str], Mapping[str, RegistryValue] | None]
"""Returns the strings and numbers of a key of HKEY_LOCAL_MACHINE. Returns None if the key does not
exist, or if this user is not permitted to read it."""

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


def read_key(path: str) -> Mapping[str, RegistryValue] | None:
    """Read a key of this machine's registry (`Registry`). Returns None on other systems."""
    if sys.platform == "win32":
        import winreg

        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
                count = min(winreg.QueryInfoKey(key)[1], _VALUES_MAX)
                entries = [winreg.EnumValue(key, index) for index in range(count)]
        except OSError:
            return None
        return {name: data for name, data, _ in entries if isinstance(data, str | int)}
    else:  # noqa: RET505 - with `else`, type checkers skip this line on Windows
        return None


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
        ports = registry(SERIAL_PORTS) if is_com else None
        present = None if ports is None else path in ports.values()
        return replace(printer, transport="serial", address=path, present=present)
    if port_name.startswith("\\\\"):
        return _shared_printer(printer, clean_text(port_name))
    return _with_network_port(printer, port_name, registry)


def _shared_printer(printer: KnownPrinter, share: str) -> KnownPrinter:
    """Add the destination of a printer that another machine shares as ``\\\\machine\\name``."""
    return replace(printer, address=share, host=share.strip("\\").split("\\")[0])


def _with_network_port(printer: KnownPrinter, port_name: str, registry: Registry) -> KnownPrinter:
    # The name of a key cannot contain a backslash, because it separates the keys of a path.
    is_key = "\\" not in port_name
    if is_key and (tcp := registry(rf"{TCP_PORTS}\{port_name}")) is not None:
        return _with_tcp_port(printer, tcp)
    if is_key and (wsd := registry(rf"{WSD_PORTS}\{port_name}")) is not None:
        return _with_wsd_port(printer, registry, _text(wsd, "Printer UUID"))
    if _URL.match(port_name):
        return _internet_printer(printer, port_name)
    host, number = _literal_address(port_name)
    if host is None:
        return replace(printer, address=clean_text(port_name))
    return replace(printer, host=host, port=number, address=f"{host}:{number}")


def _with_tcp_port(printer: KnownPrinter, values: Mapping[str, RegistryValue]) -> KnownPrinter:
    host = _text(values, "HostName") or _text(values, "IPAddress")
    is_lpr, number = values.get("Protocol") == _LPR, values.get("PortNumber")
    port = _LPD_PORT if is_lpr else RAW_PORT
    if isinstance(number, int) and number > 0 and not is_lpr:
        port = number
    queue = _text(values, "Queue") if is_lpr else None
    address = join_host_port(host, port) if host else None
    return replace(printer, host=host, port=port, queue=queue, address=address)


def _with_wsd_port(printer: KnownPrinter, registry: Registry, text: str | None) -> KnownPrinter:
    uuid = normal_uuid(text)
    host = None
    for key in (text, f"urn:uuid:{uuid}", f"uuid:{uuid}"):
        device = registry(rf"{WSD_DEVICES}\{key}") if key and "\\" not in key else None
        if device is not None:
            host = url_host(_text(device, "LocationInformation"))
            break
    address = join_host_port(host, None) if host else None
    return replace(printer, host=host, uuid=uuid, is_on_wsd_port=True, address=address)


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
    address = match[1] if match else ""
    return ipv4_host(address), split_host_port(address)[1] or RAW_PORT


def _reasons(entry: SpoolerPrinter) -> tuple[str, ...]:
    reasons = [word for bit, word in _STATUS_REASONS if entry.status & bit]
    if entry.attributes & _WORK_OFFLINE:
        reasons.append("offline-report")
    return tuple(dict.fromkeys(reasons))


def url_host(url: str | None) -> str | None:
    """Return the host of a WSD address such as ``http://192.168.1.61:80/WebServices/Device``."""
    match = _URL_HOST.match(url or "")
    return (match["v6"] or match["host"]) if match else None


def _text(values: Mapping[str, RegistryValue], name: str) -> str | None:
    value = values.get(name)
    return (clean_text(value) or None) if isinstance(value, str) else None
