"""``venue-control sales``: completed sales. The JSON output includes their lines."""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Final

from controlplane.cli.arguments.client import SALES_LIMIT
from controlplane.cli.arguments.values import TimeRange
from controlplane.cli.connection import retail_client_of
from controlplane.cli.screen.cells import Columns
from controlplane.cli.screen.money import format_money, minor_units
from controlplane.cli.screen.output import CsvColumns, print_as, print_records
from controlplane.cli.screen.progress import Progress
from controlplane.client.errors import UsageError
from controlplane.retail.limits import PAGE_SIZE
from controlplane.retail.models import Sale


def _line_count(sale: Sale) -> str | None:
    return None if sale.positions is None else str(len(sale.positions))


CSV: Final[CsvColumns[Sale]] = {
    "id": lambda sale: sale.id,
    "number": lambda sale: sale.number,
    "ticketNumber": lambda sale: sale.ticket_number,
    "initiatedAt": lambda sale: sale.initiated_at.isoformat(),
    "pointOfSaleId": lambda sale: sale.point_of_sale_id,
    "initiatedById": lambda sale: sale.initiated_by_id,
    "positions": _line_count,
    "discount": lambda sale: minor_units(sale.totals.discount),
    "taxableAmount": lambda sale: minor_units(sale.totals.taxable_amount),
    "tax": lambda sale: minor_units(sale.totals.tax),
    "total": lambda sale: minor_units(sale.totals.total),
    "currency": lambda sale: sale.totals.total.currency_code,
    "comment": lambda sale: sale.comment,
}
"""Amounts are in minor units, as in the API."""
COLUMNS: Final[Columns[Sale]] = {
    "number": lambda sale: sale.number,
    "when": lambda sale: f"{sale.initiated_at.astimezone():%Y-%m-%d %H:%M}",
    "till": lambda sale: sale.point_of_sale_id,
    "lines": _line_count,
    "total": lambda sale: format_money(sale.totals.total.value, sale.totals.total.currency_code),
}


def list_all(options: argparse.Namespace) -> int:
    first, last = _bounds(options.since, options.until)
    has_no_limit = options.json or options.csv or first is not None
    limit = options.limit or (None if has_no_limit else SALES_LIMIT)
    with Progress() as progress, retail_client_of(options, progress) as client:
        stream = client.sales(sort=options.sort, initiated_from=first, initiated_to=last)
        # Fetch one sale more than is printed, to know whether there are further sales.
        fetched = islice(stream, None if limit is None else limit + 1)
        sales = list(_counted(fetched, progress))
    is_cut = limit is not None and len(sales) > limit
    sales = sales[:limit]
    if not print_as(options, sales, CSV):
        _print(sales, is_cut=is_cut)
    return 0


def _print(sales: Sequence[Sale], *, is_cut: bool) -> None:
    from controlplane.cli.screen.tables import print_note  # rich is slow to import

    print_records(sales, COLUMNS, "No sale was completed in this period.")
    if sales:
        print_note(_summary(sales) + ("; --limit N shows more" if is_cut else ""))


def _summary(sales: Sequence[Sale]) -> str:
    """Return ``12 sales, 310.50 AED, 12.00 EUR``."""
    totals: Counter[str] = Counter()
    for sale in sales:
        totals[sale.totals.total.currency_code] += sale.totals.total.value
    noun = "sale" if len(sales) == 1 else "sales"
    amounts = ", ".join(format_money(value, name) for name, value in sorted(totals.items()))
    return f"{len(sales)} {noun}, {amounts}"


def _counted(sales: Iterable[Sale], progress: Progress) -> Iterator[Sale]:
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
