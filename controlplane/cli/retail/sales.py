"""``venue-control sales``: completed sales. The JSON output includes their lines."""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Final

from agent.presentation.humanize import counted
from controlplane.cli.arguments.client import SALES_LIMIT
from controlplane.cli.arguments.values import TimeRange
from controlplane.cli.connection import retail_client_of
from controlplane.cli.screen.cells import Columns
from controlplane.cli.screen.output import print_csv, print_json_or_csv, print_note, print_records
from controlplane.cli.screen.progress import Progress
from controlplane.client.errors import UsageError
from controlplane.client.retail import RetailClient
from controlplane.figures.money import format_money
from controlplane.figures.sales_table import SALE_COLUMNS, SaleRow
from controlplane.retail.limits import PAGE_SIZE
from controlplane.retail.models import Sale

COLUMNS: Final[Columns[SaleRow]] = {
    "number": lambda row: row.number,
    "when": lambda row: f"{row.initiated_at:%Y-%m-%d %H:%M}",
    "location": lambda row: row.location,
    "till": lambda row: row.point_of_sale,
    "lines": lambda row: None if row.lines is None else str(row.lines),
    "total": lambda row: format_money(row.total, row.currency),
}


def list_all(options: argparse.Namespace) -> None:
    first, last = _bounds(options.since, options.until)
    is_unlimited = options.json or options.csv or first is not None
    limit = options.limit or (None if is_unlimited else SALES_LIMIT)
    with Progress() as progress, retail_client_of(options, progress) as client:
        stream = client.sales(sort=options.sort, initiated_from=first, initiated_to=last)
        # Fetch one sale more than is printed, to know whether there are further sales.
        first_sales = islice(stream, None if limit is None else limit + 1)
        sales = list(_show_count(first_sales, progress))
        is_cut = limit is not None and len(sales) > limit
        sales = sales[:limit]
        rows = [] if options.json else list(_rows(client, sales))
    if options.csv:
        print_csv(rows, SALE_COLUMNS)
    elif not print_json_or_csv(options, sales):
        _print(rows, is_cut=is_cut)


def _rows(client: RetailClient, sales: Sequence[Sale]) -> Iterator[SaleRow]:
    """Yield the rows of the table of sales, with the names of tills, locations and employees."""
    tills = {point_of_sale.id: point_of_sale for point_of_sale in client.points_of_sale()}
    names = {employee.id: employee.name for employee in client.employees()}
    for sale in sales:
        till = tills.get(sale.point_of_sale_id)
        employee_id = sale.initiated_by_id
        totals = sale.totals
        yield SaleRow(
            number=sale.number,
            ticket_number=sale.ticket_number,
            initiated_at=sale.initiated_at.astimezone(),
            location="" if till is None else till.location_name,
            point_of_sale=sale.point_of_sale_id if till is None else till.name,
            employee=employee_id and names.get(employee_id, employee_id),
            lines=None if sale.positions is None else len(sale.positions),
            discount=0 if totals.discount is None else totals.discount.value,
            taxable_amount=totals.taxable_amount.value,
            tax=totals.tax.value,
            total=totals.total.value,
            currency=totals.total.currency_code,
            comment=sale.comment,
            id=sale.id,
            location_id="" if till is None else till.location_id,
            point_of_sale_id=sale.point_of_sale_id,
            employee_id=employee_id,
        )


def _print(rows: Sequence[SaleRow], *, is_cut: bool) -> None:
    print_records(rows, COLUMNS, "No sale was completed in this period.")
    if rows:
        print_note(_summary(rows) + ("; --limit N shows more" if is_cut else ""))


def _summary(rows: Sequence[SaleRow]) -> str:
    """Return ``12 sales, 310.50 AED``, with a total for each currency."""
    totals: Counter[str] = Counter()
    for row in rows:
        totals[row.currency] += row.total
    amounts = ", ".join(format_money(value, name) for name, value in sorted(totals.items()))
    return f"{counted(len(rows), 'sale')}, {amounts}"


def _show_count(sales: Iterable[Sale], progress: Progress) -> Iterator[Sale]:
    """Yield the sales. After each page of the API (20 sales), show the number of fetched sales."""
    for number, sale in enumerate(sales, 1):
        if number % PAGE_SIZE == 0:
            progress.show(f"{number} sales fetched")
        yield sale


def _bounds(
    since: TimeRange | None, until: TimeRange | None
) -> tuple[datetime | None, datetime | None]:
    first = None if since is None else since.first
    last = None if until is None else until.last
    if first is not None and last is not None and last < first:
        raise UsageError("--until must not be before --since")
    return first, last
