"""read_business_records: pages of single sales, refunds, employees and other records."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, func, select, type_coerce

from agent.wire.operator_operations import RemoteRequest
from controlplane.agent_protocol.tools.health_records import (
    EpochSeconds,
    finding_records,
    incident_records,
    is_recent,
    unknown_device_count,
)
from controlplane.agent_protocol.tools.record_models import (
    REPORTS_WITH_FINDINGS_MAX,
    BusinessRecords,
    Dataset,
    DeviceReportRecord,
    EmployeeRecord,
    FindingRecord,
    PointOfSaleRecord,
    ReadBusinessRecordsArguments,
    Record,
    RecordFilters,
)
from controlplane.agent_protocol.tools.sale_records import refund_records, sale_records
from controlplane.agent_protocol.tools.tool import ToolContext, ToolError, named_locations, tool
from controlplane.devices.overview.summaries import findings_in
from controlplane.devices.reading import show_due_as_expired
from controlplane.devices.records import device_records
from controlplane.figures.financial import QueryLocation
from controlplane.operation.paging import Order, listing_of, page
from controlplane.operation.records import record_of
from controlplane.storage.merchant.merchant_tables import Employee, PointOfSale
from controlplane.storage.merchant.sales_tables import Refund, Sale
from controlplane.storage.report_tables import DeviceFinding, DeviceIncident
from controlplane.storage.tables import Device, Report, Request

RowConverter = Callable[[ToolContext, Sequence[Any], Mapping[int, str]], Iterable[Record]]
"""Converts rows to records. Takes the context, the rows, and the ids of the locations by row key
(``Location.position``)."""


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a dataset.

    Attributes:
        table: the class of the rows.
        convert: converts rows to the records of the dataset.
        location: the column with the row key (``Location.position``) or the id of a location.
        time: the column that ``from`` and ``to`` filter.
        by_position: whether ``location`` contains row keys, and not ids.
        has_shared_rows: whether rows without a location are visible to all callers.
        columns: the columns of further filters, by name.
        condition: returns an SQL condition that selects the rows of the dataset.
    """

    table: Any
    convert: RowConverter
    location: Any
    order: Order
    time: Any = None
    by_position: bool = True
    has_shared_rows: bool = False
    columns: Mapping[str, Any] = field(default_factory=dict)
    condition: Callable[[ToolContext], ColumnElement[bool]] | None = None

    @property
    def filters(self) -> tuple[str, ...]:
        times = ("from", "to") if self.time is not None else ()
        return ("locations", *times, *self.columns)


def read_business_records(
    context: ToolContext, arguments: ReadBusinessRecordsArguments
) -> tuple[str, BusinessRecords]:
    source = SOURCES[arguments.dataset]
    filters = arguments.filters or RecordFilters()
    _require_supported(arguments.dataset, source, filters)
    locations = named_locations(context, filters.locations) if source.by_position else []
    ids = {location.position: location.location_id for location in locations}
    query = _query(context, source, filters, locations)
    listing = listing_of(context, type(arguments).__name__, arguments)
    rows, cursor = page(
        context, query, source.order, listing, cursor=arguments.cursor, limit=arguments.limit
    )
    records = tuple(source.convert(context, rows, ids))
    location_ids = None if source.by_position else _location_ids(context, filters)
    unknown = unknown_device_count(context, arguments.dataset, location_ids, filters.instance_id)
    note = f" Devices whose present {arguments.dataset} are unknown: {unknown}." if unknown else ""
    more = "; more with nextCursor" if cursor else ""
    answer = BusinessRecords(
        dataset=arguments.dataset,
        rows=records,
        next_cursor=cursor,
        unknown_device_count=unknown,
    )
    return f"Rows of {arguments.dataset}: {len(records)}{more}.{note}", answer


def count_records(context: ToolContext, dataset: Dataset) -> int:
    """Return the number of records of a dataset that the caller has access to."""
    source, filters = SOURCES[dataset], RecordFilters()
    query = _query(context, source, filters, named_locations(context, None))
    return context.session.scalars(select(func.count()).select_from(query.subquery())).one()


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
        if not source.by_position:
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


# ---------------------------------------------------------------------------- records


def _employees(
    _context: ToolContext, rows: Sequence[Employee], ids: Mapping[int, str]
) -> Iterable[Record]:
    for row in rows:
        location_id = None if row.location is None else ids.get(row.location)
        yield record_of(EmployeeRecord, row, employee_id=row.id, location_id=location_id)


def _points_of_sale(
    _context: ToolContext, rows: Sequence[PointOfSale], ids: Mapping[int, str]
) -> Iterable[Record]:
    for row in rows:
        location_id = ids[row.location]
        yield record_of(PointOfSaleRecord, row, point_of_sale_id=row.id, location_id=location_id)


def _devices(context: ToolContext, rows: Sequence[Device], _ids: Any) -> Iterable[Record]:
    return device_records(context.session, rows, context.now, context.settings)


def _requests(context: ToolContext, rows: Sequence[Request], _ids: Any) -> Iterable[Record]:
    show_due_as_expired(context, rows)
    return (record_of(RemoteRequest, row) for row in rows)


def _reports(_context: ToolContext, rows: Sequence[Report], _ids: Any) -> Iterable[Record]:
    for row in rows:
        findings = None
        report_findings = findings_in(row) if len(rows) <= REPORTS_WITH_FINDINGS_MAX else None
        if report_findings is not None:
            findings = tuple(
                record_of(FindingRecord, finding, more_count=finding.more, fix=finding.advice)
                for finding in report_findings
            )
        yield record_of(DeviceReportRecord, row, report_id=row.id, findings=findings)


SOURCES: Final[Mapping[Dataset, Source]] = {
    "sales": Source(
        table=Sale,
        convert=sale_records,
        location=Sale.location,
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
        convert=refund_records,
        location=Refund.location,
        order=Order(Refund.position, is_descending=True),
        time=Refund.refunded_at,
        columns={"paymentType": Refund.payment_type, "employeeId": Refund.employee},
    ),
    "employees": Source(
        table=Employee,
        convert=_employees,
        location=Employee.location,
        order=Order(Employee.position),
        has_shared_rows=True,
        columns={"status": Employee.status},
    ),
    "pointsOfSale": Source(
        table=PointOfSale,
        convert=_points_of_sale,
        location=PointOfSale.location,
        order=Order(PointOfSale.position),
        columns={"status": PointOfSale.status},
    ),
    "devices": Source(
        table=Device,
        convert=_devices,
        location=Device.location_id,
        order=Order(Device.position),
        by_position=False,
        columns={"instanceId": Device.instance_id},
    ),
    "deviceRequests": Source(
        table=Request,
        convert=_requests,
        location=Request.location_id,
        order=Order(Request.position, is_descending=True),
        time=Request.created_at,
        by_position=False,
        columns={"instanceId": Request.instance_id},
    ),
    "deviceReports": Source(
        table=Report,
        convert=_reports,
        location=Report.location_id,
        order=Order(Report.position, is_descending=True),
        time=Report.created_at,
        by_position=False,
        columns={"instanceId": Report.instance_id},
    ),
    "findings": Source(
        table=DeviceFinding,
        convert=finding_records,
        location=DeviceFinding.location_id,
        order=Order(DeviceFinding.position, is_descending=True),
        time=DeviceFinding.since,
        by_position=False,
        columns={
            "instanceId": DeviceFinding.device,
            "rule": DeviceFinding.rule,
            "severity": DeviceFinding.severity,
        },
        condition=is_recent,
    ),
    "incidents": Source(
        table=DeviceIncident,
        convert=incident_records,
        location=DeviceIncident.location_id,
        order=Order(DeviceIncident.position, is_descending=True),
        time=type_coerce(DeviceIncident.began_s, EpochSeconds),
        by_position=False,
        columns={"instanceId": DeviceIncident.device, "cause": DeviceIncident.cause},
    ),
}

READ_BUSINESS_RECORDS = tool(
    read_business_records,
    "Business records",
    "Pages of single records: sales with their lines, refunds, employees, points of sale, devices,"
    " and the requests, reports, findings and incidents of devices. Sales, refunds,"
    " requests and reports are listed newest first. To find a receipt, filter by number or"
    f" ticketNumber. To get the findings of device reports, set limit to at most"
    f" {REPORTS_WITH_FINDINGS_MAX}. For sums use query_sales.",
)
