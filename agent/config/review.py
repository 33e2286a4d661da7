"""What a configuration may hold, and surely nobody meant: an agent runs with it and does less.

The models (`config`) refuse what no agent can run with. What is found here has worked in some way
or other on machines that nobody visits, so that a daemon only warns of it; `config check` refuses
it. Pure: looks at the tree of TOML values, whatever else is wrong in it.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final
from urllib.parse import urlsplit

from agent.wire.addresses import split_host_port
from agent.wire.validation import Issue, Path

_LABEL: Final = re.compile(r"(?!-)[^\W]([\w-]*[^\W])?|[^\W]", re.UNICODE)
_MAC: Final = re.compile(r"[0-9A-Fa-f]{2}([:-])([0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}|[0-9A-Fa-f]{12}")
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_WINDOWS_PORT: Final = re.compile(r"(\\\\\.\\)?(COM|LPT|USB)\d{1,3}:?", re.IGNORECASE)
_USB: Final = re.compile(r"usb:[\w./:-]+", re.IGNORECASE)
_SERVICE_TYPE: Final = re.compile(r"_[A-Za-z0-9-]{1,63}\._(tcp|udp)(\.local\.?)?", re.IGNORECASE)
_PATH: Final = re.compile(r"/[^\x00-\x1f\x7f]+")
_LOCAL_ADDRESSES: Final = {
    "serial": ((_PATH, _WINDOWS_PORT), "must be a device such as /dev/ttyUSB0 or COM3"),
    "usb": ((_PATH, _WINDOWS_PORT, _USB), "must be a device such as /dev/usb/lp0"),
    "ble": ((_MAC, _UUID), "must be a Bluetooth address such as 01:23:45:67:89:ab"),
}
_HOST_MAX: Final = 253
_LABEL_MAX: Final = 63
_PORT_MAX: Final = 65535

Tree = Mapping[str, Any]


def review_of(tree: Tree) -> Iterator[Issue]:
    """Yield what is wrong, each with the place and the value at which it stands."""
    for look in (_printers, _network, _service, _files, _application, _schedule, _limits):
        yield from look(tree)


# ---------------------------------------------------------------------------- printers


def _printers(tree: Tree) -> Iterator[Issue]:
    entries = tree.get("printers")
    taken: dict[str, int] = {}
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        if not isinstance(entry, dict):
            continue
        at: Path = ("printers", index)
        name, address = entry.get("id"), entry.get("address")
        if isinstance(name, str) and name:
            if problem := _why_no_id(name):
                yield _issue((*at, "id"), name, problem)
            elif (first := taken.setdefault(name, index)) != index:
                yield _issue((*at, "id"), name, f"is also that of [[printers]] number {first + 1}")
        if isinstance(entry.get("name"), str) and (problem := _why_no_name(entry["name"])):
            yield _issue((*at, "name"), entry["name"], problem)
        if isinstance(address, str | None):
            transport = entry.get("transport", "network")
            problem = _why_no_address(address, transport)
            if problem:
                yield _issue(at if address is None else (*at, "address"), address, problem)


def _why_no_id(text: str) -> str | None:
    if any(c.isspace() or not c.isprintable() for c in text):
        return "must be one word, without blanks and control characters"
    return None


def _why_no_name(text: str) -> str | None:
    if not text.strip():
        return "must not be empty"
    return None if text.isprintable() else "must not hold control characters"


def _why_no_address(address: str | None, transport: object) -> str | None:
    if transport == "network":
        if address is None:
            return 'needs an address = "host:port"'
        return None if _MAC.fullmatch(address) else _why_no_host_and_port(address)
    forms, problem = _LOCAL_ADDRESSES.get(str(transport), ((), ""))
    if address is None or not forms:
        return None
    return None if any(form.fullmatch(address) for form in forms) else problem


def _why_no_host_and_port(address: str) -> str | None:
    """Judge ``host``, ``host:port``, a bare IPv6 address or ``[v6]:port``."""
    form = "must be host:port, a host, [IPv6]:port or a hardware address"
    host, port = split_host_port(address)
    if not (_is_ip(host, 6) if ":" in host else _is_host(host)):
        return form
    return None if port is None else _why_no_port(port)


def _why_no_port(text: str) -> str | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_PORT_MAX))
    if is_number and 0 < int(text) <= _PORT_MAX:
        return None
    return f"must have a port from 1 to {_PORT_MAX} after its colon"


def _is_host(text: str) -> bool:
    """Tell whether it may be a name or an IPv4 address: names of numbers only are neither."""
    labels = text.removesuffix(".").split(".")
    if all(label.isascii() and label.isdigit() for label in labels):
        return _is_ip(text, 4)
    return len(text) <= _HOST_MAX and all(
        len(label) <= _LABEL_MAX and _LABEL.fullmatch(label) for label in labels
    )


def _is_ip(text: str, version: int) -> bool:
    try:
        return ipaddress.ip_address(text).version == version
    except ValueError:
        return False


# ---------------------------------------------------------------------------- the other sections


def _network(tree: Tree) -> Iterator[Issue]:
    network = _section(tree, "network")
    ports = _list(network, "ports")
    if twice := _twice(ports):
        yield _issue(("network", "ports"), ports, f"names {', '.join(map(str, twice))} twice")
    for kind in _list(network, "mdns_service_types"):
        if isinstance(kind, str) and not _SERVICE_TYPE.fullmatch(kind):
            problem = "must hold service types such as _till._tcp"
            yield _issue(("network", "mdns_service_types"), kind, problem)
    subnets, excluded = _list(network, "subnets"), _networks(_list(network, "exclude"))
    if twice := _twice(subnets):
        yield _issue(("network", "subnets"), subnets, f"names {', '.join(map(str, twice))} twice")
    wanted = _networks(subnets) or [ipaddress.IPv4Network("0.0.0.0/0")]
    if excluded and all(_is_covered(each, excluded) for each in wanted):
        problem = "leaves nothing to look at: device_only = true says so plainly"
        yield _issue(("network", "exclude"), network["exclude"], problem)


def _service(tree: Tree) -> Iterator[Issue]:
    for section, key in (("service", "location_id"), ("device", "legacy_install_id")):
        text = _section(tree, section).get(key)
        if isinstance(text, str) and text.strip() != text and text.isprintable():
            yield _issue((section, key), text, "must not begin or end with a blank")
    proxy = _section(tree, "service").get("proxy")
    if isinstance(proxy, str) and proxy and not _is_proxy(proxy):
        # Without the value: it may hold a password.
        problem = "must be a URL such as http://proxy.example:3128"
        yield _issue(("service", "proxy"), None, problem)


def _is_proxy(text: str) -> bool:
    if not text.isprintable() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    return (
        parts.scheme in {"http", "https", "socks5", "socks5h"} and bool(parts.hostname) and has_port
    )


def _files(tree: Tree) -> Iterator[Issue]:
    """A path that is not absolute means another file wherever the agent is started."""
    for section, key in (
        ("service", "api_key_file"),
        ("service", "ca_file"),
        ("device", "state_dir"),
    ):
        path = _section(tree, section).get(key)
        if isinstance(path, str) and path and not _is_absolute(path):
            yield _issue((section, key), path, "must be an absolute path")


def _is_absolute(path: str) -> bool:
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()


def _application(tree: Tree) -> Iterator[Issue]:
    application = _section(tree, "application")
    names = _list(application, "watch_processes")
    if any(isinstance(name, str) and _why_no_name(name) for name in names):
        yield _issue(("application", "watch_processes"), names, "must hold names of programs")
    url = application.get("kiosk_debug_url")
    if isinstance(url, str) and not _holds(lambda: urlsplit(url).port != 0):
        problem = f"must have a port from 1 to {_PORT_MAX}"
        yield _issue(("application", "kiosk_debug_url"), url, problem)


def _schedule(tree: Tree) -> Iterator[Issue]:
    for key in ("network", "application"):
        text = _section(tree, "schedule").get(key)
        if isinstance(text, str) and text and _never_fires(text):
            yield _issue(("schedule", key), text, "names a time that never comes")


def _never_fires(text: str) -> bool:
    from datetime import UTC, datetime  # only where it is used

    from apscheduler.triggers.cron import CronTrigger  # only where it is used

    try:
        trigger = CronTrigger.from_crontab(text, UTC)
    except ValueError:
        return False  # the models say so
    return trigger.get_next_fire_time(None, datetime.now(UTC)) is None


def _limits(tree: Tree) -> Iterator[Issue]:
    limits = _section(tree, "limits")
    room, report = limits.get("outbox_max_bytes"), limits.get("max_report_bytes", 1_000_000)
    if isinstance(room, int) and isinstance(report, int) and room < report:
        problem = f"must be at least limits.max_report_bytes ({report})"
        yield _issue(("limits", "outbox_max_bytes"), room, problem)


# ---------------------------------------------------------------------------- values


def _issue(path: Path, value: Any, reason: str) -> Issue:
    return Issue(path, reason, value=value)


def _section(tree: Tree, name: str) -> Tree:
    section = tree.get(name)
    return section if isinstance(section, dict) else {}


def _list(section: Tree, key: str) -> Sequence[Any]:
    value = section.get(key)
    return value if isinstance(value, list) else ()


def _twice(values: Sequence[Any]) -> list[Any]:
    plain = [value for value in values if isinstance(value, str | int)]
    return sorted({value for value in plain if plain.count(value) > 1}, key=str)


def _networks(texts: Iterable[Any]) -> list[ipaddress.IPv4Network]:
    """Return those of IPv4; what is no network is told by the models."""
    found = []
    for text in texts:
        try:
            network = ipaddress.ip_network(str(text), strict=False)
        except ValueError:
            continue
        if isinstance(network, ipaddress.IPv4Network):
            found.append(network)
    return found


def _is_covered(network: ipaddress.IPv4Network, by: Iterable[ipaddress.IPv4Network]) -> bool:
    whole = ipaddress.collapse_addresses(by)
    return any(network.subnet_of(each) for each in whole)


def _holds(question: Callable[[], bool]) -> bool:
    """Tell whether it does; one that cannot be answered does not."""
    try:
        return question()
    except ValueError:
        return False
