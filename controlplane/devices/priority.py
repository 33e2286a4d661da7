"""In which order devices want to be looked at: what is broken first.

It is kept with the device, because a list of 50,000 is not sorted for each look at it. What time
alone changes, that a device has fallen silent or its location has closed, the sweep finds
(`controlplane.devices.liveness`).
"""

from collections.abc import Collection
from enum import IntEnum
from typing import Final

from sqlalchemy import case, select, update
from sqlalchemy.orm import Session

from controlplane.operation.context import RequestContext
from controlplane.storage.tables import Device, Report

TONES: Final = ("bad", "warn", "good", "muted")
"""Of reports, worst first."""
POSITIONS_A_STEP: Final = 500


class Priority(IntEnum):
    """A device's place in a list. Stored: a number never changes its meaning."""

    OFFLINE = 0
    NEVER_SEEN = 1  # enrolled, and not heard since
    BROKEN = 2
    WARNED = 3
    WELL = 4
    CLOSED = 6  # not heard, and its location is closed
    MAINTENANCE = 7  # not heard, and somebody said that it is worked on
    REVOKED = 9  # 5 until layout 0005


SILENT: Final = frozenset({Priority.OFFLINE, Priority.NEVER_SEEN})
EXCUSED: Final = frozenset({Priority.CLOSED, Priority.MAINTENANCE})
UNHEARD: Final = SILENT | EXCUSED
HEARD: Final = frozenset({Priority.BROKEN, Priority.WARNED, Priority.WELL})


def priority_of(tone: str | None) -> Priority:
    """Return that of a device that is heard, by the worse of its newest reports."""
    return {"bad": Priority.BROKEN, "warn": Priority.WARNED}.get(tone or "", Priority.WELL)


def worst(*tones: str | None) -> str | None:
    """Return the worst of these; None where there is none."""
    return min(filter(None, tones), key=TONES.index, default=None)


def note_report(context: RequestContext, device: Device, report: Report) -> None:
    """Make ``report`` the newest of its kind."""
    context.session.flush()
    if report.kind == "network":
        device.network_report = report.position
    else:
        device.application_report = report.position
    judge(context.session, device)
    # At least the newest reports of all are others.
    context.is_reordered = True


def judge(session: Session, device: Device) -> None:
    """Set the device's tone and priority by its newest reports."""
    newest = (device.network_report, device.application_report)
    query = select(Report.tone).where(Report.position.in_([each for each in newest if each]))
    device.tone = worst(*session.scalars(query))
    if device.priority in HEARD:
        device.priority = priority_of(device.tone)


def note_return(session: Session, positions: Collection[int]) -> None:
    """Devices that were silent are heard again."""
    by_tone = case(
        (Device.tone == "bad", Priority.BROKEN),
        (Device.tone == "warn", Priority.WARNED),
        else_=Priority.WELL,
    )
    session.execute(
        update(Device)
        .where(Device.position.in_(positions), Device.revoked_at.is_(None))
        .values(priority=by_tone)
        .execution_options(synchronize_session=False)
    )
