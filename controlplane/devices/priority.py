"""The health of devices, and their order in lists. Devices with problems come first.

The priority is stored with the device, because sorting 50,000 devices for each request takes too
long. The periodic evaluation (`controlplane.devices.liveness`) changes it when a device goes
offline, or when its location opens or closes.
"""

from collections.abc import Collection
from enum import IntEnum
from typing import Final, get_args

from sqlalchemy import ColumnElement, and_, case, func, select, update
from sqlalchemy.orm import Session

from agent.presentation.severity import SEVERITY_ORDER
from controlplane.devices.health import Health
from controlplane.operation.context import RequestContext
from controlplane.storage.statements import change_rows
from controlplane.storage.tables import Device, Report


class Priority(IntEnum):
    """The sort key of a device in lists, lowest first.

    The numbers are stored in the database, so they must keep their meaning.
    """

    OFFLINE = 0
    NEVER_CONNECTED = 1  # no heartbeat since the enrollment
    BROKEN = 2
    WARNING = 3
    OK = 4
    CLOSED = 6  # not online, and its location is closed
    MAINTENANCE = 7  # not online, and in a maintenance window
    REVOKED = 9


OFFLINE: Final = frozenset({Priority.OFFLINE, Priority.NEVER_CONNECTED})
NOT_ONLINE: Final = OFFLINE | {Priority.CLOSED, Priority.MAINTENANCE}
ONLINE: Final = frozenset({Priority.BROKEN, Priority.WARNING, Priority.OK})

HEALTHS: Final[tuple[Health, ...]] = get_args(Health)
_BY_PRIORITY: Final[dict[int, Health]] = {
    Priority.OFFLINE: "offline",
    Priority.NEVER_CONNECTED: "never-connected",
    Priority.REVOKED: "revoked",
}
_BY_SEVERITY: Final[dict[str, Health]] = {"bad": "broken", "warn": "warning"}
_ONLINE_BY_SEVERITY: Final = {"bad": Priority.BROKEN, "warn": Priority.WARNING}
"""The priority of an online device by its severity. With other severities, it is `Priority.OK`."""


def health_of(priority: int, severity: str | None) -> Health:
    """Return the health of a device with this stored priority and severity.

    A device is not expected to be online while its location is closed, or in a maintenance window
    of the device or its location. If such a device is not online, it has the health of its newest
    reports.
    """
    return _BY_PRIORITY.get(priority) or _BY_SEVERITY.get(severity or "", "healthy")


def has_health(health: Health) -> ColumnElement[bool]:
    """Return the condition for devices with this health, as `health_of` defines it."""
    priorities = [priority for priority, name in _BY_PRIORITY.items() if name == health]
    if priorities:
        return Device.priority.in_(priorities)
    stored = func.coalesce(Device.severity, "")
    severities = [severity for severity, name in _BY_SEVERITY.items() if name == health]
    has_severity = stored.in_(severities) if severities else stored.not_in(_BY_SEVERITY)
    # The priorities are listed, so that the database reads only these parts of the index.
    other_priorities = [priority.value for priority in Priority if priority not in _BY_PRIORITY]
    return and_(Device.priority.in_(other_priorities), has_severity)


def priority_of(severity: str | None) -> Priority:
    """Return the priority of a device that is online, by the severity of its newest reports."""
    return _ONLINE_BY_SEVERITY.get(severity or "", Priority.OK)


def most_severe(*severities: str | None) -> str | None:
    return min(filter(None, severities), key=SEVERITY_ORDER.index, default=None)


def record_report(context: RequestContext, device: Device, report: Report) -> None:
    """Store that ``report`` is the newest report of its kind from the device."""
    context.session.flush()
    if report.kind == "network":
        device.network_report = report.position
    else:
        device.application_report = report.position
    update_severity(context.session, device)
    # Consoles must reload their lists: the newest reports changed, even if the order did not.
    context.is_reordered = True


def update_severity(session: Session, device: Device) -> None:
    """Set the severity of the device from its newest reports, and its priority if it is online."""
    query = select(Report.severity).where(Report.position.in_(device.newest_reports))
    device.severity = most_severe(*session.scalars(query))
    if device.priority in ONLINE:
        device.priority = priority_of(device.severity)


def mark_online(session: Session, positions: Collection[int]) -> None:
    """Set the priority of devices that are online again.

    Args:
        positions: the row keys of the devices (`Device.position`).
    """
    by_severity = case(_ONLINE_BY_SEVERITY, value=Device.severity, else_=Priority.OK)
    statement = update(Device).where(Device.position.in_(positions), Device.revoked_at.is_(None))
    change_rows(session, statement.values(priority=by_severity))
