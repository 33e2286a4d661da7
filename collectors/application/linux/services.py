"""Reads from systemd the state of the services that a venue depends on.

Source: org.freedesktop.systemd1(5).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.readers.processes import Restarts
from collectors.application.readers.services import service_keys
from collectors.application.source import Fields, Origin, source, status_of
from collectors.application.system_bus import (
    Properties,
    UnitState,
    all_properties,
    unit_object,
    unit_states,
)
from collectors.shared.sysfs import read_text

ORIGIN: Final = Origin("systemd")
ROLES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "printSpooler": ("print spooler", ("cups.service",)),
    "timeSync": (
        "time synchronisation",
        (
            "systemd-timesyncd.service",
            "chrony.service",
            "chronyd.service",
            "ntpsec.service",
            "ntpd.service",
            "ntp.service",
            "openntpd.service",
        ),
    ),
    "bluetooth": ("bluetooth service", ("bluetooth.service",)),
}
"""For each role: its name for users, and the units that may have this role."""

_UNIT_OF_CGROUP = re.compile(
    r"/system\.slice/(?:[^/\n]+/)*([^/\n]{1,200}\.service)(?:/|$)", re.MULTILINE
)
_NO_SERVICE: Final = Restarts(reason="only restarts of system services are counted")
_NO_COUNT: Final = Restarts(reason="systemd does not count the restarts of this service")
_EARLIEST_US: Final = 1_000_000
"""A smaller timestamp is no time: systemd reports 0 for "never"."""
_LATEST_US: Final = 253_402_300_799_000_000
"""The last second that a datetime can represent (in the year 9999), in microseconds since 1970."""

ReadStates = Callable[[Sequence[str], Deadline], dict[str, UnitState]]
ReadProperties = Callable[[str, Deadline], Properties]


def read_unit(unit: str, deadline: Deadline) -> Properties:
    """Return the properties of a unit, from all of its D-Bus interfaces."""
    return all_properties("org.freedesktop.systemd1", unit_object(unit), "", deadline)


@source("services", ORIGIN, *service_keys(ROLES))
def read_services(
    deadline: Deadline,
    read_states: ReadStates = unit_states,
    read_properties: ReadProperties = read_unit,
) -> Fields:
    unit_names = [name for _, names in ROLES.values() for name in names]
    installed_units = read_states(unit_names, deadline)
    for role, (title, candidates) in ROLES.items():
        name = choose_unit(candidates, installed_units)
        keys = service_keys((role,))
        if name is None:
            reason = f"no {title} is installed"
            yield from ORIGIN.all_absent(keys, "not-applicable", reason)
        else:
            properties = read_properties(name, deadline)
            yield from unit_fields(keys, name, installed_units[name], properties)


def choose_unit(candidates: Sequence[str], installed_units: Mapping[str, UnitState]) -> str | None:
    """Return the unit that has a role: one that is running, or else the first installed one."""
    present = [name for name in candidates if name in installed_units]
    running = [name for name in present if installed_units[name].active == "active"]
    return next(iter(running or present), None)


def unit_fields(
    keys: tuple[str, ...], name: str, state: UnitState, properties: Properties
) -> Fields:
    name_key, state_key, start_key, since_key, restarts_key = keys
    restarts, started_at = properties.get("NRestarts"), properties.get("ActiveEnterTimestamp")
    since, not_started = format_timestamp(started_at), "it has not run since the machine started"
    yield ORIGIN.available(name_key, name.removesuffix(".service"))
    yield ORIGIN.available(state_key, f"{state.active} ({state.sub})")
    yield ORIGIN.fact(start_key, _text(properties, "UnitFileState"), "systemd does not report it")
    yield ORIGIN.fact(since_key, since, not_started, "not-applicable")
    yield (
        ORIGIN.available(restarts_key, restarts)
        if isinstance(restarts, int)
        else ORIGIN.not_applicable(restarts_key, "systemd counts no restarts of this unit")
    )


def count_restarts(
    root: Path, pid: int, deadline: Deadline, read_properties: ReadProperties = read_unit
) -> Restarts:
    """Return how often systemd restarted the service that a process belongs to."""
    try:
        service = parse_service(read_text(root / "proc" / str(pid) / "cgroup"))
        if service is None:
            return _NO_SERVICE
        restarts = read_properties(service, deadline).get("NRestarts")
    except Exception as error:  # noqa: BLE001 - it becomes the reason of the field
        status, reason = status_of(error)
        return Restarts(status=status, reason=reason)
    return Restarts(restarts) if isinstance(restarts, int) else _NO_COUNT


def parse_service(cgroup: str) -> str | None:
    """Return the system service in the text of /proc/PID/cgroup (cgroups(7)), or None."""
    match = _UNIT_OF_CGROUP.search(cgroup)
    return match[1] if match else None


def format_timestamp(microseconds: object) -> str | None:
    """Return a systemd timestamp (microseconds since 1970, 0 for never) in ISO 8601."""
    if not isinstance(microseconds, int) or not _EARLIEST_US <= microseconds <= _LATEST_US:
        return None
    return datetime.fromtimestamp(microseconds // 1_000_000, UTC).isoformat()


def _text(properties: Properties, name: str) -> str | None:
    value = properties.get(name)
    return value if isinstance(value, str) else None
