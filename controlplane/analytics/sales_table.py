"""The completed sales of a period as CSV, for the console. The contract has no such table."""

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import Select, func, select

from agent.presentation.report_csv import csv_of
from controlplane.analytics.messages import FiguresQuery
from controlplane.analytics.query import resolve_query
from controlplane.figures.financial import QueryLocation
from controlplane.figures.local_time import intervals
from controlplane.figures.sales_table import SALE_COLUMNS, SaleRow
from controlplane.figures.windows import Days
from controlplane.merchant.sales import COMPLETED
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import invalid_field
from controlplane.storage.merchant.merchant_tables import Employee, Location, PointOfSale
from controlplane.storage.merchant.sales_tables import Sale, SaleLine

SALES_MAX: Final = 100_000
"""Maximum number of sales in one table, about 20 MB."""


def sales_table(context: RequestContext, body: FiguresQuery) -> str:
    """Return a CSV table of the sales that a query selects, by location, newest first.

    Raises a refusal if there are more than `SALES_MAX`.
    """
    rows: list[SaleRow] = []
    for location, days in resolve_query(context, body).days.items():
        # At most one row more than permitted is read, to detect that there are too many.
        rows += _rows(context, location, days, SALES_MAX + 1 - len(rows))
        if len(rows) > SALES_MAX:
            raise invalid_field(
                "period",
                f"has more than {SALES_MAX:,} sales. Choose a shorter period or one location",
            )
    cells = ([value(row) for value in SALE_COLUMNS.values()] for row in rows)
    return csv_of(tuple(SALE_COLUMNS), cells)


def _rows(
    context: RequestContext, location: QueryLocation, days: Days, limit: int
) -> Iterator[SaleRow]:
    pieces = intervals(location.clock.zone, days.first, days.last)
    if not pieces:
        return
    query = _query().where(
        Sale.location == location.position,
        Sale.initiated_at >= pieces[0][0],
        Sale.initiated_at < pieces[-1][1],
        Sale.local_hour.between(*days.hours),
        Sale.status == COMPLETED,
    )
    newest = query.order_by(Sale.initiated_at.desc(), Sale.position.desc()).limit(limit)
    for row in context.session.execute(newest):
        values = row._asdict()
        has_lines = values.pop("has_lines")
        yield SaleRow(
            **values
            | {
                "id": str(row.id),
                "initiated_at": row.initiated_at.astimezone(location.clock.zone),
                "location": row.location or location.location_id,
                "lines": row.lines if has_lines else None,
            },
            location_id=location.location_id,
        )


def _query() -> Select[Any]:
    """Return the query for the columns of `SaleRow`. It loads no objects, to save memory."""
    lines = select(func.count()).where(SaleLine.sale == Sale.position).scalar_subquery()
    columns = (
        Sale.number, Sale.ticket_number, Sale.initiated_at, Sale.has_lines, Sale.discount,
        Sale.taxable_amount, Sale.tax, Sale.total, Sale.currency, Sale.comment, Sale.id,
        lines.label("lines"), Location.name.label("location"),
        PointOfSale.name.label("point_of_sale"), PointOfSale.id.label("point_of_sale_id"),
        Employee.name.label("employee"), Employee.id.label("employee_id"),
    )  # fmt: skip
    return (
        select(*columns)
        .join(Location, Location.position == Sale.location)
        .join(PointOfSale, PointOfSale.position == Sale.point_of_sale)
        .outerjoin(Employee, Employee.position == Sale.employee)
    )
