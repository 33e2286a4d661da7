"""Describes the services of a host: ``prints by IPP (631)`` for ``_ipp._tcp`` on port 631."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from agent.presentation.plain_text import shorten
from agent.wire.payloads.network import Endpoint, MapService

SERVICES_LISTED_MAX: Final = 24
"""Maximum number of services that are listed for one host. Further services are only counted."""

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
    "transfers pictures": "ptp",
    "smart home": "hap matter home-assistant esphomelib shelly bond tuya miio hwenergy",
    "lights": "hue elg nanoleafapi wled lifx lutron",
    "MQTT messages": "mqtt",
    "DNS server": "domain dns",
    "computer": "workstation",
    "web page": "http https",
    "Apple device": "companion-link apple-mobdev2 rdlink remotepairing iphone~sync",
}
"""The names of services by their description, in the order in which descriptions are listed. A name
is a DNS-SD type without its underscore, or a name that collectors give to a port. A ``~`` stands
for a blank."""
_ORDER: Final = {description: position for position, description in enumerate(_NAMES)}
_DESCRIPTIONS: Final = {
    name.replace("~", " "): description
    for description, names in _NAMES.items()
    for name in names.split()
}
"""The description of each name. The keys are in lower case."""

_NO_SERVICE: Final = frozenset({"device-info"})
"""DNS-SD types that do not announce a service."""

_PORT_NAME: Final = re.compile(r"port \d+|.* \(\d+\)")
"""The names that collectors give to a port if they have no better one: ``port 4711``,
``HTTP (8008)``."""


@dataclass(slots=True)
class _PortServices:
    """The descriptions of the services of a port, and whether one of the services answered."""

    descriptions: dict[str, None] = field(default_factory=dict)
    is_reached: bool = False


def describe_services(
    services: Iterable[MapService], endpoints: Iterable[Endpoint] = (), known: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return the services of a host with their ports: ``web page “Login” (80, 443)``.

    The label of an endpoint is added once, unless the description or one of the texts in ``known``
    contains it. The texts in ``known`` are displayed beside the services. A service whose port did
    not answer is marked "announced only". A service without a description keeps its name.
    """
    known_text = "\n".join(known).casefold()
    titles: dict[float, str] = {endpoint.port: _title(endpoint) for endpoint in endpoints}
    offers = [
        (description, port, number)
        for number, port in _ports(services).items()
        for description in port.descriptions or ("",)
    ]
    offers.sort(key=lambda offer: _ORDER.get(offer[0], len(_ORDER)))
    numbers_by_line: dict[tuple[str, str, bool], list[str]] = {}
    for description, port, number in offers:
        title = titles.get(number, "")
        is_known = title.casefold() in f"{known_text}\n{description.casefold()}"
        known_text += f"\n{title.casefold()}"
        line = (description, "" if is_known else f" “{title}”", port.is_reached)
        numbers = numbers_by_line.setdefault(line, [])
        if number:
            numbers.append(f"{number:.0f}")
    lines = [_line(*line, numbers) for line, numbers in numbers_by_line.items()]
    omitted_count = len(lines) - SERVICES_LISTED_MAX
    if omitted_count > 0:
        lines = [*lines[:SERVICES_LISTED_MAX], f"and {omitted_count} more"]
    return tuple(lines)


def is_port_name(text: str) -> bool:
    """Return whether a label is only the usual name of a port."""
    return bool(_PORT_NAME.fullmatch(text)) or text.lower() in _DESCRIPTIONS


def _ports(services: Iterable[MapService]) -> dict[float, _PortServices]:
    """Return the descriptions of the services of each port, and whether one of them answered."""
    ports: dict[float, _PortServices] = {}
    for service in services:
        name = _service_name(service)
        if name.lower() in _NO_SERVICE:
            continue
        port = ports.setdefault(service.port, _PortServices())
        port.is_reached |= bool(service.reachable)
        if description := _DESCRIPTIONS.get(name.lower().partition(" (")[0], name):
            port.descriptions[description] = None
    return ports


def _service_name(service: MapService) -> str:
    """Return ``ipp`` for the type ``_ipp._tcp.local.``. Without a type, return the name.

    A name that only repeats the number of the port becomes "".
    """
    name = shorten(service.type or service.name or "")
    return "" if name == f"port {service.port:.0f}" else name.removeprefix("_").partition("._")[0]


def _line(description: str, title: str, is_reached: bool, ports: list[str]) -> str:
    facts = ", ".join(ports if is_reached or not ports else (*ports, "announced only"))
    if not description:
        return f"port {facts}{title}"
    return f"{description}{title} ({facts})" if facts else f"{description}{title}"


def _title(endpoint: Endpoint) -> str:
    return "" if is_port_name(endpoint.label) else shorten(endpoint.label)
