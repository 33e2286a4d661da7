"""Computes items from sums of articles: what was sold and refunded of each article."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from controlplane.figures.money import percent
from controlplane.figures.records import Item
from controlplane.figures.sums import ItemSums, add_part

ITEMS_MAX: Final = 500
"""Maximum number of items for a currency. The items with the highest net are listed."""


class Article(NamedTuple):
    """The identity of an item.

    Lines with the same variation and unit are one item, even if their names differ. Lines without a
    variation are identified by name and unit. If all fields are None, it is unknown what was sold.
    """

    good_id: str | None = None
    variation_id: str | None = None
    name: str | None = None
    unit: str | None = None

    @property
    def identity(self) -> tuple[str | None, str | None]:
        return (self.variation_id or self.name, self.unit)


class Items(NamedTuple):
    """The listed items, and the number and the net of the omitted items."""

    listed: tuple[Item, ...]
    omitted: int
    omitted_net: int


class RankedArticle(NamedTuple):
    """An article as its latest snapshot describes it, and the sums of all its snapshots."""

    article: Article
    sums: ItemSums

    @property
    def net(self) -> int:
        return self.sums.gross - self.sums.discount - self.sums.refund


def items(sums: Iterable[tuple[int, ItemSums]], articles: Mapping[int, Article]) -> Items:
    """Return the items of a currency, the highest net first.

    ``sums`` and ``articles`` have the row keys (``LineSnapshot.position``) of article snapshots.
    """
    ranking = rank(sums, articles)
    net = sum(each.net for each in ranking)
    first_items, other_items = ranking[:ITEMS_MAX], ranking[ITEMS_MAX:]
    return Items(
        tuple(item(each, net) for each in first_items),
        len(other_items),
        sum(each.net for each in other_items),
    )


def rank(
    sums: Iterable[tuple[int, ItemSums]], articles: Mapping[int, Article]
) -> list[RankedArticle]:
    """Return the articles with their sums, the highest net first."""
    sums_by_item: dict[tuple[str | None, str | None], ItemSums] = {}
    latest: dict[tuple[str | None, str | None], tuple[int, Article]] = {}
    for snapshot, part in sums:
        article = articles.get(snapshot, Article())
        key = article.identity
        add_part(sums_by_item, key, part)
        # The latest snapshot has the highest row key.
        latest[key] = max(latest.get(key, (snapshot, article)), (snapshot, article))
    ranked = {key: RankedArticle(latest[key][1], part) for key, part in sums_by_item.items()}
    return [ranked[key] for key in sorted(ranked, key=lambda key: (-ranked[key].net, repr(key)))]


def item(ranked: RankedArticle, total_net: int) -> Item:
    """Return an item with its share of ``total_net``, the net of all items."""
    article, sums = ranked
    return {
        "goodId": article.good_id,
        "variationId": article.variation_id,
        "name": article.name,
        "quantityUnit": article.unit,
        "quantityMilli": sums.quantity_milli,
        "lineCount": sums.line_count,
        "grossCents": sums.gross,
        "discountCents": sums.discount,
        "saleCents": sums.gross - sums.discount,
        "refundedQuantityMilli": sums.refunded_milli,
        "refundCents": sums.refund,
        "netCents": ranked.net,
        "sharePercent": percent(ranked.net, total_net),
    }
