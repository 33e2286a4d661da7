"""Parses the device URI of a print queue, which names the device that the queue prints to.

See cups(7), "Backends and Filters".
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from collectors.contract import TEXT_MAX, Transport
from collectors.network.matching.identity import normal_uuid
from collectors.network.printers.userinfo import without_userinfo
from collectors.shared.addresses import is_loopback, normal_mac
from collectors.shared.text import clean_text

IPP_OVER_USB_PORT = 60000
"""The first port at which the ipp-usb daemon provides USB printers on the loopback interface."""

_IPP_OVER_USB_PORTS = range(IPP_OVER_USB_PORT, 65536)
_DEFAULT_PORTS = {"ipp": 631, "ipps": 631, "http": 80, "https": 443, "socket": 9100, "lpd": 515}
_SERVICE_NAME = re.compile(r"(.+)\.(_[^.]+\._(?:tcp|udp))\.?", re.DOTALL)
_DNS_ESCAPE = re.compile(r"\\(\d{3}|.)", re.DOTALL)  # RFC 1035, section 5.1
_USB_NAME = re.compile(r"(.+?)[ _]\(?USB(?:[ _]\d+)?\)?", re.DOTALL)
"""Matches the names of the printers that ipp-usb provides on the loopback interface."""

_SCOPED = re.compile(r"(?i)v1\.(fe80:[0-9a-f:]+)\+(.+)")
"""Matches an IPv6 address with its interface, as CUPS writes it: ``[v1.fe80::1+eth0]``."""

_NO_DEVICE = frozenset({"cups-pdf", "cups-brf", "pdf", "boomaga", "class"})
"""Schemes of backends that write a file, show a preview or pass jobs to other queues."""

Kind = Literal["network", "dns-sd", "usb", "bluetooth", "serial", "virtual", "unknown"]


@dataclass(frozen=True, slots=True)
class DeviceUri:
    """The content of a device URI.

    The kind is "virtual" if the queue prints to no device, for example to a PDF file. ``queue`` is
    the path or the name of the queue at ``host``. ``path`` is a device path. ``model`` is given for
    USB and HP URIs. ``is_usb`` is True if a URI of the kind "unknown" names a USB device.
    """

    scheme: str
    kind: Kind
    host: str | None = None
    port: int | None = None
    queue: str | None = None
    path: str | None = None
    uuid: str | None = None
    serial: str | None = None
    mac_address: str | None = None
    dns_sd_name: str | None = None
    dns_sd_type: str | None = None
    model: str | None = None
    is_usb: bool = False

    @property
    def transport(self) -> Transport:
        if self.kind == "usb" or (self.kind == "unknown" and self.is_usb):
            return "usb"
        if self.kind == "bluetooth":
            return "ble"
        return "serial" if self.kind == "serial" else "network"


def parse_device_uri(uri: str) -> DeviceUri:
    """Parse a device URI. Never raises: a URI of an unknown form has the kind "unknown"."""
    try:
        parts = urlsplit(without_userinfo(uri[:TEXT_MAX]))
        port = parts.port
    except ValueError:
        return DeviceUri(scheme="", kind="unknown")
    scheme = parts.scheme.lower()
    if scheme in _DEFAULT_PORTS:
        return _network(parts, scheme, port)
    return _READERS.get(scheme, _other_scheme)(parts, scheme)


def _network(parts: SplitResult, scheme: str, port: int | None) -> DeviceUri:
    if "._tcp" in parts.netloc.lower():
        return _dns_sd(parts, scheme)  # ipps://Kitchen._ipps._tcp.local/
    host = _clean(parts.hostname)
    if host is None:
        return DeviceUri(scheme=scheme, kind="unknown")
    if match := _SCOPED.fullmatch(host):
        host = f"{match[1]}%{match[2]}"
    if is_loopback(host) and port in _IPP_OVER_USB_PORTS:
        return DeviceUri(scheme=scheme, kind="usb", host=host, port=port)
    return DeviceUri(
        scheme=scheme,
        kind="network",
        host=host,
        port=port or _DEFAULT_PORTS[scheme],
        queue=_clean(unquote(parts.path).strip("/")),
        uuid=normal_uuid(_query(parts, "uuid")),
        serial=_query(parts, "serial"),
    )


def _dns_sd(parts: SplitResult, scheme: str) -> DeviceUri:
    service_name = _DNS_ESCAPE.sub(_unescape, unquote(parts.netloc.rpartition("@")[2]))
    match = _SERVICE_NAME.match(service_name)
    device = DeviceUri(
        scheme=scheme,
        kind="dns-sd",
        uuid=normal_uuid(_query(parts, "uuid")),
        dns_sd_name=_clean(match[1] if match else service_name),
        dns_sd_type=_clean(match[2].lower()) if match else None,
        queue=_clean(unquote(parts.path).strip("/")),
    )
    is_over_usb = scheme == "ippusb" or (device.dns_sd_name or "").endswith(")")
    return _over_usb(device) if is_over_usb else device


def _over_usb(device: DeviceUri) -> DeviceUri:
    """Set the kind "usb" if ipp-usb provides the device. Any other device is returned unchanged."""
    match = _USB_NAME.fullmatch(device.dns_sd_name or "")
    if match is None and device.scheme != "ippusb":
        return device
    name = match[1] if match else device.dns_sd_name
    return replace(device, kind="usb", model=_clean((name or "").replace("_", " ")))


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code)) if len(code) == 3 and int(code) < 256 else code


def _usb(parts: SplitResult, scheme: str) -> DeviceUri:
    """Parse ``usb://Maker/Model?serial=X`` (CUPS) or ``usb:/dev/usb/lp0`` (older)."""
    maker, model = unquote(parts.netloc), unquote(parts.path).strip("/")
    is_path = not maker and parts.path.startswith("/dev/")
    return DeviceUri(
        scheme=scheme,
        kind="usb",
        path=_clean(parts.path) if is_path else None,
        serial=_query(parts, "serial"),
        model=None if is_path else _clean(f"{maker} {model}"),
    )


def _hp(parts: SplitResult, scheme: str) -> DeviceUri:
    """Parse ``hp:/net/Model?ip=A`` or ``hp:/usb/Model?serial=X``.

    The network form may have ``hostname=H`` or ``zc=NAME`` instead of ``ip=A``. HPLIP resolves the
    value of ``zc`` as an mDNS host name. The value may have been derived from the DNS-SD name, so
    it is also returned as ``dns_sd_name``.
    """
    bus, _, model = unquote(parts.path).strip("/").partition("/")
    zeroconf = _query(parts, "zc")
    name = f"{zeroconf}.local" if zeroconf and "." not in zeroconf else zeroconf
    host = _query(parts, "ip") or _query(parts, "hostname") or name
    kinds: dict[str, Kind] = {"usb": "usb", "net": "network"}
    kind: Kind = kinds.get(bus, "unknown")
    is_network = kind == "network"
    return DeviceUri(
        scheme=scheme,
        kind=kind,
        host=host if is_network else None,
        port=_DEFAULT_PORTS["socket"] if is_network else None,
        serial=_query(parts, "serial"),
        dns_sd_name=zeroconf if is_network else None,
        model=_clean(model.replace("_", " ")),
    )


def _bluetooth(parts: SplitResult, scheme: str) -> DeviceUri:
    address = parts.netloc or parts.path.strip("/")
    return DeviceUri(scheme=scheme, kind="bluetooth", mac_address=normal_mac(address))


def _local_port(parts: SplitResult, scheme: str) -> DeviceUri:
    """Parse ``serial:/dev/ttyUSB0?baud=9600+bits=8`` or ``parallel:/dev/lp0``."""
    return DeviceUri(scheme=scheme, kind="serial", path=_clean(parts.path.split("+")[0]))


def _other_scheme(parts: SplitResult, scheme: str) -> DeviceUri:
    is_file = scheme in {"", "file"} and parts.path.startswith("/")
    is_device = parts.path.startswith("/dev/") and parts.path != "/dev/null"
    if scheme in _NO_DEVICE or (is_file and not is_device):
        return DeviceUri(scheme=scheme, kind="virtual")
    path = _clean(parts.path) if is_file else None
    host = None if is_file else _clean(parts.hostname)
    is_usb = "usb" in scheme or "/dev/usb/" in parts.path or _query(parts, "port") == "usb"
    return DeviceUri(scheme=scheme, kind="unknown", host=host, path=path, is_usb=is_usb)


def _implicit_class(parts: SplitResult, scheme: str) -> DeviceUri:
    """Parse ``implicitclass://QUEUE/``.

    cups-browsed names this queue after the DNS-SD instance, with "_" for special characters.
    """
    name = re.sub(r"[^\w.-]+", "_", unquote(parts.netloc or parts.path.strip("/"))).strip("_")
    device = DeviceUri(scheme=scheme, kind="dns-sd", dns_sd_name=_clean(name))
    return _over_usb(device) if re.search(r"_USB(?:_\d+)?$", name) else device


def _query(parts: SplitResult, name: str) -> str | None:
    try:
        values = parse_qs(parts.query, max_num_fields=64).get(name, [])
    except ValueError:
        return None
    return _clean(values[0]) if values else None


def _clean(text: str | None) -> str | None:
    return (clean_text(text) or None) if text else None


_READERS: dict[str, Callable[[SplitResult, str], DeviceUri]] = {
    "dnssd": _dns_sd,
    "mdns": _dns_sd,
    "ippusb": _dns_sd,
    "usb": _usb,
    "hp": _hp,
    "hpfax": _hp,
    "bluetooth": _bluetooth,
    "serial": _local_port,
    "parallel": _local_port,
    "implicitclass": _implicit_class,
}
