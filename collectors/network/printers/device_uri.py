"""Device URIs of a print spooler: what a queue prints to (cups(7), "Backends and Filters")."""

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from collectors.contract import TEXT_MAX, Transport
from collectors.network.matching.identity import normal_mac, normal_uuid
from collectors.network.printers.userinfo import without_userinfo
from collectors.shared.text import clean_text

IPP_OVER_USB_PORT = 60000
"""Where the ipp-usb daemon shows a USB printer on the loopback interface, counting up."""

_IPP_OVER_USB_PORTS = range(IPP_OVER_USB_PORT, IPP_OVER_USB_PORT + 536)
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_DEFAULT_PORTS = {
    "ipp": 631,
    "ipps": 631,
    "http": 80,
    "https": 443,
    "socket": 9100,
    "lpd": 515,
    "hp": None,
}
_DNS_SD = frozenset({"dnssd", "mdns"})
_SERVICE_NAME = re.compile(r"(.+)\.(_[^.]+\._(?:tcp|udp))\.?", re.DOTALL)
_USB = frozenset({"usb", "ippusb"})

Kind = Literal["network", "dns-sd", "usb", "bluetooth", "serial", "virtual", "unknown"]


@dataclass(frozen=True, slots=True)
class DeviceUri:
    """What a device URI tells. ``path`` is a device path; ``model`` is from USB and HP URIs."""

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

    @property
    def transport(self) -> Transport:
        if self.kind == "usb":
            return "usb"
        if self.kind == "bluetooth":
            return "ble"
        return "serial" if self.kind == "serial" else "network"


def parse_device_uri(uri: str) -> DeviceUri:
    """Parse a device URI. Never raises: what has no known form is of the kind "unknown"."""
    try:
        parts = urlsplit(without_userinfo(uri[:TEXT_MAX]))
        port = parts.port
    except ValueError:
        return DeviceUri(scheme="", kind="unknown")
    scheme = parts.scheme.lower()
    if scheme in _DNS_SD:
        return _dns_sd(parts, scheme)
    if scheme in _USB:
        return _usb(parts, scheme)
    if scheme == "hp":
        return _hp(parts)
    if scheme in _DEFAULT_PORTS:
        return _network(parts, scheme, port)
    return _other(parts, scheme)


def _network(parts: SplitResult, scheme: str, port: int | None) -> DeviceUri:
    if "._tcp" in parts.netloc.lower():
        return _dns_sd(parts, scheme)  # ipps://Kitchen._ipps._tcp.local/
    host = _clean(parts.hostname)
    if host is None:
        return DeviceUri(scheme=scheme, kind="unknown")
    if host in _LOOPBACK and port in _IPP_OVER_USB_PORTS:
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
    full = unquote(parts.netloc.rpartition("@")[2])
    found = _SERVICE_NAME.match(full)
    return DeviceUri(
        scheme=scheme,
        kind="dns-sd",
        uuid=normal_uuid(_query(parts, "uuid")),
        dns_sd_name=_clean(found[1] if found else full),
        dns_sd_type=_clean(found[2] if found else None),
        queue=_clean(unquote(parts.path).strip("/")),
    )


def _usb(parts: SplitResult, scheme: str) -> DeviceUri:
    """``usb://Maker/Model?serial=X`` (CUPS), ``usb:/dev/usb/lp0`` (older)."""
    maker, model = unquote(parts.netloc), unquote(parts.path).strip("/")
    is_path = not maker and parts.path.startswith("/dev/")
    return DeviceUri(
        scheme=scheme,
        kind="usb",
        path=_clean(parts.path) if is_path else None,
        serial=_query(parts, "serial"),
        model=None if is_path else _clean(f"{maker} {model}"),
    )


def _hp(parts: SplitResult) -> DeviceUri:
    """``hp:/net/Model?ip=A``, ``?hostname=H``, ``?zc=NAME`` or ``hp:/usb/Model?serial=X``."""
    bus, _, model = unquote(parts.path).strip("/").partition("/")
    host = _query(parts, "ip") or _query(parts, "hostname") or _query(parts, "zc")
    is_usb = bus == "usb"
    return DeviceUri(
        scheme="hp",
        kind="usb" if is_usb else "network",
        host=None if is_usb else host,
        port=None if is_usb else 9100,
        serial=_query(parts, "serial"),
        model=_clean(model.replace("_", " ")),
    )


def _other(parts: SplitResult, scheme: str) -> DeviceUri:
    if scheme == "bluetooth":
        address = parts.netloc or parts.path.strip("/")
        return DeviceUri(scheme=scheme, kind="bluetooth", mac_address=normal_mac(address))
    if scheme in {"serial", "parallel"}:
        return DeviceUri(scheme=scheme, kind="serial", path=_clean(parts.path.split("+")[0]))
    if scheme == "implicitclass":
        # cups-browsed names its queue after the DNS-SD instance, with "_" for what is special.
        return DeviceUri(scheme=scheme, kind="dns-sd", dns_sd_name=_clean(parts.netloc))
    if scheme in {"file", "cups-pdf", "cups-brf", "beh", "smb", "class"}:
        return DeviceUri(scheme=scheme, kind="virtual", host=_clean(parts.hostname))
    return DeviceUri(scheme=scheme, kind="unknown")


def _query(parts: SplitResult, name: str) -> str | None:
    try:
        values = parse_qs(parts.query, max_num_fields=64).get(name, [])
    except ValueError:
        return None
    return _clean(values[0]) if values else None


def _clean(text: str | None) -> str | None:
    return (clean_text(text) or None) if text else None
