"""``venue-control catalog``: goods, categories, units of measure and fees."""

import argparse
import json
import sys
from collections.abc import Sequence
from uuid import UUID

from agent.presentation.report_csv import Row, csv_of
from agent.wire.base import Model
from agent.wire.codec import encode_indented, to_plain
from controlplane.cli.retail.connection import retail_client_of
from controlplane.cli.screen.terminal import write_exactly
from controlplane.client.errors import CommandError
from controlplane.client.refusals import NotFoundError
from controlplane.client.retail import RetailClient
from controlplane.retail.models import Category, Good

GOOD_COLUMNS = (
    "id", "name", "status", "categoryId", "uom", "vat", "vatPercentage", "variationId",
    "variation", "variationStatus", "price", "currency", "codes",
)  # fmt: skip
"""A row for each variation. Prices are in minor units, as on the wire."""
LISTED = "`venue-control catalog goods` lists them."


def goods(options: argparse.Namespace) -> int:
    with retail_client_of(options) as client:
        found = list(client.goods())
    rows = [row for each in found for row in _good_rows(each)]
    if not _is_written(options, found, GOOD_COLUMNS, rows):
        from controlplane.cli.retail.listings import print_goods  # rich only where shown

        print_goods(found)
    return 0


def categories(options: argparse.Namespace) -> int:
    with retail_client_of(options) as client:
        found = list(client.categories())
    if not _is_written(
        options, found, ("id", "name", "parentId"), [_category_row(each) for each in found]
    ):
        from controlplane.cli.retail.listings import print_categories

        print_categories(found)
    return 0


def uoms(options: argparse.Namespace) -> int:
    with retail_client_of(options) as client:
        found = list(client.uoms())
    rows = [(str(each.id), each.name, each.symbol, float(each.exponent)) for each in found]
    if not _is_written(options, found, ("id", "name", "symbol", "exponent"), rows):
        from controlplane.cli.retail.listings import print_uoms

        print_uoms(found)
    return 0


def fees(options: argparse.Namespace) -> int:
    with retail_client_of(options) as client:
        found = list(client.fees())
    rows = [(str(each.id), each.name, each.percentage) for each in found]
    if not _is_written(options, found, ("id", "name", "percentage"), rows):
        from controlplane.cli.retail.listings import print_fees

        print_fees(found)
    return 0


def good(options: argparse.Namespace) -> int:
    with retail_client_of(options) as client:
        found = _good_of(client, options.id)
        category = "" if options.json else _category_of(client, found)
    if options.json:
        sys.stdout.write(encode_indented(found) + "\n")
        return 0
    from controlplane.cli.retail.listings import print_good  # rich only where shown

    print_good(found, category)
    return 0


def _good_of(client: RetailClient, text: str) -> Good:
    """Return the good meant by its id or the first characters of it. Raises CommandError."""
    try:
        return client.good(UUID(text))
    except NotFoundError as error:
        raise CommandError(f"there is no good {text}", LISTED) from error
    except ValueError:
        start = text.casefold()
    found = [each for each in client.goods() if start and str(each.id).startswith(start)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise CommandError(f"no good's id begins with {text!r}", LISTED)
    ids = ", ".join(str(each.id) for each in found[:5])
    raise CommandError(f"{text!r} may be any of {len(found)} goods: {ids}")


def _category_of(client: RetailClient, good: Good) -> str:
    """Return its category's name; its id where the list has none such, "" where there is none."""
    if good.category_id is None:
        return ""
    names = (each.name for each in client.categories() if each.id == good.category_id)
    return next(names, str(good.category_id))


def _is_written(
    options: argparse.Namespace,
    found: Sequence[Model],
    headings: Sequence[str],
    rows: Sequence[Row],
) -> bool:
    """Write the records as a program wants them; False where they are to be shown to a person."""
    if options.json:
        sys.stdout.write(json.dumps([to_plain(each) for each in found], indent=2) + "\n")
    elif options.csv:
        write_exactly(csv_of(headings, rows))
    return bool(options.json or options.csv)


def _good_rows(good: Good) -> list[Row]:
    return [
        (
            str(good.id),
            good.name,
            good.status,
            None if good.category_id is None else str(good.category_id),
            good.uom.symbol,
            good.vat.fee_item_name,
            good.vat.fee_item_percentage,
            str(each.id),
            each.name,
            each.status,
            None if each.default_price is None else str(each.default_price.value),
            None if each.default_price is None else each.default_price.currency_code,
            "; ".join(f"{code.type} {code.value}" for code in each.codes),
        )
        for each in good.variations
    ]


def _category_row(category: Category) -> Row:
    parent = category.parent_id
    return str(category.id), category.name, None if parent is None else str(parent)
