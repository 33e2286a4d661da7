"""Messages of the operations for the settings of locations."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from agent.wire.base import Array, Exact, MaxItems, Tolerant, Uuid
from agent.wire.text import LocationId
from controlplane.operation.storable_text import NAME_MAX, STORABLE

LINES_MAX = 50
Location = Annotated[LocationId, *STORABLE]
Name = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=NAME_MAX), *STORABLE
]
Zone = Annotated[str, Field(min_length=1, max_length=64)]
Line = Annotated[str, Field(max_length=64)]
WebhookOwner = Literal["organization", "operator"]
LocalTime = Annotated[str, Field(min_length=1, max_length=40)]
"""An ISO 8601 time. Without a UTC offset, it is in the location's time zone."""


class MaintenanceRecord(Tolerant):
    """A current or planned maintenance window. A null ``instance_id`` means the whole location."""

    instance_id: Uuid | None
    device_name: str | None
    since: datetime
    until: datetime
    reason: str


class LocationRecord(Tolerant):
    """A location. ``opening_hours`` null means that it is always open."""

    location_id: str
    name: str | None
    time_zone: str | None
    opening_hours: Array[str] | None
    maintenance: Array[MaintenanceRecord]
    device_count: int


class LocationsReply(Tolerant):
    """The locations that the caller may see, sorted by name.

    Attributes:
        organization_name: null if the organization has no name.
        can_write: whether the caller may change the settings of these locations.
        can_add: whether the caller may add locations and name the organization.
        alerts_to: "organization" if a route of the organization is enabled, "operator" if only the
            webhook of the service's operator is configured, or null if no alerts are sent.
    """

    organization_name: str | None
    locations: Array[LocationRecord]
    can_write: bool
    can_add: bool
    alerts_to: WebhookOwner | None


class LocationAddRequest(Exact):
    """A new location. Without ``location_id``, the service chooses the id."""

    location_id: Location | None
    name: Name
    time_zone: Zone


class LocationAddReply(Tolerant):
    location_id: str
    name: str


class LocationNameRequest(Exact):
    location_id: Location
    name: Name


class LocationHoursRequest(Exact):
    """``opening_hours`` has lines such as ``Mon-Fri 08:00-22:00``; null means always open."""

    location_id: Location
    time_zone: Zone
    opening_hours: Annotated[tuple[Line, ...], MaxItems(LINES_MAX)] | None


class MaintenanceRequest(Exact):
    """``since`` null means now. A null ``instance_id`` means the whole location."""

    location_id: Location
    instance_id: Uuid | None
    since: LocalTime | None
    until: LocalTime
    reason: Annotated[str, Field(max_length=NAME_MAX), *STORABLE]


class MaintenanceEndRequest(Exact):
    location_id: Location
    instance_id: Uuid | None


class MaintenanceEndReply(Tolerant):
    """``ended`` is the number of windows that were ended or cancelled."""

    ended: int


class OrganizationNameRequest(Exact):
    name: Name


class NameReply(Tolerant):
    name: str


class LocationHoursReply(Tolerant):
    """``recalculates`` is true if the sales figures of the location were computed again."""

    recalculates: bool
