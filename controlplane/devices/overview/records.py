"""Messages of the console's own operations, in addition to those of the contract."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from agent.presentation.severity import Severity
from agent.wire.base import Absent, Array, Exact, MaxItems, Timestamp, Tolerant, Uuid
from agent.wire.operator_operations import Device, DeviceDetailReply, ReportSummary
from agent.wire.text import Cursor, NonEmptyText, PayloadText
from agent.wire.vocabulary import Kind, Outcome, Platform, RequestStatus
from controlplane.devices.health import Health
from controlplane.devices.incidents.records import IncidentRecord
from controlplane.devices.timeline.timeline import Timeline
from controlplane.operation.storable_text import STORABLE

RowState = Literal["offline", "never-connected", "online", "closed", "maintenance", "revoked"]
State = Health | Literal["online", "closed", "maintenance", "busy"]
"""A state by which devices are filtered and counted. Every device has exactly one health. A device
can also be online, closed, in maintenance, or busy, which means that it has open requests."""
PrinterStateName = Literal["broken", "warning", "unknown", "healthy"]
FilterText = Annotated[PayloadText, *STORABLE]
PAGE_MAX = 200
PAGE_DEFAULT = 50
HEALTHS_PAGE_MAX = 5000


class Filters(Exact):
    """All words in ``search`` must match.

    An empty ``version`` selects devices whose version is unknown.
    """

    state: Absent[State] = None
    location: Absent[FilterText] = None
    platform: Absent[Platform] = None
    version: Absent[FilterText] = None
    search: Absent[FilterText] = None


class OverviewRequest(Filters):
    """With ``count``, the reply contains ``total`` and ``requestable``.

    Both numbers also include the devices on other pages.
    """

    count: Absent[bool] = None
    cursor: Absent[Cursor] = None
    size: Absent[Annotated[int, Field(ge=1, le=PAGE_MAX)]] = None


class ChangesRequest(Exact):
    """The devices that the console displays."""

    instance_ids: Annotated[tuple[Uuid, ...], MaxItems(PAGE_MAX)]


class ReportLine(Tolerant):
    report_id: Uuid
    instance_id: Uuid
    request_id: Uuid | None
    kind: Kind
    outcome: Outcome
    created_at: datetime
    severity: str | None
    headline: str | None


class OpenRequest(Tolerant):
    id: Uuid
    kind: Kind
    status: RequestStatus
    created_at: datetime
    started_at: datetime | None
    requested_by: str | None


class PendingRequestRecord(Tolerant):
    """A request that waits until the device is online.

    It expires at ``until`` if the device is not online before that time.
    """

    id: Uuid
    kind: Kind
    until: datetime
    created_at: datetime
    requested_by: str | None


class Row(Tolerant):
    """A device with its status.

    Attributes:
        health: the stored health (`controlplane.devices.priority`), by which devices are counted
            and filtered.
        state: whether the device is online now. A device with the state ``closed`` or
            ``maintenance`` is not online, and need not be online now.
        maintenance_until: end of the current maintenance window, even if the device is online.
        severity: the highest severity of the device's newest reports.
        reports: the newest report of each kind, if it is from the present location of the device.
        requests: the open requests.
    """

    device: Device
    health: Health
    state: RowState
    maintenance_until: datetime | None
    severity: str | None
    reports: Array[ReportLine]
    requests: Array[OpenRequest]
    pending_requests: Array[PendingRequestRecord]


class OverviewReply(Tolerant):
    """``total`` and ``requestable`` are null unless requested.

    ``requestable`` is the number of matching devices that are not revoked.
    """

    devices: Array[Row]
    next_cursor: str | None
    can_write: bool
    total: int | None
    requestable: int | None


class Count(Tolerant):
    """The number of devices with a version, a platform or a location.

    ``value`` is the version, the platform, or the id of the location. None is an unknown version.
    """

    value: str | None
    count: int


class HealthsRequest(Exact):
    """All words in ``search`` must match, as in `Filters`."""

    search: Absent[FilterText] = None
    cursor: Absent[Cursor] = None
    size: Absent[Annotated[int, Field(ge=1, le=HEALTHS_PAGE_MAX)]] = None


class DeviceHealth(Tolerant):
    instance_id: Uuid
    health: Health


class HealthsReply(Tolerant):
    devices: Array[DeviceHealth]
    next_cursor: str | None


class ListedReport(ReportSummary):
    """A report with its headline, and the name and the location of its device."""

    instance_id: Uuid
    name: NonEmptyText
    location_name: str | None
    severity: Severity | None
    headline: str | None


class NamedReport(ReportLine):
    name: NonEmptyText
    location_id: NonEmptyText


class ReportsRequest(Exact):
    """Selects reports by device, by kind, and by a creation time of ``since`` or later.

    A field that is not given does not restrict the selection.
    """

    instance_id: Absent[Uuid] = None
    kind: Absent[Kind] = None
    since: Absent[Timestamp] = None
    cursor: Absent[Cursor] = None
    size: Absent[Annotated[int, Field(ge=1, le=PAGE_MAX)]] = None


class ReportsReply(Tolerant):
    reports: Array[ListedReport]
    next_cursor: str | None


class PrintersRequest(Exact):
    """Each word in ``search`` must match the printer, its device, or the location of the device."""

    state: Absent[PrinterStateName] = None
    location: Absent[FilterText] = None
    search: Absent[FilterText] = None
    cursor: Absent[Cursor] = None
    size: Absent[Annotated[int, Field(ge=1, le=PAGE_MAX)]] = None


class PrinterRecord(Tolerant):
    """A printer of a device.

    Attributes:
        detail: the reason for the state, as the device reported it.
        since: when the first of the consecutive reports with this state arrived.
        health: health of the device.
    """

    id: NonEmptyText
    name: NonEmptyText
    address: str | None
    state: PrinterStateName
    detail: str
    since: Timestamp
    device: Device
    health: Health


class PrintersReply(Tolerant):
    """``states`` has the number of printers in each state, whatever ``state`` the request selects.

    ``states`` is empty on all pages after the first.
    """

    printers: Array[PrinterRecord]
    states: dict[str, int]
    next_cursor: str | None


class SummaryReply(Tolerant):
    """``states`` has the number of devices in each `State`, and under ``all`` the number of all
    devices. The numbers of the healths add up to ``all``.

    ``reports`` are the newest reports of these devices.
    """

    states: dict[str, int]
    versions: Array[Count]
    platforms: Array[Count]
    locations: Array[Count]
    reports: Array[NamedReport]
    can_write: bool


class ReportChange(Tolerant):
    severity: str
    sentence: str


class ReportChanges(Tolerant):
    """Differences of a report from the previous report of its kind.

    Attributes:
        earlier_id: id of the previous report.
        since: when the previous report was received.
        verdict: one sentence with the most severe change and the number of further changes.
        severity: severity of the most severe change.
        more: number of changes that are not listed.
        not_compared: parts that only one of the two reports contains.
    """

    report_id: Uuid
    kind: Kind
    earlier_id: Uuid
    since: datetime
    verdict: str
    severity: str
    changes: Array[ReportChange]
    more: int
    not_compared: Array[str]


class ReportTableRequest(Exact):
    """Selects one table of a report (`agent.presentation.report_csv`)."""

    report_id: Uuid
    table: Annotated[str, Field(max_length=32)]


class DeviceReply(Tolerant):
    """A page of `deviceDetail` with more details for the console.

    Attributes:
        lines: a summary of each report.
        requesters: names of the users and API keys that created the requests, by id.
        changes: differences of each newest report from the previous report of its kind. Empty on
            all pages after the first.
        incidents: the newest incidents that the device shared with other devices of its location.
            Empty on all pages after the first.
    """

    detail: DeviceDetailReply
    row: Row
    lines: Array[ReportLine]
    requesters: dict[str, str]
    changes: Array[ReportChanges]
    incidents: Array[IncidentRecord]
    timeline: Timeline
    can_write: bool
