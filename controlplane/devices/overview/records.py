"""What the console's own calls take and answer, beside the contract's."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from agent.wire.base import Absent, Array, Exact, MaxItems, Tolerant, Uuid
from agent.wire.operator_operations import Device, DeviceDetailReply
from agent.wire.text import Cursor, NonEmptyText, PayloadText
from agent.wire.vocabulary import Kind, Outcome, Platform, RequestStatus
from controlplane.devices.timeline.records import Presence
from controlplane.operation.storable_text import STORABLE

RowState = Literal["offline", "never-seen", "online", "closed", "maintenance", "revoked"]
State = RowState | Literal["broken", "warned", "working"]
FilterText = Annotated[PayloadText, *STORABLE]
PAGE_MAX = 200
PAGE_DEFAULT = 50


class Filters(Exact):
    """``search`` holds words that all have to be found; ``version`` "" is one that told none."""

    state: Absent[State] = None
    location: Absent[FilterText] = None
    platform: Absent[Platform] = None
    version: Absent[FilterText] = None
    search: Absent[FilterText] = None


class OverviewRequest(Filters):
    cursor: Absent[Cursor] = None
    size: Absent[Annotated[int, Field(ge=1, le=PAGE_MAX)]] = None


class SummaryRequest(Exact):
    """The body of a call that has nothing to say."""


class ChangesRequest(Exact):
    """The devices that the console shows."""

    instance_ids: Annotated[tuple[Uuid, ...], MaxItems(PAGE_MAX)]


class ReportLine(Tolerant):
    report_id: Uuid
    instance_id: Uuid
    request_id: Uuid | None
    kind: Kind
    outcome: Outcome
    created_at: datetime
    tone: str | None
    headline: str | None


class OpenRequest(Tolerant):
    id: Uuid
    kind: Kind
    status: RequestStatus
    created_at: datetime
    started_at: datetime | None
    asked_by: str | None


class PendingRequestRecord(Tolerant):
    """A report that is asked for when the device is heard."""

    id: Uuid
    kind: Kind
    until: datetime
    created_at: datetime
    asked_by: str | None


class Row(Tolerant):
    """``reports`` are the newest of each kind, ``requests`` those that are open, ``wishes`` those
    that wait until the device is heard. ``state`` closed and maintenance are not heard, and need
    not be; ``maintenance_until`` is also of one that is heard."""

    device: Device
    state: RowState
    maintenance_until: datetime | None
    tone: str | None
    reports: Array[ReportLine]
    requests: Array[OpenRequest]
    wishes: Array[PendingRequestRecord]


class OverviewReply(Tolerant):
    devices: Array[Row]
    next_cursor: str | None
    can_write: bool


class Count(Tolerant):
    value: str | None
    count: int


class NamedReport(ReportLine):
    name: NonEmptyText
    location_id: NonEmptyText


class SummaryReply(Tolerant):
    """``states`` count devices; one may be in several."""

    states: dict[str, int]
    versions: Array[Count]
    platforms: Array[Count]
    locations: Array[Count]
    reports: Array[NamedReport]
    can_write: bool


class ReportChange(Tolerant):
    tone: str
    sentence: str


class ReportChanges(Tolerant):
    """What is otherwise than in the report before, ``earlier_id``, which arrived at ``since``.

    ``more`` changes are not listed; ``not_compared`` says what one of the two did not look at.
    """

    report_id: Uuid
    kind: Kind
    earlier_id: Uuid
    since: datetime
    verdict: str
    tone: str
    changes: Array[ReportChange]
    more: int
    not_compared: Array[str]


class ReportTableRequest(Exact):
    """One of a report's tables (`agent.presentation.report_csv`)."""

    report_id: Uuid
    table: Annotated[str, Field(max_length=32)]


class DeviceReply(Tolerant):
    """A page of `deviceDetail` with what the console adds: the newest row, a line for each report,
    who asked, by the id that requests name, and, on the first page, what the newest report of each
    kind says that the one before it did not, and thirty days of being heard."""

    detail: DeviceDetailReply
    row: Row
    lines: Array[ReportLine]
    askers: dict[str, str]
    changes: Array[ReportChanges]
    presence: Presence
    can_write: bool
