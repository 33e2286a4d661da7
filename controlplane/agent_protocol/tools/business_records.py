"""read_business_records: pages of single sales, refunds, employees and other records."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Dialect,
    Select,
    TypeDecorator,
    func,
    select,
    type_coerce,
)

from agent.wire.vocabulary import Kind
from controlplane.agent_protocol.tools import record_conversion as conversion
from controlplane.agent_protocol.tools.record_models import (
    REPORTS_WITH_FINDINGS_MAX,
    BusinessRecords,
    Dataset,
    ReadBusinessRecordsArguments,
    Record,
    RecordFilters,
)
from controlplane.agent_protocol.tools.tool import ToolContext, ToolError, named_locations, tool
from controlplane.devices.findings.storing import RECENT
from controlplane.figures.financial import QueryLocation
from controlplane.operation.paging import Order, listing_of, page, page_statement
from controlplane.storage.merchant.merchant_tables import Employee, PointOfSale
from controlplane.storage.merchant.sales_tables import Refund, Sale
from controlplane.storage.report_tables import DeviceFinding, DeviceIncident, JudgedReport
from controlplane.storage.tables import Device, Report, Request

RowConverter = Callable[[ToolContext, Sequence[Any], conversion.Ids], Iterable[Record]]
KINDS: Final[Mapping[Dataset, tuple[Kind, ...]]] = {
    "findings": ("network", "application"),
    "incidents": ("application",),
}
"""The kinds of reports from which the rows of a dataset come, by dataset."""


class EpochSeconds(TypeDecorator[datetime]):
    """The type of a column with seconds since 1970 that can be compared with a datetime."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return None if value is None else int(value.timestamp())


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a dataset.

    Attributes:
        table: the class of the rows. Its column ``location`` has the row key
            (``Location.position``) of a location. A table without this column has the column
            ``location_id``.
        convert: converts rows to the records of the dataset.
        time: the column that ``from`` and ``to`` filter.
        has_shared_rows: whether rows without a location are visible to all callers.
        columns: the columns of further filters, by name.
        condition: returns an SQL condition that selects the rows of the dataset.
    """

    table: Any
    convert: RowConverter
    order: Order
    time: Any = None
    has_shared_rows: bool = False
    columns: Mapping[str, Any] = field(default_factory=dict)
    condition: Callable[[ToolContext], ColumnElement[bool]] | None = None

    @property
    def filters(self) -> tuple[str, ...]:
        times = ("from", "to") if self.time is not None else ()
        return ("locations", *times, *self.columns)

    @property
    def has_location_keys(self) -> bool:
        """Whether the rows refer to locations by row key (``Location.position``), not by id."""
        return hasattr(self.table, "location")

    @property
    def location(self) -> Any:
        """The column with the row key or the id of the location."""
        return self.table.location if self.has_location_keys else self.table.location_id


def read_business_records(
    context: ToolContext, arguments: ReadBusinessRecordsArguments
) -> tuple[str, BusinessRecords]:
    source = SOURCES[arguments.dataset]
    filters = arguments.filters or RecordFilters()
    _require_supported(arguments.dataset, source, filters)
    locations = named_locations(context, filters.locations) if source.has_location_keys else []
    ids = {location.position: location.location_id for location in locations}
    query = _query(context, source, filters, locations)
    listing = listing_of(context, type(arguments).__name__, arguments)
    rows, cursor = page(
        context, query, source.order, listing, cursor=arguments.cursor, limit=arguments.limit
    )
    page_records = tuple(source.convert(context, rows, ids))
    location_ids = None if source.has_location_keys else _location_ids(context, filters)
    unknown = _unknown_device_count(context, arguments.dataset, location_ids, filters.instance_id)
    note = f" Devices whose present {arguments.dataset} are unknown: {unknown}." if unknown else ""
    more = "; more with nextCursor" if cursor else ""
    answer = BusinessRecords(
        dataset=arguments.dataset,
        rows=page_records,
        next_cursor=cursor,
        unknown_device_count=unknown,
    )
    return f"Rows of {arguments.dataset}: {len(page_records)}{more}.{note}", answer


def first_records(context: ToolContext, dataset: Dataset, limit: int) -> tuple[list[Any], int]:
    """Return the first ``limit`` records that the caller has access to, and the number of all."""
    source, locations = SOURCES[dataset], named_locations(context, None)
    query = _query(context, source, RecordFilters(), locations)
    total = context.session.scalars(select(func.count()).select_from(query.subquery())).one()
    rows = context.session.scalars(page_statement(query, source.order, limit)).all()
    ids = {location.position: location.location_id for location in locations}
    return list(source.convert(context, rows[:limit], ids)), total


def _values_of(filters: RecordFilters) -> dict[str, Any]:
    """Return the filters by their names on the wire."""
    return filters.model_dump(by_alias=True, exclude_none=True)


def _require_supported(dataset: Dataset, source: Source, filters: RecordFilters) -> None:
    if unsupported_names := [name for name in _values_of(filters) if name not in source.filters]:
        raise ToolError(
            f"{dataset} cannot be filtered by {', '.join(unsupported_names)}."
            f" Supported filters: {', '.join(source.filters)}."
        )


def _query(
    context: ToolContext, source: Source, filters: RecordFilters, locations: Sequence[QueryLocation]
) -> Select[Any]:
    organization = context.caller.organization_id
    query = select(source.table).where(source.table.organization_id == organization)
    if source.condition is not None:
        query = query.where(source.condition(context))
    if filters.locations is not None or context.caller.locations:
        visible: Sequence[Any] = [location.position for location in locations]
        if not source.has_location_keys:
            visible = _location_ids(context, filters) or ()
        is_visible = source.location.in_(visible)
        if source.has_shared_rows and filters.locations is None:
            is_visible |= source.location.is_(None)
        query = query.where(is_visible)
    if filters.since is not None:
        query = query.where(source.time >= filters.since)
    if filters.until is not None:
        query = query.where(source.time < filters.until)
    filter_values = _values_of(filters)
    for name, column in source.columns.items():
        if name in filter_values:
            values = _matching_values(context, name, column, filter_values[name])
            query = query.where(column.in_(values))
    return query


def _location_ids(context: ToolContext, filters: RecordFilters) -> Sequence[str] | None:
    """Return the ids of the locations whose rows are read, or None for the whole organization.

    A location that has devices but no row in the table of locations is accepted, too.
    """
    if filters.locations is None:
        return sorted(context.caller.locations) or None
    for location_id in filters.locations:
        context.require_access(context.caller.organization_id, location_id, "location")
    return filters.locations


def _matching_values(context: ToolContext, name: str, column: Any, value: Any) -> Any:
    """Return the values of a column that match the value of a filter.

    If the column contains row keys (``position``), ``value`` is the id of an object, and the row
    key of this object is returned.
    """
    if name == "instanceId" and column.key == "device":
        return select(Device.position).where(Device.instance_id == value)
    if name == "employeeId":
        return select(Employee.position).where(
            Employee.organization_id == context.caller.organization_id, Employee.id == value
        )
    return [value]


def _unknown_device_count(
    context: ToolContext, dataset: Dataset, locations: Sequence[str] | None, instance_id: Any
) -> int | None:
    """Return the number of devices without a recent report of the `KINDS` of ``dataset``.

    Returns None if ``dataset`` is neither findings nor incidents.

    Args:
        locations: the locations of the devices; None for all locations of the organization.
        instance_id: counts only the device with this id; None for all devices.
    """
    if dataset not in KINDS:
        return None
    reports = select(JudgedReport.device).where(
        JudgedReport.kind.in_(KINDS[dataset]),
        JudgedReport.arrived_at >= context.now - RECENT,
    )
    query = select(func.count()).where(
        Device.organization_id == context.caller.organization_id,
        Device.revoked_at.is_(None),
        Device.position.not_in(reports),
    )
    if locations is not None:
        query = query.where(Device.location_id.in_(locations))
    if instance_id is not None:
        query = query.where(Device.instance_id == instance_id)
    return context.session.scalars(query).one()


def _is_recent(context: ToolContext) -> ColumnElement[bool]:
    """Return the SQL condition for findings that a recent report contains.

    Older findings may have ended.
    """
    return DeviceFinding.last_seen >= context.now - RECENT


SOURCES: Final[Mapping[Dataset, Source]] = {
    "sales": Source(
        table=Sale,
        convert=conversion.sale_records,
        order=Order(Sale.position, Sale.initiated_at, is_descending=True),
        time=Sale.initiated_at,
        columns={
            "paymentType": Sale.payment_type,
            "employeeId": Sale.employee,
            "status": Sale.status,
            "number": Sale.number,
            "ticketNumber": Sale.ticket_number,
        },
    ),
    "refunds": Source(
        table=Refund,
        convert=conversion.refund_records,
        order=Order(Refund.position, is_descending=True),
        time=Refund.refunded_at,
        columns={"paymentType": Refund.payment_type, "employeeId": Refund.employee},
    ),
    "employees": Source(
        table=Employee,
        convert=conversion.employee_records,
        order=Order(Employee.position),
        has_shared_rows=True,
        columns={"status": Employee.status},
    ),
    "pointsOfSale": Source(
        table=PointOfSale,
        convert=conversion.point_of_sale_records,
        order=Order(PointOfSale.position),
        columns={"status": PointOfSale.status},
    ),
    "devices": Source(
        table=Device,
        convert=conversion.device_list_records,
        order=Order(Device.position),
        columns={"instanceId": Device.instance_id},
    ),
    "deviceRequests": Source(
        table=Request,
        convert=conversion.request_records,
        order=Order(Request.position, is_descending=True),
        time=Request.created_at,
        columns={"instanceId": Request.instance_id},
    ),
    "deviceReports": Source(
        table=Report,
        convert=conversion.report_records,
        order=Order(Report.position, is_descending=True),
        time=Report.created_at,
        columns={"instanceId": Report.instance_id},
    ),
    "findings": Source(
        table=DeviceFinding,
        convert=conversion.finding_records,
        order=Order(DeviceFinding.position, is_descending=True),
        time=DeviceFinding.since,
        columns={
            "instanceId": DeviceFinding.device,
            "rule": DeviceFinding.rule,
            "severity": DeviceFinding.severity,
        },
        condition=_is_recent,
    ),
    "incidents": Source(
        table=DeviceIncident,
        convert=conversion.incident_records,
        order=Order(DeviceIncident.position, is_descending=True),
        time=type_coerce(DeviceIncident.began_s, EpochSeconds),
        columns={"instanceId": DeviceIncident.device, "cause": DeviceIncident.cause},
    ),
}

READ_BUSINESS_RECORDS = tool(
    read_business_records,
    "Business records",
    "Pages of single records: sales with their lines, refunds, employees, points of sale, devices,"
    " and the requests, reports, findings and incidents of devices. Sales, refunds,"
    " requests and reports are listed newest first. To find a receipt, filter by number or"
    f" ticketNumber. To get the findings of each report in deviceReports, set limit to at most"
    f" {REPORTS_WITH_FINDINGS_MAX}. For sums use query_sales.",
)
