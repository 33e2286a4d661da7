"""Sales, the catalog and retail API keys as lists on a terminal."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from rich.table import Table
from rich.text import Text

from controlplane.cli.screen.money import amount_in_words, money_in_words
from controlplane.cli.tables import console, ids_of, print_note, print_rows, text_of
from controlplane.retail.models import Category, FeeItem, Good, Money, Sale, Uom, Variation

if TYPE_CHECKING:
    from controlplane.storage.merchant.retail_tables import RetailKey

NONE = "–"


def print_retail_keys(keys: Sequence["RetailKey"]) -> None:
    ids = ids_of(key.id for key in keys)
    rows = [
        (
            ids[key.id],
            f"…{key.hint}",
            _grant(key),
            text_of(key.organization_id),
            text_of(key.name or NONE),
            f"{key.created_at:%Y-%m-%d}",
        )
        for key in keys
    ]
    empty = "There are no retail keys. Make one: venue-control retail keys create"
    print_rows(("id", "key", "grant", "organization", "name", "made"), rows, empty)


def print_sales(sales: Sequence[Sale], *, is_cut: bool) -> None:
    rows = [
        (
            text_of(sale.number),
            f"{sale.initiated_at.astimezone():%Y-%m-%d %H:%M}",
            text_of(sale.point_of_sale_id),
            NONE if sale.positions is None else str(len(sale.positions)),
            _money(sale.totals.total),
        )
        for sale in sales
    ]
    print_rows(("number", "when", "till", "lines", "total"), rows, "No sale was completed then.")
    if sales:
        print_note(_sum(sales) + (", and there are more: --limit N shows them" if is_cut else ""))


def print_goods(goods: Sequence[Good]) -> None:
    ids = ids_of(good.id for good in goods)
    rows = [
        (
            ids[good.id],
            text_of(good.name),
            good.status,
            _prices(good),
            text_of(good.uom.symbol),
            text_of(good.vat.fee_item_name),
        )
        for good in goods
    ]
    print_rows(("good", "name", "status", "price", "unit", "tax"), rows, "There are no goods.")


def print_good(good: Good, category: str) -> None:
    """``category``: its name, or "" where it has none."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in _facts(good, category):
        grid.add_row(name, text_of(value))
    console().print(grid)
    console().print()
    ids = ids_of(each.id for each in good.variations)
    rows = [
        (
            ids[each.id],
            text_of(each.name or NONE),
            each.status,
            _price(each),
            text_of(", ".join(f"{code.type} {code.value}" for code in each.codes) or NONE),
        )
        for each in good.variations
    ]
    headings = ("variation", "name", "status", "price", "codes")
    print_rows(headings, rows, "It has no variations.", title="Variations")


def print_categories(categories: Sequence[Category]) -> None:
    names = {each.id: each.name for each in categories}
    ids = ids_of(each.id for each in categories)
    rows = [
        (ids[each.id], text_of(each.name), text_of(_parent(each, names))) for each in categories
    ]
    print_rows(("category", "name", "within"), rows, "There are no categories.")


def print_uoms(uoms: Sequence[Uom]) -> None:
    ids = ids_of(each.id for each in uoms)
    rows = [
        (ids[each.id], text_of(each.name), text_of(each.symbol), str(each.exponent))
        for each in uoms
    ]
    print_rows(("unit", "name", "symbol", "decimals"), rows, "There are no units.")


def print_fees(fees: Sequence[FeeItem]) -> None:
    ids = ids_of(each.id for each in fees)
    rows = [
        (
            ids[each.id],
            text_of(each.name),
            NONE if each.percentage is None else f"{each.percentage:g} %",
        )
        for each in fees
    ]
    print_rows(("fee", "name", "percentage"), rows, "There are no fees.")


def _grant(key: "RetailKey") -> Text:
    if key.revoked_at:
        return Text("revoked", "red")
    return Text("write" if key.can_write else "read")


def _facts(good: Good, category: str) -> Iterable[tuple[str, str]]:
    yield "name", good.name
    yield "good", str(good.id)
    yield "status", good.status
    if good.description:
        yield "description", good.description
    yield "category", category or NONE
    yield "unit", f"{good.uom.name} ({good.uom.symbol})"
    yield "tax", good.vat.fee_item_name
    if good.external_data is not None:
        yield "external id", good.external_data.id


def _parent(category: Category, names: dict[UUID, str]) -> str:
    if category.parent_id is None:
        return NONE
    return names.get(category.parent_id, str(category.parent_id))


def _prices(good: Good) -> str:
    """Return ``10.00 AED``, or ``10.00–14.00 AED`` where its variations differ."""
    prices = [each.default_price for each in good.variations if each.default_price is not None]
    if not prices:
        return "open"
    lowest = min(prices, key=lambda each: each.value)
    highest = max(prices, key=lambda each: each.value)
    if lowest.value == highest.value:
        return _money(lowest)
    return f"{amount_in_words(lowest.value, lowest.currency_code)}–{_money(highest)}"


def _price(variation: Variation) -> str:
    return "open" if variation.default_price is None else _money(variation.default_price)


def _money(money: Money) -> str:
    return money_in_words(money.value, money.currency_code)


def _sum(sales: Sequence[Sale]) -> str:
    totals: dict[str, int] = {}
    for sale in sales:
        money = sale.totals.total
        totals[money.currency_code] = totals.get(money.currency_code, 0) + money.value
    noun = "sale" if len(sales) == 1 else "sales"
    told = ", ".join(money_in_words(value, name) for name, value in sorted(totals.items()))
    return f"{len(sales)} {noun}, {told}"
