"""What a host on the network map most likely is, judged by what it offers and how it was found.

Evidence in this order: this machine and the gateway are known; whoever shares the queue of a
printer that is elsewhere is a computer; a matched printer is a printer; then the role and model
a device tells (``X (speaker)``), announced services (DNS-SD types, RFC 6763), what its web page
is called, open ports, and the host's name. A web server alone tells nothing: everything has one.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal, get_args

from agent.wire.payloads.network import Endpoint, MapHost

HostKind = Literal[
    "machine",
    "router",
    "printer",
    "screen",
    "speaker",
    "camera",
    "lighting",
    "home",
    "server",
    "phone",
    "network",
    "unknown",
]
HOST_KINDS: Final[tuple[HostKind, ...]] = get_args(HostKind)

KIND_IN_WORDS: Final[dict[HostKind, str]] = {
    "machine": "this machine",
    "router": "router",
    "printer": "printer",
    "screen": "screen or kiosk",
    "speaker": "speaker",
    "camera": "camera",
    "lighting": "lighting",
    "home": "home device",
    "server": "server or PC",
    "phone": "phone or tablet",
    "network": "network device",
    "unknown": "unknown",
}

_SHARED_QUEUE: Final = "shared queue"
_PRINT_TYPES: Final = frozenset({"_ipp", "_ipps", "_printer", "_pdl-datastream", "_privet"})
_ROLE: Final = re.compile(r"(?:^|\()([a-z ]+)\)?$")
_ROLES: Final[Mapping[str, HostKind]] = {
    "screen": "screen",
    "speaker": "speaker",
    "light": "lighting",
    "camera": "camera",
    "video doorbell": "camera",
    "router": "network",
    "range extender": "network",
}
"""Of the roles that decide; of a computer that bridges to others, or has them, its types do."""

_Types = tuple[tuple[HostKind, frozenset[str]], ...]
_Patterns = tuple[tuple[HostKind, re.Pattern[str]], ...]

_TYPES: Final[_Types] = (
    ("printer", _PRINT_TYPES | {"_scanner", "_uscan", "_uscans"}),
    ("camera", frozenset({"_axis-video", "_psia", "_cgi-camera"})),
    (
        "screen",
        frozenset({"_androidtvremote", "_androidtvremote2", "_viziocast", "_mediaremotetv"}),
    ),
    (
        "screen",
        frozenset({"_amzn-wplay", "_roku-rcp", "_samsungmsf", "_appletv-v2", "_xbmc-jsonrpc"}),
    ),
    ("phone", frozenset({"_apple-mobdev2", "_remotepairing", "_androidwear", "_rdlink"})),
    ("server", frozenset({"_readynas", "_qdiscover", "_home-assistant", "_plexmediasvr"})),
    ("speaker", frozenset({"_sonos", "_spotify-connect", "_soundtouch", "_heos-audio", "_musc"})),
    ("speaker", frozenset({"_linkplay", "_volumio", "_beoremote", "_bangolufsen", "_slimdevices"})),
    ("lighting", frozenset({"_hue", "_elg", "_nanoleafapi", "_wled", "_lifx", "_lutron"})),
    ("screen", frozenset({"_googlecast"})),
    ("server", frozenset({"_smb", "_workstation", "_afpovertcp", "_nfs", "_adisk", "_rfb"})),
    ("home", frozenset({"_shelly", "_esphomelib", "_hwenergy", "_ewelink", "_miio", "_dkapi"})),
    ("screen", frozenset({"_airplay"})),
    ("server", frozenset({"_ssh", "_sftp-ssh"})),
    ("home", frozenset({"_hap", "_matter", "_bond", "_tuya"})),
    ("camera", frozenset({"_rtsp"})),
    ("speaker", frozenset({"_raop"})),
)
_MODELS: Final[_Patterns] = (
    ("phone", re.compile(r"i(phone|pad|pod)\d|SM-[A-Z]\d|pixel( \d|$)", re.I)),
    ("network", re.compile(r"airport|timecapsule|fritz!|airos|unifi (ap|switch)", re.I)),
    (
        "screen",
        re.compile(r"appletv|apple tv|chromecast|roku|bravia|shield|AFT\w|kodi|\btv\b", re.I),
    ),
    ("speaker", re.compile(r"audioaccessory|homepod|google home|nest (audio|mini)|sonos", re.I)),
    ("server", re.compile(r"(i?mac|macbook|virtualmac|powermac)(pro|mini|air)?\d+,", re.I)),
    ("server", re.compile(r"synology|readynas|qnap|truenas", re.I)),
)
_PAGES: Final[_Patterns] = (
    (
        "server",
        re.compile(
            r"integrated lights-out|idrac|irmc|\bcups\b|diskstation|synology (?!router)|"
            r"readynas|qnap|(free|true)nas|proxmox|esxi|home assistant|unifi (nvr|video)?$",
            re.I,
        ),
    ),
    (
        "camera",
        re.compile(
            r"\b(ip|net(work)?|web)[ -]?cam(era)?s?\b|\bcamera\b|\bcam\b|\b(dvr|nvr|netvr)\b|"
            r"(hikvision|dnvrs|dvrdvs)|dahua|reolink|foscam|amcrest|vivotek|mobotix|lilin|siqura|^axis\b|"
            r"\bDCS-\d|netwave|log ?in to [0-9a-z]{10,}",
            re.I,
        ),
    ),
    (
        "speaker",
        re.compile(r"\bsonos|\bbose\b|denon|heos|marantz|musiccast|volumio|bluesound", re.I),
    ),
    (
        "lighting",
        re.compile(r"personal wireless lighting|\bwled\b|shelly.*(bulb|rgb|dimmer)|nanoleaf", re.I),
    ),
    (
        "home",
        re.compile(r"shelly|tasmota|esphome|espeasy|netping|homematic|loxone|thermostat", re.I),
    ),
    (
        "printer",
        re.compile(
            r"print|laserjet|officejet|photosmart|designjet|deskjet|km-mfp|debut/|"
            r"\b(mfc|dcp|hl)-\w*\d|epson|kyocera|ecosys|lexmark|xerox|ricoh|bizhub|imagerunner|\bcanon\b|zebra",
            re.I,
        ),
    ),
    ("screen", re.compile(r"roku|bravia|webos|smart ?tv|projector|brightsign|signage|tivo", re.I)),
    ("phone", re.compile(r"ip (tele)?phone|polycom|yealink|digium phone|snom", re.I)),
    (
        "network",
        re.compile(
            r"router|gateway|access point|switch\b|fritz!|openwrt|luci|mikrotik|unifi|"
            r"ubiquiti|edge(os|switch)|air(os|max)|netgear|orbi|tp-link|linksys|wrt\d|speedtouch|zyxel|draytek|"
            r"pfsense|opnsense|sonicwall|fortigate|procurve|aruba|cisco|modem|tomato|ruckus|asuswrt|level_15",
            re.I,
        ),
    ),
)
_Ports = tuple[tuple[HostKind, frozenset[int]], ...]
_PORTS: Final[_Ports] = (
    ("printer", frozenset({515, 631, *range(9100, 9117)})),
    ("screen", frozenset({8008, 8009})),
    ("phone", frozenset({62078})),
    ("camera", frozenset({554})),
    ("server", frozenset({22, 139, 445, 3389, 53})),
    ("screen", frozenset({7000})),
)
_NAMES: Final[_Patterns] = (
    ("screen", re.compile(r"kiosk|chromecast|display|signage|android-?tv|[- ]tv\b|^tv-", re.I)),
    ("speaker", re.compile(r"sonos|homepod|soundtouch|speaker", re.I)),
    (
        "lighting",
        re.compile(r"\bwled|philips-hue|nanoleaf|\blifx|shelly(bulb|color|rgb|dimmer)", re.I),
    ),
    (
        "home",
        re.compile(r"shelly|tasmota|sonoff|^esp[_-]|wemo|^hs1\d\d|\bplug\b|tuya|homewizard", re.I),
    ),
    ("phone", re.compile(r"iphone|ipad|android|galaxy|pixel|phone|tablet", re.I)),
    ("printer", re.compile(r"^(brn|brw|npi|epson|hp[0-9a-f]{6})|print", re.I)),
    ("camera", re.compile(r"\bcam(era)?\b|ipcam", re.I)),
    (
        "network",
        re.compile(r"^(unifi|ubnt|ap|sw|switch|openwrt|mikrotik)\b|access-?point|router", re.I),
    ),
)


def kind_of(
    host: MapHost, endpoints: Iterable[Endpoint] = (), *, is_matched: bool, is_gateway: bool
) -> HostKind:
    """Judge what ``host`` is by it and its ``endpoints``; ``is_matched`` says that a printer was
    matched to it."""
    own = tuple(endpoints)
    if "local" in host.sources:
        return "machine"
    if is_gateway or "gateway" in host.sources:
        return "router"
    printing = [e for e in own if e.matched_printer_ids] or [e for e in own if _is_print(host, e)]
    if printing and all(_role(endpoint) == _SHARED_QUEUE for endpoint in printing):
        return "server"
    if is_matched:
        return "printer"
    name = host.hostname or ""
    return (
        _by_word(host, own)
        or _by_pattern(_PAGES, (e.label for e in own if "mdns" not in e.discovered_by))
        or _by_port(host)
        or _by_pattern(_NAMES, (name,))
        or "unknown"
    )


def _by_word(host: MapHost, endpoints: Collection[Endpoint]) -> HostKind | None:
    """Judge by what the host says of itself: models of its own, roles, types of services."""
    types = _types(host)
    if types & _TYPES[0][1]:
        return "printer"
    models = [e.model for e in endpoints if e.model and _role(e) != _SHARED_QUEUE]
    roles = {_ROLES.get(_role(endpoint)) for endpoint in endpoints}
    return (
        _by_pattern(_MODELS, models)
        or next((kind for kind in HOST_KINDS if kind in roles), None)
        or next((kind for kind, known in _TYPES if types & known), None)
    )


def _role(endpoint: Endpoint) -> str:
    found = _ROLE.search(endpoint.model or "")
    return found[1] if found else ""


def _is_print(host: MapHost, endpoint: Endpoint) -> bool:
    return bool(_types(host, endpoint.port) & _PRINT_TYPES)


def _types(host: MapHost, port: int | None = None) -> set[str]:
    """Return the types announced, of one port or of all: ``_ipp`` for ``_ipp._tcp.local``."""
    services = (s for s in host.services if port is None or s.port == port)
    return {(service.type or "").partition(".")[0].lower() for service in services}


def _by_port(host: MapHost) -> HostKind | None:
    ports = {service.port for service in host.services if service.reachable is not False}
    by_name = _by_pattern(_NAMES, (host.hostname or "",))
    found = next((kind for kind, known in _PORTS if ports & known), None)
    return by_name if found == "server" and by_name else found


def _by_pattern(patterns: _Patterns, texts: Iterable[str]) -> HostKind | None:
    known = tuple(texts)
    return next((k for k, pattern in patterns if any(pattern.search(t) for t in known)), None)
