"""Reads the destination of a Windows print port from the registry.

The key of a Standard TCP/IP port contains its host. The key of a WSD port contains only the
printer's UUID. The address at which Windows last found that printer is in the key of the printer
below ``Enum``.
"""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from collectors.network.matching.identity import normal_uuid
from collectors.shared.text import clean_text

MONITORS = r"SYSTEM\CurrentControlSet\Control\Print\Monitors"
TCP_PORTS = MONITORS + r"\Standard TCP/IP Port\Ports"
WSD_PORTS = MONITORS + r"\WSD Port\Ports"
WSD_DEVICES = r"SYSTEM\CurrentControlSet\Enum\SWD\DAFWSDProvider"
SERIAL_PORTS = r"HARDWARE\DEVICEMAP\SERIALCOMM"

_LPR = 2  # Protocol: 1 is RAW, 2 is LPR
_LPD_PORT = 515
RAW_PORT = 9100
_URL_HOST = re.compile(r"https?://(?:\[(?P<v6>[0-9A-Fa-f:.]+)[^\]]*\]|(?P<host>[^:/\s]+))")
_VALUES_MAX = 256

RegistryValue = str | int | None
Registry = Callable[[str], Mapping[str, RegistryValue] | None]
"""Returns the strings and numbers of a key of HKEY_LOCAL_MACHINE. Returns None if the key does not
exist, or this user must not read it."""


@dataclass(frozen=True, slots=True)
class PrintPort:
    """The destination of a print port, from the settings of its port monitor."""

    host: str | None = None
    port: int | None = None
    queue: str | None = None
    uuid: str | None = None
    is_wsd: bool = False


def find_print_port(registry: Registry, name: str) -> PrintPort | None:
    """Return the destination of a TCP/IP or WSD port; None if the port is of another kind."""
    if "\\" in name:
        return None  # a printer that another machine shares: its name is not the name of a key
    tcp = registry(rf"{TCP_PORTS}\{name}")
    if tcp is not None:
        return _tcp_port(tcp)
    wsd = registry(rf"{WSD_PORTS}\{name}")
    return None if wsd is None else _wsd_port(registry, _text(wsd, "Printer UUID"))


def url_host(url: str | None) -> str | None:
    """Return the host of a WSD address such as ``http://192.168.1.61:80/WebServices/Device``."""
    match = _URL_HOST.match(url or "")
    return (match["v6"] or match["host"]) if match else None


def _tcp_port(values: Mapping[str, RegistryValue]) -> PrintPort:
    host = _text(values, "HostName") or _text(values, "IPAddress")
    is_lpr = values.get("Protocol") == _LPR
    number = values.get("PortNumber")
    default = _LPD_PORT if is_lpr else RAW_PORT
    return PrintPort(
        host=host,
        port=number if isinstance(number, int) and number > 0 and not is_lpr else default,
        queue=_text(values, "Queue") if is_lpr else None,
    )


def _wsd_port(registry: Registry, text: str | None) -> PrintPort:
    uuid = normal_uuid(text)
    for key in (text, f"urn:uuid:{uuid}", f"uuid:{uuid}"):
        device = registry(rf"{WSD_DEVICES}\{key}") if key and "\\" not in key else None
        if device is not None:
            host = url_host(_text(device, "LocationInformation"))
            return PrintPort(host=host, uuid=uuid, is_wsd=True)
    return PrintPort(uuid=uuid, is_wsd=True)


def _text(values: Mapping[str, RegistryValue], name: str) -> str | None:
    value = values.get(name)
    return (clean_text(value) or None) if isinstance(value, str) else None


def read_key(path: str) -> Mapping[str, RegistryValue] | None:
    """Read a key of this machine's registry; None on other systems."""
    if sys.platform == "win32":
        import winreg

        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
                count = min(winreg.QueryInfoKey(key)[1], _VALUES_MAX)
                entries = [winreg.EnumValue(key, index) for index in range(count)]
        except OSError:
            return None
        return {name: data for name, data, _ in entries if isinstance(data, str | int)}
    else:  # noqa: RET505 - type checkers need this form of a check of the platform
        return None
