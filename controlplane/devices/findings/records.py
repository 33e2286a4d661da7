"""Messages of the lists of findings."""

from typing import Annotated, Final
from urllib.parse import quote_plus

from pydantic import Field

from agent.presentation.severity import Severity
from agent.wire.base import Absent, Array, Timestamp, Tolerant, Uuid
from agent.wire.text import Cursor, NonEmptyText
from agent.wire.vocabulary import Kind, Platform
from controlplane.devices.health import Health
from controlplane.devices.overview.records import Filters, FilterText, PrinterStateName

PAGE_MAX: Final = 100
PAGE_DEFAULT: Final = 20
DEVICES_MAX: Final = 500
DEVICES_DEFAULT: Final = 10
PRINTERS_MAX: Final = 100
PRINTERS_DEFAULT: Final = 20


class FindingsRequest(Filters):
    """``rule`` selects the finding that is counted by location, platform and version.

    Without ``rule``, all problems and warnings are counted.
    """

    rule: Absent[FilterText] = None


class FindingRecord(Tolerant):
    """The devices with a finding in their newest report.

    Attributes:
        rule: the code of the rule that creates the finding.
        title: the sentence of the finding, without the values of a device.
        fix: what to do.
        kinds: the kinds of reports that can have the finding.
        unknown_count: devices without a recent report of these kinds. They may have the finding.
        new_count: devices that have had the finding for less than a day.
        trend: devices with the finding at the end of each of the last thirty days (UTC), the
            present day last. Null if the devices are filtered by state or search, because it is
            not stored which devices matched such a filter on earlier days.
        link: address of the finding in the console.
    """

    rule: NonEmptyText
    title: str
    severity: Severity
    fix: str
    kinds: Array[Kind]
    device_count: int
    unknown_count: int
    new_count: int
    trend: Array[int] | None
    link: str


class FindingGroup(Tolerant):
    """Devices with one location, platform or version.

    ``value`` is the location id, platform or version. ``name`` is the name of the location, and
    null for a platform or version. ``count`` is the number of devices with the selected finding. If
    no finding is selected, it is the number of problems and warnings of these devices.
    ``unknown_count`` is the number of devices without a recent report of a kind that can have the
    selected finding, or of any kind if none is selected.
    """

    value: str
    name: str | None
    count: int
    unknown_count: int
    link: str


class FindingsReply(Tolerant):
    """Findings are ordered by severity, most severe first, and then by number of devices.

    Attributes:
        device_count: devices that match the filters and are not revoked.
        unknown_count: how many of these devices have no recent report of any kind.
        more_locations: number of locations that are left out.
    """

    device_count: int
    unknown_count: int
    findings: Array[FindingRecord]
    locations: Array[FindingGroup]
    more_locations: int
    platforms: Array[FindingGroup]
    versions: Array[FindingGroup]


class FindingDevicesRequest(FindingsRequest):
    """``is_new`` selects findings that a device has had for less than a day.

    ``devices`` is the maximum number of devices that an entry lists.
    """

    is_new: Absent[bool] = None
    cursor: Absent[Cursor] = None
    size: Absent[Annotated[int, Field(ge=1, le=PAGE_MAX)]] = None
    devices: Absent[Annotated[int, Field(ge=1, le=DEVICES_MAX)]] = None


class FindingDevice(Tolerant):
    """A device with a finding.

    Attributes:
        kind: the kind of the reports with the finding.
        since: when the first of the consecutive reports with the finding arrived.
        last_seen: when the newest report with the finding arrived.
        report_id: the newest report with the finding; null if it was deleted.
    """

    instance_id: Uuid
    name: NonEmptyText
    platform: Platform
    app_version: str | None
    health: Health
    kind: Kind
    sentence: str
    since: Timestamp
    last_seen: Timestamp
    report_id: Uuid | None


class FindingEntry(Tolerant):
    """The devices of a location that have the same finding.

    ``devices`` are the devices that have had the finding longest, and ``since`` is when it began on
    the first of them.
    """

    rule: NonEmptyText
    title: str
    severity: Severity
    fix: str
    location_id: NonEmptyText
    location_name: str | None
    device_count: int
    since: Timestamp
    devices: Array[FindingDevice]
    link: str


class FindingDevicesReply(Tolerant):
    """A page of findings at locations.

    ``unknown_count`` is the number of matching devices without a recent report of a kind that can
    have the selected finding, or of any kind if none is selected.
    """

    entries: Array[FindingEntry]
    next_cursor: str | None
    unknown_count: int


class WorstPrintersRequest(Filters):
    size: Absent[Annotated[int, Field(ge=1, le=PRINTERS_MAX)]] = None


class WorstPrinter(Tolerant):
    """A printer that was broken in the last thirty days.

    Attributes:
        state: the present state; null if the newest report does not list the printer, or
            if the device has no recent report.
        broken_seconds: how long it was broken.
        broken_count: how often it was broken.
    """

    id: NonEmptyText
    name: NonEmptyText
    state: PrinterStateName | None
    broken_seconds: int
    broken_count: int
    instance_id: Uuid
    device_name: NonEmptyText
    location_id: NonEmptyText
    location_name: str | None
    link: str


class WorstPrintersReply(Tolerant):
    """``unknown_count`` is the number of matching devices without a recent network report."""

    printers: Array[WorstPrinter]
    unknown_count: int


def link_of(filters: Filters, **changes: str | None) -> str:
    """Return the address of the findings in the console, with these filters.

    ``changes`` replace filters, and can add the ``rule``.
    """
    names = ("state", "location", "platform", "version", "search")
    values = {name: getattr(filters, name) for name in names} | changes
    query = "&".join(
        f"{key}={quote_plus(value)}" for key, value in values.items() if value is not None
    )
    return f"/#/findings?{query}" if query else "/#/findings"
