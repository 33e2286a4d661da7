"""A notice as a webhook gets it: a body for programs, with a line for people in ``text``."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from agent.presentation.humanize import format_seconds

SAYS: Final = {
    ("offline", False): "is offline",
    ("broken", False): "reports a fault",
    ("dark", False): "is dark",
    ("offline", True): "comes and goes",
    ("broken", True): "reports a fault and none in turn",
    ("dark", True): "goes dark and comes back in turn",
}
SAYS_OF_ENDS: Final = {
    ("offline", False): "is heard again",
    ("broken", False): "reports no fault any more",
    ("dark", False): "is back",
    ("offline", True): "has not come or gone for an hour",
    ("broken", True): "has reported the same for an hour",
    ("dark", True): "has been steady for an hour",
}


@dataclass(frozen=True, slots=True)
class Told:
    notice_id: UUID
    organization_id: str
    location_id: str
    instance_id: str | None
    name: str
    condition: str
    is_flapping: bool
    is_end: bool
    since: datetime
    until: datetime | None
    detail: str
    zone: str | None


def body_of(told: Told) -> dict[str, Any]:
    """Return the JSON that docs/notices.md describes."""
    return {
        "type": "notice.ended" if told.is_end else "notice.opened",
        "text": text_of(told),
        "noticeId": str(told.notice_id),
        "organizationId": told.organization_id,
        "locationId": told.location_id,
        "instanceId": told.instance_id,
        "name": told.name,
        "condition": told.condition,
        "flapping": told.is_flapping,
        "since": _wire(told.since),
        "until": None if told.until is None else _wire(told.until),
        "detail": told.detail,
    }


def text_of(told: Told) -> str:
    what = (told.condition, told.is_flapping)
    where = f"{told.name} ({told.location_id})" if told.instance_id else told.location_id
    if not told.is_end or told.until is None:
        detail = f": {told.detail}" if told.detail else ""
        return f"{where} {SAYS[what]} since {_clock(told.since, told.zone)}{detail}"
    lasted = format_seconds(max(0, int((told.until - told.since).total_seconds())))
    return f"{where} {SAYS_OF_ENDS[what]}, after {lasted}"


def _clock(moment: datetime, zone: str | None) -> str:
    local = moment.astimezone(ZoneInfo(zone) if zone else UTC)
    return f"{local:%H:%M}" + ("" if zone else " UTC")


def _wire(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
