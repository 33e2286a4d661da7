"""What a host offers, in words: ``prints by IPP (631)`` for ``_ipp._tcp`` on port 631."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from agent.presentation.plain_text import NAME_LENGTH, shorten
from agent.wire.payloads.network import Endpoint, MapService

SERVICES_SHOWN_MAX: Final = 24
"""Services of one host that are listed; the rest is counted."""

_NAMES: Final[Mapping[str, str]] = {
    "prints by IPP": "ipp ipps ipp~printing",
    "prints by LPD": "printer lpd~printing",
    "prints raw data": "pdl-datastream jetdirect raw~printing",
    "prints by Privet": "privet",
    "scans": "scanner uscan uscans",
    "shares files": "smb afpovertcp nfs adisk microsoft-ds netbios-ssn netbios afp",
    "remote shell": "ssh telnet",
    "remote screen": "rfb vnc remote~desktop",
    "transfers files": "sftp-ssh ftp webdav webdavs",
    "payment terminal": "payment~terminal",
    "plays casts": "googlecast google~cast",
    "plays AirPlay": "airplay raop",
    "plays Spotify": "spotify-connect",
    "plays music": "sonos soundtouch heos-audio musc linkplay volumio slimdevices beoremote",
    "television": "androidtvremote androidtvremote2 roku-rcp viziocast samsungmsf mediaremotetv",
    "streams video": "rtsp axis-video psia cgi-camera",
    "gives pictures": "ptp",
    "smart home": "hap matter home-assistant esphomelib shelly bond tuya miio hwenergy",
    "lights": "hue elg nanoleafapi wled lifx lutron",
    "MQTT messages": "mqtt",
    "DNS server": "domain dns",
    "computer": "workstation",
    "web page": "http https",
    "Apple device": "companion-link apple-mobdev2 rdlink remotepairing iphone~sync",
}
_ORDER: Final = {words: place for place, words in enumerate(_NAMES)}
"""What a device is there for comes first, then what everything has, then what is unknown."""
_IN_WORDS: Final = {
    name.replace("~", " "): words for words, names in _NAMES.items() for name in names.split()
}
"""DNS-SD types without underscores, and the names that collectors give ports, in small letters."""

_SILENT: Final = frozenset({"device-info"})
"""Types that announce no service."""

_PORT_NAME: Final = re.compile(r"port \d+|.* \(\d+\)")
"""What collectors call a port that has no better name: ``port 4711``, ``HTTP (8008)``."""


@dataclass(slots=True)
class _Port:
    words: dict[str, None] = field(default_factory=dict)
    is_reached: bool = False


def describe_services(
    services: Iterable[MapService], endpoints: Iterable[Endpoint] = (), known: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return what a host offers, each with its ports: ``web page “Login” (80, 443)``.

    What a port is called by itself, as the ``endpoints`` tell it, stands beside it once, unless it
    is in a text that is ``known``. What nobody answered for is announced only; what has no words
    is as it is.
    """
    shown = "\n".join(known).casefold()
    titles: dict[float, str] = {each.port: _title(each) for each in endpoints}
    offers = [
        (word, port, number)
        for number, port in _ports(services).items()
        for word in port.words or ("",)
    ]
    places: dict[tuple[str, str, bool], list[str]] = {}
    for word, port, number in sorted(offers, key=lambda offer: _ORDER.get(offer[0], len(_ORDER))):
        title = titles.get(number, "")
        is_told = title.casefold() in f"{shown}\n{word.casefold()}"
        shown += f"\n{title.casefold()}"
        said = (word, "" if is_told else f" “{title}”", port.is_reached)
        places.setdefault(said, []).extend([f"{number:.0f}"] if number else [])
    lines = [_line(*said, numbers) for said, numbers in places.items()]
    rest = len(lines) - SERVICES_SHOWN_MAX
    return (*lines[:SERVICES_SHOWN_MAX], f"and {rest} more") if rest > 0 else tuple(lines)


def is_port_name(text: str) -> bool:
    """Tell whether a label is only the usual name of a port."""
    return bool(_PORT_NAME.fullmatch(text)) or text.lower() in _IN_WORDS


def _ports(services: Iterable[MapService]) -> dict[float, _Port]:
    """Return what is said of each port by all who speak of it."""
    ports: dict[float, _Port] = {}
    for service in services:
        name = _service_name(service)
        if name.lower() in _SILENT:
            continue
        port = ports.setdefault(service.port, _Port())
        port.is_reached |= bool(service.reachable)
        if word := _IN_WORDS.get(name.lower().partition(" (")[0], name):
            port.words[word] = None
    return ports


def _service_name(service: MapService) -> str:
    """Return ``ipp`` for the type ``_ipp._tcp.local.``, else the name unless it is the number."""
    name = shorten(service.type or service.name or "", NAME_LENGTH)
    return "" if name == f"port {service.port:.0f}" else name.removeprefix("_").partition("._")[0]


def _line(word: str, title: str, is_reached: bool, ports: list[str]) -> str:
    facts = ", ".join(ports if is_reached or not ports else (*ports, "announced only"))
    if not word:
        return f"port {facts}{title}"
    return f"{word}{title} ({facts})" if facts else f"{word}{title}"


def _title(endpoint: Endpoint) -> str:
    return "" if is_port_name(endpoint.label) else shorten(endpoint.label, NAME_LENGTH)
