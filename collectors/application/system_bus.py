"""Queries the D-Bus system bus with systemd's `busctl` (busctl(1)).

busctl is a separate program, so it can be killed if the bus or a service on it never replies. The
queries call only methods that read, and never cause the bus to start a service.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from collectors.application.deadline import Deadline
from collectors.application.foreign_json import load_object
from collectors.application.source import Unreadable
from collectors.shared.run_command import run_command
from collectors.shared.text import clean_text, decode

_NOT_PROVIDED = re.compile(
    r"not provided by any|not activatable|no such unit|name has no owner|unknown object|"
    r"does not exist|could not activate|"
    r"unknown method|unknown interface|service unknown",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"access denied|permission denied|not permitted|not authori[sz]ed|rejected", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class UnitState:
    """ActiveState and SubState of a systemd unit."""

    active: str
    sub: str


Properties = dict[str, Any]
Objects = dict[str, dict[str, Properties]]
"""Properties by object path and interface name. Their values are unwrapped from D-Bus variants."""


def managed_objects(service: str, path: str, deadline: Deadline) -> Objects:
    """Return all objects of a service (org.freedesktop.DBus.ObjectManager)."""
    method = ("org.freedesktop.DBus.ObjectManager", "GetManagedObjects")
    return parse_objects(_call(deadline, service, path, *method))


def all_properties(service: str, path: str, interface: str, deadline: Deadline) -> Properties:
    """Return the properties of an object (org.freedesktop.DBus.Properties).

    If ``interface`` is "", systemd returns the properties of all interfaces of the object.
    """
    method = ("org.freedesktop.DBus.Properties", "GetAll", "s", interface)
    return parse_properties(_call(deadline, service, path, *method))


def unit_object(unit: str) -> str:
    """Return the object path of a systemd unit (org.freedesktop.systemd1(5), unit objects)."""
    escaped_text = "".join(
        char if char.isascii() and char.isalnum() else "".join(f"_{b:02x}" for b in char.encode())
        for char in unit
    )
    return f"/org/freedesktop/systemd1/unit/{escaped_text}"


def unit_states(units: Sequence[str], deadline: Deadline) -> dict[str, UnitState]:
    """Return the state of each installed unit of ``units``."""
    manager = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
    method = ("org.freedesktop.systemd1.Manager", "ListUnitsByNames", "as", str(len(units)))
    return parse_unit_states(_call(deadline, *manager, *method, *units))


def parse_unit_states(data: bytes) -> dict[str, UnitState]:
    """Read the JSON of an ``a(ssssssouso)`` reply. Raises ValueError for another shape."""
    rows = _argument(data)
    if not isinstance(rows, list):
        raise ValueError("the reply of busctl has an unexpected form")
    complete_rows = [row for row in rows if isinstance(row, list) and len(row) >= 5]
    return {
        str(name): UnitState(str(active), str(sub))
        for name, _, load_state, active, sub, *_ in complete_rows
        if load_state != "not-found"
    }


def parse_objects(data: bytes) -> Objects:
    """Read the JSON of a ``a{oa{sa{sv}}}`` reply. Raises ValueError for another shape."""
    return {
        path: {name: _unwrapped(properties) for name, properties in _items(interfaces)}
        for path, interfaces in _items(_argument(data))
    }


def parse_properties(data: bytes) -> Properties:
    """Read the JSON of a ``a{sv}`` reply. Raises ValueError for another shape."""
    return _unwrapped(_argument(data))


def refusal(exit_code: int, error: bytes) -> Unreadable:
    """Return the exception for an error message of busctl."""
    error_text = clean_text(decode(error), 200)
    if "connect to bus: no such file" in error_text.lower():
        return Unreadable("unsupported", "this machine has no system bus")
    if _DENIED.search(error_text):
        return Unreadable("permission-denied", f"the system bus denied it: {error_text}")
    if _NOT_PROVIDED.search(error_text):
        return Unreadable("not-applicable", "no service on the system bus provides it")
    if "timed out" in error_text.lower():
        return Unreadable("collection-failed", "the system bus did not answer in time")
    return Unreadable("collection-failed", f"busctl ended with {exit_code}: {error_text}")


def _call(deadline: Deadline, *arguments: str) -> bytes:
    options = (
        "--system",
        "--json=short",
        "--auto-start=no",
        "--allow-interactive-authorization=no",
    )
    output = run_command(("busctl", *options, "call", *arguments), deadline.at)
    if output.exit_code != 0:
        raise refusal(output.exit_code, output.error)
    return output.data


def _argument(data: bytes) -> Any:
    """Return the only argument of a reply, or None if the reply has no argument."""
    arguments = load_object(data, "busctl").get("data")
    if not isinstance(arguments, list):
        raise ValueError("the reply of busctl has an unexpected form")
    return arguments[0] if arguments else None


def _items(value: object) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise ValueError("the reply of busctl has an unexpected form")
    yield from value.items()


def _unwrapped(properties: object) -> Properties:
    return {
        name: variant["data"]
        for name, variant in _items(properties)
        if isinstance(variant, dict) and "data" in variant
    }
