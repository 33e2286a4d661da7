"""``venue-control catalog``: goods, categories, units of measure and fees."""

import argparse
from collections.abc import Callable, Iterable
from typing import Final
from uuid import UUID

from agent.wire.codec import encode_indented
from controlplane.cli.connection import retail_client_of
from controlplane.cli.matching import only_match
from controlplane.cli.screen.cells import NONE, Cell, Columns, Record
from controlplane.cli.screen.output import CsvColumns, print_csv, print_json_or_csv, print_records
from controlplane.client.errors import CommandError
from controlplane.client.refusals import NotFoundError
from controlplane.client.retail import RetailClient
from controlplane.figures.money import format_amount, format_money
from controlplane.retail.models import Category, FeeItem, Good, Money, Uom, Variation


def _money(price: Money | None) -> str:
    return "open" if price is None else format_money(price.value, price.currency_code)


def _amount(price: Money | None) -> str | None:
    return None if price is None else format_amount(price.value, price.currency_code)


def _price_range(good: Good) -> str:
    """Return ``10.00 AED``, ``10.00–14.00 AED`` if the prices of its variations differ, or ``open``
    if no variation has a price.
    """
    prices = [
        variation.default_price
        for variation in good.variations
        if variation.default_price is not None
    ]
    if not prices:
        return _money(None)
    lowest = min(prices, key=lambda price: price.value)
    highest = max(prices, key=lambda price: price.value)
    if lowest.value == highest.value:
        return _money(lowest)
    return f"{format_amount(lowest.value, lowest.currency_code)}–{_money(highest)}"


GOODS_CSV: Final[CsvColumns[tuple[Good, Variation]]] = {
    "id": lambda row: row[0].id,
    "name": lambda row: row[0].name,
    "status": lambda row: row[0].status,
    "categoryId": lambda row: row[0].category_id,
    "uom": lambda row: row[0].uom.symbol,
    "vat": lambda row: row[0].vat.fee_item_name,
    "vatPercentage": lambda row: row[0].vat.fee_item_percentage,
    "variationId": lambda row: row[1].id,
    "variation": lambda row: row[1].name,
    "variationStatus": lambda row: row[1].status,
    "price": lambda row: _amount(row[1].default_price),
    "currency": lambda row: (
        None if row[1].default_price is None else row[1].default_price.currency_code
    ),
    "codes": lambda row: "; ".join(f"{code.type} {code.value}" for code in row[1].codes),
}
"""A row for each variation. Prices have the decimals of their currency."""
GOODS: Final[Columns[Good]] = {
    "good": lambda good: good.id,
    "name": lambda good: good.name,
    "status": lambda good: good.status,
    "price": _price_range,
    "unit": lambda good: good.uom.symbol,
    "tax": lambda good: good.vat.fee_item_name,
}
VARIATIONS: Final[Columns[Variation]] = {
    "variation": lambda variation: variation.id,
    "name": lambda variation: variation.name or None,
    "status": lambda variation: variation.status,
    "price": lambda variation: _money(variation.default_price),
    "codes": lambda variation: (
        ", ".join(f"{code.type} {code.value}" for code in variation.codes) or None
    ),
}
CATEGORIES_CSV: Final[CsvColumns[Category]] = {
    "id": lambda category: category.id,
    "name": lambda category: category.name,
    "parentId": lambda category: category.parent_id,
}
UOMS_CSV: Final[CsvColumns[Uom]] = {
    "id": lambda uom: uom.id,
    "name": lambda uom: uom.name,
    "symbol": lambda uom: uom.symbol,
    "exponent": lambda uom: float(uom.exponent),
}
UOMS: Final[Columns[Uom]] = {
    "unit": lambda uom: uom.id,
    "name": lambda uom: uom.name,
    "symbol": lambda uom: uom.symbol,
    "decimals": lambda uom: str(uom.exponent),
}
FEES_CSV: Final[CsvColumns[FeeItem]] = {
    "id": lambda fee: fee.id,
    "name": lambda fee: fee.name,
    "percentage": lambda fee: fee.percentage,
}
FEES: Final[Columns[FeeItem]] = {
    "fee": lambda fee: fee.id,
    "name": lambda fee: fee.name,
    "percentage": lambda fee: None if fee.percentage is None else f"{fee.percentage:g} %",
}


def goods(options: argparse.Namespace) -> None:
    if not options.csv:
        _print_list(options, RetailClient.goods, {}, GOODS, "There are no goods.")
        return
    with retail_client_of(options) as client:
        print_csv(
            ((good, variation) for good in client.goods() for variation in good.variations),
            GOODS_CSV,
        )


def categories(options: argparse.Namespace) -> None:
    names: dict[UUID, str] = {}

    def fetch(client: RetailClient) -> Iterable[Category]:
        records = list(client.categories())
        names.update((record.id, record.name) for record in records)
        return records

    columns: Columns[Category] = {
        "category": lambda category: category.id,
        "name": lambda category: category.name,
        "within": lambda category: (
            category.parent_id and names.get(category.parent_id, str(category.parent_id))
        ),
    }
    _print_list(options, fetch, CATEGORIES_CSV, columns, "There are no categories.")


def uoms(options: argparse.Namespace) -> None:
    _print_list(options, RetailClient.uoms, UOMS_CSV, UOMS, "There are no units.")


def fees(options: argparse.Namespace) -> None:
    _print_list(options, RetailClient.fees, FEES_CSV, FEES, "There are no fees.")


def good(options: argparse.Namespace) -> None:
    with retail_client_of(options) as client:
        record = _find_good(client, options.id)
        category = "" if options.json else _category_name(client, record)
    if options.json:
        print(encode_indented(record))
        return
    from controlplane.cli.screen.tables import console, print_facts  # rich is slow to import

    print_facts(_facts(record, category))
    console().print()
    print_records(record.variations, VARIATIONS, "The good has no variations.", "Variations")


def _print_list(
    options: argparse.Namespace,
    fetch: Callable[[RetailClient], Iterable[Record]],
    csv_columns: CsvColumns[Record],
    columns: Columns[Record],
    empty: str,
) -> None:
    with retail_client_of(options) as client:
        records = list(fetch(client))
    if not print_json_or_csv(options, records, csv_columns):
        print_records(records, columns, empty)


def _find_good(client: RetailClient, text: str) -> Good:
    """Return the good whose id is ``text`` or starts with it. Raises CommandError."""
    hint = "`venue-control catalog goods` lists the goods."
    try:
        return client.good(UUID(text))
    except NotFoundError as error:
        raise CommandError(f"there is no good {text}", hint) from error
    except ValueError:
        start = text.casefold()
    matches = (each for each in client.goods() if str(each.id).startswith(start))
    return only_match(text, {match.id: match for match in matches}, "good", hint)


def _category_name(client: RetailClient, good: Good) -> str:
    """Return the name of the good's category, or the category's id if the API does not list it."""
    if good.category_id is None:
        return ""
    names = (category.name for category in client.categories() if category.id == good.category_id)
    return next(names, str(good.category_id))


def _facts(good: Good, category: str) -> Iterable[tuple[str, Cell]]:
    yield "name", good.name
    yield "good", good.id
    yield "status", good.status
    if good.description:
        yield "description", good.description
    yield "category", category or NONE
    yield "unit", f"{good.uom.name} ({good.uom.symbol})"
    yield "tax", good.vat.fee_item_name
    if good.external_data is not None:
        yield "external id", good.external_data.id
