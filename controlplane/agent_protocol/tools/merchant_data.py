"""read_merchant_data: the configuration of a merchant, by section."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from pydantic import Field
from sqlalchemy import select

from agent.wire.base import Array, Count, Exact, Number, Tolerant, Uuid
from controlplane.agent_protocol.tools.business_context import OrganizationContext, organization_of
from controlplane.agent_protocol.tools.business_records import first_records
from controlplane.agent_protocol.tools.record_models import (
    Dataset,
    EmployeeRecord,
    PointOfSaleRecord,
)
from controlplane.agent_protocol.tools.tool import ToolContext, tool
from controlplane.analytics.query import visible_locations
from controlplane.operation.records import record_of
from controlplane.storage.merchant.merchant_tables import (
    FeeItem,
    Location,
    PaymentMethod,
    UnitOfMeasure,
)

ROWS_MAX: Final = 500
MILLI: Final = 1000

Section = Literal[
    "organization", "locations", "fees", "uoms", "paymentMethods", "pointsOfSale", "employees"
]


class ReadMerchantDataArguments(Exact):
    section: Section


class LocationRow(Tolerant):
    location_id: str
    name: str
    currency: str
    time_zone: str | None = Field(
        description="as configured; if null or not a valid IANA name, days are in UTC"
    )


class FeeRow(Tolerant):
    fee_item_id: Uuid
    name: str
    kind: str
    percentage: Number | None = Field(description="null: exempt, or no percentage")


class UomRow(Tolerant):
    uom_id: Uuid
    name: str
    symbol: str
    exponent: int = Field(description="quantities are multiples of 10^-exponent units")


class PaymentMethodRow(Tolerant):
    payment_method_id: Uuid
    type: str
    name: str


Row = (
    OrganizationContext
    | LocationRow
    | FeeRow
    | UomRow
    | PaymentMethodRow
    | PointOfSaleRecord
    | EmployeeRecord
)


class MerchantData(Tolerant):
    section: Section
    rows: Array[Row]
    omitted_count: Count = Field(
        description="number of omitted rows; read_business_records returns all points of sale and"
        " employees"
    )


def read_merchant_data(
    context: ToolContext, arguments: ReadMerchantDataArguments
) -> tuple[str, MerchantData]:
    section = arguments.section
    if (dataset := _DATASETS.get(section)) is not None:
        rows, total = first_records(context, dataset, ROWS_MAX)
    else:
        rows = _SECTIONS[section](context)
        total = len(rows)
    first_rows = tuple(rows[:ROWS_MAX])
    answer = MerchantData(section=section, rows=first_rows, omitted_count=total - len(first_rows))
    return f"Rows of {section}: {len(first_rows)}.", answer


def _organization(context: ToolContext) -> list[Any]:
    return [organization_of(context)]


def _locations(context: ToolContext) -> list[Any]:
    positions = [location.position for location in visible_locations(context)]
    query = select(Location).where(Location.position.in_(positions)).order_by(Location.id)
    return [
        record_of(LocationRow, row, location_id=row.id, name=row.name or row.id, time_zone=row.zone)
        for row in context.session.scalars(query)
    ]


def _fees(context: ToolContext) -> list[Any]:
    rows = []
    for row in _by_name(context, FeeItem):
        milli = row.percentage_milli
        percentage = None if milli is None else milli / MILLI
        rows.append(record_of(FeeRow, row, fee_item_id=row.id, percentage=percentage))
    return rows


def _uoms(context: ToolContext) -> list[Any]:
    return [record_of(UomRow, row, uom_id=row.id) for row in _by_name(context, UnitOfMeasure)]


def _payment_methods(context: ToolContext) -> list[Any]:
    return [
        record_of(PaymentMethodRow, row, payment_method_id=row.id)
        for row in _by_name(context, PaymentMethod)
    ]


def _by_name(context: ToolContext, table: Any) -> list[Any]:
    query = select(table).where(table.organization_id == context.caller.organization_id)
    return list(context.session.scalars(query.order_by(table.name, table.id)))


_SECTIONS: Final[Mapping[Section, Callable[[ToolContext], list[Any]]]] = {
    "organization": _organization,
    "locations": _locations,
    "fees": _fees,
    "uoms": _uoms,
    "paymentMethods": _payment_methods,
}
_DATASETS: Final[Mapping[Section, Dataset]] = {
    "pointsOfSale": "pointsOfSale", "employees": "employees",
}  # fmt: skip
"""The sections whose rows are the records of a dataset (`first_records`)."""

READ_MERCHANT_DATA = tool(
    read_merchant_data,
    "Merchant data",
    "The configuration of the merchant: organization, locations, fees and taxes, units of measure,"
    " payment methods, points of sale, employees.",
)
