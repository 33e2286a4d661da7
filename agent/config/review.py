"""Finds settings that are valid, but certainly unintended.

The models (`config.model`) refuse settings with which no agent can run. A daemon accepts the
settings that this module finds, but its reports might contain less. `config check` refuses these
settings, and `doctor` warns of them. The functions accept any tree of TOML values, including
invalid configurations.
"""

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final
from urllib.parse import urlsplit

from agent.config.model import MAC, SYSTEM_PROXY
from agent.wire.addresses import has_usable_port, is_one_word, parse_ip, split_host_port
from agent.wire.validation import Issue, Path

_HOST_LABEL: Final = re.compile(r"\w([\w-]*\w)?")
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_WINDOWS_PORT: Final = re.compile(r"(\\\\\.\\)?(COM|LPT|USB)\d{1,3}:?", re.IGNORECASE)
_USB: Final = re.compile(r"usb:[\w./:-]+", re.IGNORECASE)
_SERVICE_TYPE: Final = re.compile(r"_[A-Za-z0-9-]{1,63}\._(tcp|udp)(\.local\.?)?", re.IGNORECASE)
_PATH: Final = re.compile(r"/[^\x00-\x1f\x7f]+")
_LOCAL_ADDRESSES: Final = {
    "serial": ((_PATH, _WINDOWS_PORT), "must be a device such as /dev/ttyUSB0 or COM3"),
    "usb": ((_PATH, _WINDOWS_PORT, _USB), "must be a device such as /dev/usb/lp0"),
    "ble": ((MAC, _UUID), "must be a Bluetooth address such as 01:23:45:67:89:ab"),
}
"""For each transport except the network: the valid forms of a printer's address, and the error
message for all other forms."""
_PROXY_SCHEMES: Final = frozenset({"http", "https", "socks5", "socks5h"})
_EXAMPLE_HOST: Final = re.compile(r"(?:.+\.)?example(?:\.com|\.net|\.org)?")  # RFC 2606
_PLACEHOLDER: Final = re.compile(
    r"<.*>|\{.*\}|\.\.\.|…|ID|KEY|URL|[A-Z_-]*LOCATION(?:[_-]ID)?|API[_-]KEY|(?i:x{3,}|to-?do"
    r"|change[_-]?me|replace[_-]?me|placeholder|(?:my|your)[ _-].*)"
)
_HOST_MAX: Final = 253
_HOST_LABEL_MAX: Final = 63
_PORT_MAX: Final = 65535

Tree = Mapping[str, Any]


def review_of(tree: Tree) -> Iterator[Issue]:
    """Yield the issues, each with its path and value."""
    yield from _printer_issues(tree)
    yield from _watched_device_issues(tree)
    for (section, key), find_problem in _TEXTS.items():
        text = _section(tree, section).get(key)
        if isinstance(text, str) and text and (problem := find_problem(text)):
            # The value of a proxy may contain a password.
            yield Issue((section, key), problem, value=None if key == "proxy" else text)
    for (section, key), find_list_problem in _LISTS.items():
        items = _section(tree, section).get(key)
        if isinstance(items, list) and (problem := find_list_problem(items)):
            yield Issue((section, key), problem, value=items)
    yield from _exclusion_issues(tree)
    yield from _limit_issues(tree)


# ---------------------------------------------------------------------------- arrays of tables


def _printer_issues(tree: Tree) -> Iterator[Issue]:
    first_use: dict[str, int] = {}
    for index, entry in _tables(tree, "printers"):
        table: Path = ("printers", index)
        id_, name, address = entry.get("id"), entry.get("name"), entry.get("address")
        if isinstance(id_, str) and id_:
            first = first_use.setdefault(id_, index)
            duplicate = f"is also the id of [[printers]] number {first + 1}"
            if problem := _id_problem(id_) or (duplicate if first != index else None):
                yield Issue((*table, "id"), problem, value=id_)
        if isinstance(name, str) and (problem := _name_problem(name)):
            yield Issue((*table, "name"), problem, value=name)
        if isinstance(address, str | None):
            path = table if address is None else (*table, "address")
            if problem := _address_problem(address, entry.get("transport", "network")):
                yield Issue(path, problem, value=address)


def _watched_device_issues(tree: Tree) -> Iterator[Issue]:
    first_use: dict[str, int] = {}
    for index, entry in _tables(tree, "watched_devices"):
        table: Path = ("watched_devices", index)
        name = entry.get("name")
        if isinstance(name, str):
            first = first_use.setdefault(name, index)
            duplicate = f"is also the name of [[watched_devices]] number {first + 1}"
            if problem := _name_problem(name) or (duplicate if first != index else None):
                yield Issue((*table, "name"), problem, value=name)
        if entry.get("address") is None and entry.get("mac") is None:
            yield Issue(table, 'needs an address = "192.168.1.40" or a mac = "00:11:22:33:44:55"')


def _tables(tree: Tree, name: str) -> Iterator[tuple[int, Tree]]:
    """Yield the tables of an array of tables, each with its index."""
    entries = tree.get(name)
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(entry, dict):
            yield index, entry


def _id_problem(text: str) -> str | None:
    if any(each.isspace() or not each.isprintable() for each in text):
        return "must be one word, without blanks and control characters"
    return None


def _name_problem(text: str) -> str | None:
    if not text.strip():
        return "must not be empty"
    return None if text.isprintable() else "must not contain control characters"


def _address_problem(address: str | None, transport: object) -> str | None:
    if transport == "network":
        if address is None:
            return 'needs an address = "host:port"'
        return None if MAC.fullmatch(address) else _host_and_port_problem(address)
    forms, problem = _LOCAL_ADDRESSES.get(str(transport), ((), ""))
    if address is None or not forms:
        return None
    return None if any(form.fullmatch(address) for form in forms) else problem


def _host_and_port_problem(address: str) -> str | None:
    """Check ``host``, ``host:port``, a bare IPv6 address or ``[v6]:port``."""
    host, port = split_host_port(address)
    if not (parse_ip(host) if ":" in host else _is_host(host)):
        return "must be host:port, a host, [IPv6]:port or a MAC address"
    is_number = port is None or (port.isascii() and port.isdigit() and len(port) <= 5)
    if is_number and 0 < int(port or 1) <= _PORT_MAX:
        return None
    return f"must have a port from 1 to {_PORT_MAX} after its colon"


def _is_host(text: str) -> bool:
    """Return whether ``text`` can be a host name or is an IPv4 address.

    A text of digits and dots is no host name.
    """
    labels = text.removesuffix(".").split(".")
    if all(label.isascii() and label.isdigit() for label in labels):
        return parse_ip(text) is not None
    return len(text) <= _HOST_MAX and all(
        len(label) <= _HOST_LABEL_MAX and _HOST_LABEL.fullmatch(label) for label in labels
    )


# ---------------------------------------------------------------------------- single keys


def _duplicates_problem(items: list[Any]) -> str | None:
    plain = [item for item in items if isinstance(item, str | int)]
    repeated_items = sorted({item for item in plain if plain.count(item) > 1}, key=str)
    return f"names {', '.join(map(str, repeated_items))} twice" if repeated_items else None


def _service_types_problem(items: list[Any]) -> str | None:
    texts = (item for item in items if isinstance(item, str))
    wrong_texts = ", ".join(text for text in texts if not _SERVICE_TYPE.fullmatch(text))
    return (
        f"must contain service types such as _till._tcp, not {wrong_texts}" if wrong_texts else None
    )


def _example_address_problem(url: str) -> str | None:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return None  # `config.model` reports an invalid URL
    if _EXAMPLE_HOST.fullmatch(host):
        return "is the address of the example: write the address of your service"
    return None


def _location_problem(text: str) -> str | None:
    if is_placeholder(text):
        return "is a placeholder: write the id of this venue, as the service lists it"
    return _blanks_problem(text)


def is_placeholder(text: str) -> bool:
    """Return whether ``text`` stands for a value that a user has to fill in."""
    return _PLACEHOLDER.fullmatch(text) is not None


def _blanks_problem(text: str) -> str | None:
    # `config.model` reports control characters.
    has_control_characters = any(unicodedata.category(each) == "Cc" for each in text)
    is_wrong = text.strip() != text and not has_control_characters
    return "must not begin or end with a blank" if is_wrong else None


def _proxy_problem(text: str) -> str | None:
    problem = 'must be a URL such as http://proxy.example:3128, or "system"'
    if text == SYSTEM_PROXY:
        return None
    if not (is_one_word(text) and has_usable_port(text)):
        return problem
    parts = urlsplit(text)
    return None if parts.scheme in _PROXY_SCHEMES and parts.hostname else problem


def _relative_path_problem(path: str) -> str | None:
    """Refuse a relative path: which file it means depends on where the agent is started.

    A path with a control character comes from a backslash in double quotes, such as `"C:\\temp"`.
    """
    if not path.isprintable():
        return "contains control characters: a Windows path needs single quotes"
    is_absolute = PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()
    return None if is_absolute else "must be an absolute path"


def _program_names_problem(names: list[Any]) -> str | None:
    is_wrong = any(isinstance(name, str) and _name_problem(name) for name in names)
    return "must contain names of programs" if is_wrong else None


def _url_port_problem(url: str) -> str | None:
    return None if has_usable_port(url) else f"must have a port from 1 to {_PORT_MAX}"


def _schedule_problem(text: str) -> str | None:
    from apscheduler.triggers.cron import CronTrigger  # slow to import

    try:
        trigger = CronTrigger.from_crontab(text, UTC)
    except ValueError:
        return None  # `config.model` reports an invalid expression
    next_time = trigger.get_next_fire_time(None, datetime.now(UTC))
    return "describes a time that never occurs" if next_time is None else None


_TEXTS: Final[Mapping[tuple[str, str], Callable[[str], str | None]]] = {
    ("service", "base_url"): _example_address_problem,
    ("service", "location_id"): _location_problem,
    ("device", "legacy_install_id"): _blanks_problem,
    ("service", "proxy"): _proxy_problem,
    ("service", "api_key_file"): _relative_path_problem,
    ("service", "ca_file"): _relative_path_problem,
    ("device", "state_dir"): _relative_path_problem,
    ("application", "kiosk_debug_url"): _url_port_problem,
    ("schedule", "network"): _schedule_problem,
    ("schedule", "application"): _schedule_problem,
}
"""For each key whose value is a string: the function that returns the problem of a value."""
_LISTS: Final[Mapping[tuple[str, str], Callable[[list[Any]], str | None]]] = {
    ("network", "ports"): _duplicates_problem,
    ("network", "subnets"): _duplicates_problem,
    ("network", "mdns_service_types"): _service_types_problem,
    ("application", "watch_processes"): _program_names_problem,
}
"""For each key whose value is a list: the function that returns the problem of a value."""

# ---------------------------------------------------------------------------- several keys


def _exclusion_issues(tree: Tree) -> Iterator[Issue]:
    network = _section(tree, "network")
    excluded_networks = _networks(network.get("exclude"))
    subnets = _networks(network.get("subnets")) or [ipaddress.IPv4Network("0.0.0.0/0")]
    if excluded_networks and all(_is_covered(subnet, excluded_networks) for subnet in subnets):
        problem = "leaves no subnet to scan: set device_only = true instead"
        yield Issue(("network", "exclude"), problem, value=network["exclude"])


def _limit_issues(tree: Tree) -> Iterator[Issue]:
    limits = _section(tree, "limits")
    outbox_max = limits.get("outbox_max_bytes")
    report_max = limits.get("max_report_bytes", 1_000_000)
    if isinstance(outbox_max, int) and isinstance(report_max, int) and outbox_max < report_max:
        problem = f"must be at least limits.max_report_bytes ({report_max})"
        yield Issue(("limits", "outbox_max_bytes"), problem, value=outbox_max)


def _section(tree: Tree, name: str) -> Tree:
    section = tree.get(name)
    return section if isinstance(section, dict) else {}


def _networks(values: object) -> Sequence[ipaddress.IPv4Network]:
    """Return the IPv4 networks of a list. The models report values that are not networks."""
    networks = []
    for text in values if isinstance(values, list) else ():
        try:
            network = ipaddress.ip_network(str(text), strict=False)
        except ValueError:
            continue
        if isinstance(network, ipaddress.IPv4Network):
            networks.append(network)
    return networks


def _is_covered(network: ipaddress.IPv4Network, by: Iterable[ipaddress.IPv4Network]) -> bool:
    return any(network.subnet_of(excluded) for excluded in ipaddress.collapse_addresses(by))
