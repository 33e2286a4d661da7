"""Records of sales and refunds. Each kind of related row is loaded with one query."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import select

from controlplane.agent_protocol.tools.record_models import LineRecord, RefundRecord, SaleRecord
from controlplane.agent_protocol.tools.tool import ToolContext
from controlplane.operation.records import record_of
from controlplane.storage.merchant.catalog_tables import LineSnapshot
from controlplane.storage.merchant.merchant_tables import Employee, PaymentMethod, PointOfSale
from controlplane.storage.merchant.sales_tables import Refund, Sale, SaleLine


def sale_records(
    context: ToolContext, rows: Sequence[Sale], ids: Mapping[int, str]
) -> Iterator[SaleRecord]:
    lines = _lines(context, [row.position for row in rows])
    employees = _by_position(context, Employee, Employee.id, {row.employee for row in rows})
    points_of_sale = _by_position(
        context, PointOfSale, PointOfSale.id, {row.point_of_sale for row in rows}
    )
    methods = _method_names(context, rows)
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
    context: ToolContext, rows: Sequence[Refund], ids: Mapping[int, str]
) -> Iterator[RefundRecord]:
    employees = _by_position(context, Employee, Employee.id, {row.employee for row in rows})
    methods = _method_names(context, rows)
    sales: dict[Any, UUID] = _by_position(context, Sale, Sale.id, {row.sale for row in rows})
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


def _method_names(context: ToolContext, rows: Sequence[Sale] | Sequence[Refund]) -> dict[Any, str]:
    """Return the names of the payment methods of these rows, by the row key of the method."""
    method_ids = {row.payment_method for row in rows}
    return _by_position(context, PaymentMethod, PaymentMethod.name, method_ids)


def _by_position(
    context: ToolContext, table: Any, column: Any, positions: set[int | None]
) -> dict[Any, Any]:
    """Return the values of ``column`` in the rows of ``table`` at these positions, by position."""
    query = select(table.position, column).where(table.position.in_(positions - {None}))
    return {row[0]: row[1] for row in context.session.execute(query)}
