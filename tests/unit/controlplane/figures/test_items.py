"""Tests of items: each combination of variation and unit is one item, and only the items with the
highest net are listed.
"""

from controlplane.figures.items import ITEMS_MAX, Article, items
from controlplane.figures.sums import ItemSums


def sums_of(gross: int) -> ItemSums:
    return ItemSums(quantity_milli=1000, line_count=1, gross=gross)


def test_a_renamed_article_is_one_item_under_its_latest_name() -> None:
    articles = {
        1: Article("g", "v", "Tea", "pcs"),
        7: Article("g", "v", "Karak", "pcs"),
        8: Article("g", "v", "Karak", "kg"),
    }
    result = items([(1, sums_of(100)), (7, sums_of(50)), (8, sums_of(1))], articles)
    assert [(each["name"], each["quantityUnit"], each["netCents"]) for each in result.listed] == [
        ("Karak", "pcs", 150),
        ("Karak", "kg", 1),
    ]


def test_items_beyond_the_limit_are_counted() -> None:
    articles = {
        position: Article(name=f"{position:04}", unit="pcs") for position in range(1, ITEMS_MAX + 3)
    }
    ranked = items([(position, sums_of(position)) for position in articles], articles)
    assert len(ranked.listed) == ITEMS_MAX
    assert (ranked.omitted, ranked.omitted_net) == (2, 1 + 2)
    assert ranked.listed[0]["netCents"] == ITEMS_MAX + 2


def test_an_unknown_article_has_no_name() -> None:
    (item,) = items([(0, sums_of(5))], {}).listed
    assert (item["name"], item["variationId"], item["sharePercent"]) == (None, None, 100.0)
