"""The arguments and records of read_business_records."""

from typing import Annotated, Final, Literal

from pydantic import Field

from agent.wire.base import Absent, Array, Exact, MaxItems, Timestamp, Tolerant, Uuid
from agent.wire.operator_operations import Device, RemoteRequest, ReportSummary
from agent.wire.text import Cursor, NonEmptyText
from controlplane.agent_protocol.tools.tool import LOCATIONS_MAX
from controlplane.figures.records import Cents
from controlplane.merchant.sales import PaymentType

RECORDS_MAX: Final = 100
RECORDS_USUAL: Final = 20

Dataset = Literal[
    "sales", "refunds", "employees", "pointsOfSale", "devices", "deviceRequests", "deviceReports"
]


class RecordFilters(Exact):
    locations: Absent[Annotated[tuple[NonEmptyText, ...], MaxItems(LOCATIONS_MAX)]] = Field(
        default=None, description="ids of locations; default: all that you have access to"
    )
    since: Absent[Timestamp] = Field(
        default=None, alias="from", description="a time with its offset, inclusive"
    )
    until: Absent[Timestamp] = Field(
        default=None, alias="to", description="a time with its offset, exclusive"
    )
    payment_type: Absent[PaymentType] = None
    employee_id: Absent[NonEmptyText] = None
    status: Absent[NonEmptyText] = None
    instance_id: Absent[Uuid] = Field(default=None, description="instanceId of a device")


class ReadBusinessRecordsArguments(Exact):
    dataset: Dataset
    filters: Absent[RecordFilters] = None
    cursor: Absent[Cursor] = Field(
        default=None, description="nextCursor of the previous call, with the same arguments"
    )
    limit: Annotated[int, Field(ge=1, le=RECORDS_MAX)] = RECORDS_USUAL


class LineRecord(Tolerant):
    name: str
    good_id: Uuid | None
    variation_id: Uuid | None
    quantity_milli: int
    quantity_unit: str | None
    unit_price_cents: Cents
    discount_cents: Cents = Field(
        description="discount of the line, and its share of the sale's discount"
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
        description="refunded goods; the whole refund if its components are not known"
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


Record = (
    SaleRecord
    | RefundRecord
    | EmployeeRecord
    | PointOfSaleRecord
    | Device
    | RemoteRequest
    | ReportSummary
)


class BusinessRecords(Tolerant):
    dataset: Dataset
    rows: Array[Record]
    next_cursor: str | None
