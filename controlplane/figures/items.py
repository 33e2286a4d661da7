"""Sums of articles → items: what was sold of what, and what came back of it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from controlplane.figures.money import percent
from controlplane.figures.records import Item
from controlplane.figures.sums import ItemSums, plus

ITEMS_MAX: Final = 500
"""Items that are listed for a currency, those with the greatest net."""


class Article(NamedTuple):
    """What an item is known by. Lines of one variation are one item, whatever it was called;
    those without one go by their name. All None: it is not known what was sold."""

    good_id: str | None = None
    variation_id: str | None = None
    name: str | None = None
    unit: str | None = None

    @property
    def identity(self) -> tuple[str | None, str | None]:
        return (self.variation_id or self.name, self.unit)


class Items(NamedTuple):
    """``omitted`` of them, with a net of ``omitted_net``, are not listed."""

    listed: tuple[Item, ...]
    omitted: int
    omitted_net: int


def items(sums: Iterable[tuple[int, ItemSums]], articles: Mapping[int, Article]) -> Items:
    """Return the items of a currency, the greatest net first.

    ``sums`` are by snapshot, and so are ``articles``; of several names of an article the one of
    its latest snapshot is shown.
    """
    whole: defaultdict[tuple[str | None, str | None], ItemSums] = defaultdict(ItemSums)
    latest: dict[tuple[str | None, str | None], tuple[int, Article]] = {}
    for snapshot, part in sums:
        article = articles.get(snapshot, Article())
        key = article.identity
        whole[key] = plus(whole[key], part)
        latest[key] = max(latest.get(key, (snapshot, article)), (snapshot, article))
    net = sum(map(_net, whole.values()))
    ranked = sorted(whole.items(), key=lambda each: (-_net(each[1]), repr(each[0])))
    listed, rest = ranked[:ITEMS_MAX], ranked[ITEMS_MAX:]
    return Items(
        tuple(_item(latest[key][1], part, net) for key, part in listed),
        len(rest),
        sum(_net(part) for _, part in rest),
    )


def _net(sums: ItemSums) -> int:
    return sums.gross - sums.discount - sums.refund


def _item(article: Article, sums: ItemSums, whole: int) -> Item:
    return Item(
        good_id=article.good_id,
        variation_id=article.variation_id,
        name=article.name,
        quantity_unit=article.unit,
        quantity_milli=sums.quantity_milli,
        line_count=sums.line_count,
        gross_cents=sums.gross,
        discount_cents=sums.discount,
        sale_cents=sums.gross - sums.discount,
        refunded_quantity_milli=sums.refunded_milli,
        refund_cents=sums.refund,
        net_cents=_net(sums),
        share_percent=percent(_net(sums), whole),
    )
