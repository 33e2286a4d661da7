"""What a host on the network map most likely is, judged by what it offers and how it was found.

Evidence in this order: this machine and the gateway are known; a matched printer is a printer;
then announced services (DNS-SD types, RFC 6763), then open ports, then the host's name.
"""

import re
from typing import Final, Literal, get_args

from agent.wire.payloads.network import MapHost

HostKind = Literal["machine", "router", "printer", "screen", "camera", "server", "phone", "unknown"]
HOST_KINDS: Final[tuple[HostKind, ...]] = get_args(HostKind)

KIND_IN_WORDS: Final[dict[HostKind, str]] = {
    "machine": "this machine",
    "router": "router",
    "printer": "printer",
    "screen": "screen or kiosk",
    "camera": "camera",
    "server": "server or PC",
    "phone": "phone or tablet",
    "unknown": "unknown",
}

_TYPES: Final[tuple[tuple[HostKind, frozenset[str]], ...]] = (
    ("printer", frozenset({"_ipp", "_ipps", "_printer", "_pdl-datastream", "_scanner", "_uscan"})),
    ("phone", frozenset({"_apple-mobdev2", "_remotepairing", "_androidwear"})),
    ("screen", frozenset({"_googlecast", "_airplay", "_androidtvremote2", "_raop", "_spotify"})),
    ("camera", frozenset({"_rtsp", "_axis-video"})),
    ("server", frozenset({"_smb", "_workstation", "_ssh", "_sftp-ssh", "_afpovertcp", "_nfs"})),
)
_PORTS: Final[tuple[tuple[HostKind, frozenset[int]], ...]] = (
    ("printer", frozenset({515, 631, *range(9100, 9117)})),
    ("screen", frozenset({8008, 8009, 7000})),
    ("camera", frozenset({554})),
    ("server", frozenset({22, 139, 445, 3389, 53, 80, 443, 8043, 8080, 8443})),
)
_NAMES: Final[tuple[tuple[HostKind, re.Pattern[str]], ...]] = (
    ("phone", re.compile(r"iphone|ipad|android|galaxy|pixel|phone|tablet", re.IGNORECASE)),
    ("printer", re.compile(r"^(brn|brw|npi|epson|hp[0-9a-f]{6})|print", re.IGNORECASE)),
    ("screen", re.compile(r"kiosk|chromecast|display|signage|-tv\b|^tv-", re.IGNORECASE)),
    ("camera", re.compile(r"\bcam(era)?\b|ipcam", re.IGNORECASE)),
)


def kind_of(host: MapHost, *, is_matched: bool, is_gateway: bool) -> HostKind:
    """Judge what ``host`` is; ``is_matched`` says that a printer was matched to it."""
    if "local" in host.sources:
        return "machine"
    if is_gateway or "gateway" in host.sources:
        return "router"
    if is_matched:
        return "printer"
    return _by_type(host) or _by_port(host) or _by_name(host.hostname or "") or "unknown"


def _by_type(host: MapHost) -> HostKind | None:
    announced = {(service.type or "").partition(".")[0].lower() for service in host.services}
    return next((kind for kind, types in _TYPES if announced & types), None)


def _by_port(host: MapHost) -> HostKind | None:
    ports = {service.port for service in host.services if service.reachable is not False}
    by_name = _by_name(host.hostname or "")
    found = next((kind for kind, known in _PORTS if ports & known), None)
    return by_name if found == "server" and by_name else found


def _by_name(name: str) -> HostKind | None:
    return next((kind for kind, pattern in _NAMES if pattern.search(name)), None)
