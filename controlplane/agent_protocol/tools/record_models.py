"""The arguments and records of read_business_records."""

from typing import Annotated, Final, Literal

from pydantic import Field

from agent.presentation.severity import Severity
from agent.wire.base import Absent, Array, Count, Exact, Timestamp, Tolerant, Uuid
from agent.wire.operator_operations import Device, RemoteRequest, ReportSummary
from agent.wire.payloads.history import Cause
from agent.wire.text import NonEmptyText
from agent.wire.vocabulary import Kind
from controlplane.agent_protocol.tools.tool import LocationIds, NextCursor
from controlplane.figures.records import Cents, PaymentType

RECORDS_MAX: Final = 100
LIMIT_DEFAULT: Final = 20
REPORTS_WITH_FINDINGS_MAX: Final = 5
"""A page of deviceReports with more than this number of reports contains no findings, because
parsing all the reports would take too long.
"""

Dataset = Literal[
    "sales", "refunds", "employees", "pointsOfSale", "devices", "deviceRequests", "deviceReports",
    "findings", "incidents",
]  # fmt: skip


class RecordFilters(Exact):
    locations: LocationIds = None
    since: Absent[Timestamp] = Field(
        default=None, alias="from", description="a time with a UTC offset, inclusive"
    )
    until: Absent[Timestamp] = Field(
        default=None, alias="to", description="a time with a UTC offset, exclusive"
    )
    payment_type: Absent[PaymentType] = None
    employee_id: Absent[NonEmptyText] = None
    status: Absent[NonEmptyText] = None
    number: Absent[NonEmptyText] = Field(default=None, description="number of a sale")
    ticket_number: Absent[NonEmptyText] = Field(
        default=None,
        description="short number on a receipt; numbers repeat, so give from and to as well",
    )
    instance_id: Absent[Uuid] = Field(default=None, description="instanceId of a device")
    rule: Absent[NonEmptyText] = Field(default=None, description="rule of a finding")
    severity: Absent[Severity] = None
    cause: Absent[Cause] = Field(default=None, description="cause of an incident")


class ReadBusinessRecordsArguments(Exact):
    dataset: Dataset
    filters: Absent[RecordFilters] = None
    cursor: NextCursor = None
    limit: Annotated[int, Field(ge=1, le=RECORDS_MAX)] = LIMIT_DEFAULT


class LineRecord(Tolerant):
    name: str
    good_id: Uuid | None
    variation_id: Uuid | None
    quantity_milli: int
    quantity_unit: str | None
    unit_price_cents: Cents
    discount_cents: Cents = Field(
        description="discount of the line, plus the line's share of the sale's discount"
    )
    total_cents: Cents = Field(description="paid amount, tax included")


class SaleRecord(Tolerant):
    sale_id: Uuid
    number: str
    ticket_number: str
    status: str = Field(description="completed, or unknown for an unresolved order")
    initiated_at: Timestamp
    location_id: str
    point_of_sale_id: str | None
    employee_id: str | None
    currency: str
    gross_cents: Cents
    discount_cents: Cents
    sale_cents: Cents
    known_vat_cents: Cents
    municipality_fee_cents: Cents
    tip_cents: Cents
    payment_type: str
    payment_method_name: str | None
    lines: Array[LineRecord] | None = Field(description="null: not known")


class RefundRecord(Tolerant):
    refund_id: Uuid
    sale_id: Uuid | None
    refunded_at: Timestamp | None = Field(description="null: not known")
    location_id: str
    employee_id: str | None
    currency: str
    refund_cents: Cents = Field(
        description="refunded goods; the whole refund if its components (goods, fee and tip) are"
        " not known"
    )
    refunded_fee_cents: Cents
    refund_tip_cents: Cents
    components_known: bool
    payment_type: str
    payment_method_name: str | None


class EmployeeRecord(Tolerant):
    employee_id: str
    name: str
    role: str
    status: str
    location_id: str | None = Field(description="null: not assigned to a single location")


class PointOfSaleRecord(Tolerant):
    point_of_sale_id: str
    name: str
    status: str
    location_id: str


class FindingRecord(Tolerant):
    severity: Severity = Field(description="bad, warn, good or muted")
    sentences: Array[str] = Field(
        description="what is wrong, one sentence for each match of the rule"
    )
    more_count: Count = Field(
        description="number of further matches of the rule, without a sentence"
    )
    fix: str = Field(description="what to do")


class DeviceReportRecord(ReportSummary):
    instance_id: Uuid
    headline: str | None = Field(description="the most severe finding, in one sentence")
    severity: Severity | None
    findings: Array[FindingRecord] | None = Field(
        description="most severe first; empty: nothing to report, or a report without content;"
        " null: unknown, because they cannot be read, or because this page has more than"
        f" {REPORTS_WITH_FINDINGS_MAX} reports"
    )


class DeviceFindingRecord(Tolerant):
    rule: str = Field(description="name of the finding; the same for all devices")
    severity: Severity
    sentence: str = Field(description="what is wrong")
    fix: str = Field(description='what to do; "…" stands for a value in the sentence')
    kind: Kind
    instance_id: Uuid
    location_id: str
    since: Timestamp = Field(
        description="time of the first of the consecutive reports with the finding"
    )
    last_seen: Timestamp = Field(description="time of the newest report with the finding")


class DeviceIncidentRow(Tolerant):
    """An incident: a device had no usable connection to the service, or it had a local fault."""

    instance_id: Uuid
    location_id: str
    cause: Cause
    title: str = Field(description="the cause, as a sentence without a full stop")
    began_at: Timestamp
    ended_at: Timestamp | None = Field(description="null: no report contains its end")
    downtime_seconds: int
    count: int = Field(description="number of interruptions or local faults in this incident")
    evidence: str = Field(
        description="what the device observed. For a local fault, it begins with what failed, such"
        " as the name of a print queue, and a colon"
    )


Record = (
    SaleRecord
    | RefundRecord
    | EmployeeRecord
    | PointOfSaleRecord
    | Device
    | RemoteRequest
    | DeviceReportRecord
    | DeviceFindingRecord
    | DeviceIncidentRow
)


class BusinessRecords(Tolerant):
    dataset: Dataset
    rows: Array[Record]
    next_cursor: str | None
    unknown_device_count: Count | None = Field(
        default=None,
        description="number of queried devices that sent, in the last seven days, no report of a"
        " kind that can contain such rows. Whether these devices have findings or incidents at"
        " present is not known."
        " null: the dataset is neither findings nor incidents",
    )
