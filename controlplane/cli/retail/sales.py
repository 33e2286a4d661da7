"""``venue-control sales``: completed sales, with their lines in JSON."""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice

from agent.presentation.report_csv import Row, csv_of
from agent.wire.codec import to_plain
from controlplane.cli.arguments.client import SALES_SHOWN
from controlplane.cli.arguments.values import Moment
from controlplane.cli.retail.connection import retail_client_of
from controlplane.cli.screen.progress import Progress
from controlplane.cli.screen.terminal import write_exactly
from controlplane.client.errors import UsageError
from controlplane.retail.limits import PAGE_SIZE
from controlplane.retail.models import Money, Sale

CSV_COLUMNS = (
    "id", "number", "ticketNumber", "initiatedAt", "pointOfSaleId", "initiatedById", "positions",
    "discount", "taxableAmount", "tax", "total", "currency", "comment",
)  # fmt: skip
"""Amounts are in minor units, as on the wire."""


def list_all(options: argparse.Namespace) -> int:
    first, last = _bounds(options.since, options.until)
    is_whole = options.json or options.csv or first is not None
    limit = options.limit or (None if is_whole else SALES_SHOWN)
    with Progress() as progress, retail_client_of(options, progress) as client:
        found = client.sales(sort=options.sort, initiated_from=first, initiated_to=last)
        # One more than is shown tells whether there are others.
        asked = islice(found, None if limit is None else limit + 1)
        sales = list(_counted(asked, progress))
    is_cut = limit is not None and len(sales) > limit
    sales = sales[:limit]
    if options.json:
        sys.stdout.write(json.dumps([to_plain(each) for each in sales], indent=2) + "\n")
    elif options.csv:
        write_exactly(csv_of(CSV_COLUMNS, (_row(each) for each in sales)))
    else:
        from controlplane.cli.retail.listings import print_sales  # rich only where shown

        print_sales(sales, is_cut=is_cut)
    return 0


def _counted(sales: Iterable[Sale], progress: Progress) -> Iterator[Sale]:
    """Show how many there are so far: a page has 20 (contract: Limits), a year thousands."""
    for number, sale in enumerate(sales, 1):
        if number % PAGE_SIZE == 0:
            progress.show(f"{number} sales fetched")
        yield sale


def _bounds(since: Moment | None, until: Moment | None) -> tuple[datetime | None, datetime | None]:
    first = None if since is None else since.first
    last = None if until is None else until.last
    if first is not None and last is not None and last < first:
        raise UsageError("--until must not be before --since")
    return first, last


def _row(sale: Sale) -> Row:
    totals = sale.totals
    return (
        sale.id,
        sale.number,
        sale.ticket_number,
        sale.initiated_at.isoformat(),
        sale.point_of_sale_id,
        sale.initiated_by_id,
        None if sale.positions is None else str(len(sale.positions)),
        _amount(totals.discount),
        _amount(totals.taxable_amount),
        _amount(totals.tax),
        _amount(totals.total),
        totals.total.currency_code,
        sale.comment,
    )


def _amount(money: Money | None) -> str | None:
    return None if money is None else str(money.value)
