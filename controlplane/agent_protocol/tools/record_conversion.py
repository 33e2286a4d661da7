"""Converts rows to the records of read_business_records.

One query reads all related rows of a kind, for example all lines of the sales on a page.

Each function takes the context, the rows of a page, and the ids of the locations by row key
(``Location.position``).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import select

from agent.presentation.connectivity.titles import CAUSE_TITLES
from agent.wire.operator_operations import Device, RemoteRequest
from controlplane.agent_protocol.tools.record_models import (
    REPORTS_WITH_FINDINGS_MAX,
    DeviceFindingRecord,
    DeviceIncidentRow,
    DeviceReportRecord,
    EmployeeRecord,
    FindingRecord,
    LineRecord,
    PointOfSaleRecord,
    RefundRecord,
    SaleRecord,
)
from controlplane.agent_protocol.tools.tool import ToolContext
from controlplane.devices.findings.rules import rule_of
from controlplane.devices.overview.summaries import findings_in
from controlplane.devices.reading import show_due_as_expired
from controlplane.devices.records import device_records
from controlplane.operation.records import record_of
from controlplane.storage import tables
from controlplane.storage.merchant.catalog_tables import LineSnapshot
from controlplane.storage.merchant.merchant_tables import Employee, PaymentMethod, PointOfSale
from controlplane.storage.merchant.sales_tables import Refund, Sale, SaleLine
from controlplane.storage.report_tables import DeviceFinding, DeviceIncident

Ids = Mapping[int, str]
"""The ids of locations by row key."""


def sale_records(context: ToolContext, rows: Sequence[Sale], ids: Ids) -> Iterator[SaleRecord]:
    lines = _lines(context, [row.position for row in rows])
    employees = _by_position(context, Employee.id, {row.employee for row in rows})
    points_of_sale = _by_position(context, PointOfSale.id, {row.point_of_sale for row in rows})
    methods = _by_position(context, PaymentMethod.name, {row.payment_method for row in rows})
    for row in rows:
        yield record_of(
            SaleRecord,
            row,
            sale_id=row.id,
            location_id=ids[row.location],
            point_of_sale_id=points_of_sale.get(row.point_of_sale),
            employee_id=employees.get(row.employee),
            gross_cents=row.gross,
            discount_cents=row.gross - row.total,
            sale_cents=row.total,
            known_vat_cents=row.tax,
            municipality_fee_cents=row.municipality_fee,
            tip_cents=row.tip,
            payment_method_name=methods.get(row.payment_method),
            lines=tuple(lines[row.position]) if row.has_lines else None,
        )


def refund_records(
    context: ToolContext, rows: Sequence[Refund], ids: Ids
) -> Iterator[RefundRecord]:
    employees = _by_position(context, Employee.id, {row.employee for row in rows})
    methods = _by_position(context, PaymentMethod.name, {row.payment_method for row in rows})
    sales: dict[Any, UUID] = _by_position(context, Sale.id, {row.sale for row in rows})
    for row in rows:
        yield record_of(
            RefundRecord,
            row,
            refund_id=row.id,
            sale_id=sales.get(row.sale),
            location_id=ids[row.location],
            employee_id=employees.get(row.employee),
            refund_cents=row.goods,
            refunded_fee_cents=row.fee,
            refund_tip_cents=row.tip,
            components_known=row.has_components,
            payment_method_name=methods.get(row.payment_method),
        )


def employee_records(
    _context: ToolContext, rows: Sequence[Employee], ids: Ids
) -> Iterator[EmployeeRecord]:
    for row in rows:
        location_id = None if row.location is None else ids.get(row.location)
        yield record_of(EmployeeRecord, row, employee_id=row.id, location_id=location_id)


def point_of_sale_records(
    _context: ToolContext, rows: Sequence[PointOfSale], ids: Ids
) -> Iterator[PointOfSaleRecord]:
    for row in rows:
        location_id = ids[row.location]
        yield record_of(PointOfSaleRecord, row, point_of_sale_id=row.id, location_id=location_id)


def device_list_records(
    context: ToolContext, rows: Sequence[tables.Device], _ids: Ids
) -> Iterable[Device]:
    return device_records(context.session, rows, context.now, context.settings)


def request_records(
    context: ToolContext, rows: Sequence[tables.Request], _ids: Ids
) -> Iterable[RemoteRequest]:
    show_due_as_expired(context, rows)
    return (record_of(RemoteRequest, row) for row in rows)


def report_records(
    _context: ToolContext, rows: Sequence[tables.Report], _ids: Ids
) -> Iterator[DeviceReportRecord]:
    for row in rows:
        findings = None
        report_findings = findings_in(row) if len(rows) <= REPORTS_WITH_FINDINGS_MAX else None
        if report_findings is not None:
            findings = tuple(
                record_of(FindingRecord, finding, more_count=finding.more, fix=finding.advice)
                for finding in report_findings
            )
        yield record_of(DeviceReportRecord, row, report_id=row.id, findings=findings)


def finding_records(
    context: ToolContext, rows: Sequence[DeviceFinding], _ids: Ids
) -> Iterator[DeviceFindingRecord]:
    devices = _by_position(context, tables.Device.instance_id, {row.device for row in rows})
    for row in rows:
        instance_id, fix = devices[row.device], rule_of(row.rule).fix
        yield record_of(DeviceFindingRecord, row, instance_id=instance_id, fix=fix)


def incident_records(
    context: ToolContext, rows: Sequence[DeviceIncident], _ids: Ids
) -> Iterator[DeviceIncidentRow]:
    devices = _by_position(context, tables.Device.instance_id, {row.device for row in rows})
    for row in rows:
        yield record_of(
            DeviceIncidentRow,
            row,
            instance_id=devices[row.device],
            title=CAUSE_TITLES[row.cause].sentence,
            began_at=_time_of(row.began_s),
            ended_at=None if row.ended_s is None else _time_of(row.ended_s),
            downtime_seconds=row.downtime_s,
        )


def _lines(context: ToolContext, sales: Sequence[int]) -> Mapping[int, list[LineRecord]]:
    query = (
        select(SaleLine, LineSnapshot)
        .join(LineSnapshot, LineSnapshot.position == SaleLine.snapshot)
        .where(SaleLine.sale.in_(sales))
        .order_by(SaleLine.sale, SaleLine.number)
    )
    lines: defaultdict[int, list[LineRecord]] = defaultdict(list)
    for line, snapshot in context.session.execute(query):
        lines[line.sale].append(
            record_of(
                LineRecord,
                snapshot,
                quantity_milli=line.quantity * snapshot.unit_milli,
                quantity_unit=snapshot.uom_symbol,
                unit_price_cents=line.unit_price,
                discount_cents=line.discount + line.share,
                total_cents=line.total - line.share,
            )
        )
    return lines


def _by_position(context: ToolContext, column: Any, positions: set[int | None]) -> dict[Any, Any]:
    """Return the values of ``column`` in the rows at these positions, by position."""
    position = column.class_.position
    query = select(position, column).where(position.in_(positions - {None}))
    return {row[0]: row[1] for row in context.session.execute(query)}


def _time_of(seconds: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)
