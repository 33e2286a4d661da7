"""Counts a merchant's rows again with plain SQL and loops, without any code of the service."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Row = dict[str, Any]


class Item(NamedTuple):
    """Values of one line of a sale or refund. ``key`` is the id of the variation, or the name if
    the line has no variation. A sale or refund without lines is one item without a key.
    """

    key: str | None
    category: str | None
    net: int
    quantity_milli: int


@dataclass(frozen=True)
class Entry:
    """A completed sale, or a refund. ``local`` is the local time at which the sale began or the
    refund was made. ``net`` of a refund is negative.
    """

    is_sale: bool
    local: datetime
    location: str
    currency: str
    employee: str | None
    payment_type: str
    net: int
    row: Row
    items: tuple[Item, ...]


class RawRows:
    """The rows of the database file of a service."""

    def __init__(self, file: Path) -> None:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as self._connection:
            self._connection.row_factory = sqlite3.Row
            self.locations = self._table("locations")
            self.goods = self._table("goods")
            self.variations = self._table("good_variations")
            self.codes = self._table("good_codes")
            self.sales = self._table("sales")
            self.entries = list(self._entries())
            self.names = {
                table: {row["id"]: row["name"] for row in self._table(table)}
                for table in ("employees", "categories", "locations")
            }

    def between(
        self, first: date, last: date, condition: Callable[[Entry], bool] = lambda _: True
    ) -> list[Entry]:
        """Return the entries of these local days, both included."""
        return [
            entry
            for entry in self.entries
            if first <= entry.local.date() <= last and condition(entry)
        ]

    def zone(self, location: str) -> tzinfo:
        return next(_zone(row["zone"]) for row in self.locations if row["id"] == location)

    def _table(self, name: str) -> list[Row]:
        return [dict(row) for row in self._connection.execute(f"SELECT * FROM {name}")]

    def _entries(self) -> Iterator[Entry]:
        venues = {row["position"]: row for row in self.locations}
        employees = {row["position"]: row["id"] for row in self._table("employees")}
        snapshots = {row["position"]: row for row in self._table("line_snapshots")}
        lines: dict[int, dict[int, Row]] = defaultdict(dict)
        for line in self._table("sale_lines"):
            lines[line["sale"]][line["number"]] = line
        refund_lines: dict[int, list[Row]] = defaultdict(list)
        for line in self._table("refund_lines"):
            refund_lines[line["refund"]].append(line)

        def entry(row: Row, time_us: int, net: int, *, is_sale: bool, items: list[Item]) -> Entry:
            venue = venues[row["location"]]
            local = (EPOCH + timedelta(microseconds=time_us)).astimezone(_zone(venue["zone"]))
            return Entry(
                is_sale, local, venue["id"], row["currency"], employees.get(row["employee"]),
                row["payment_type"], net, row, tuple(items),
            )  # fmt: skip

        def item(line: Row, net: int, quantity: int) -> Item:
            snapshot = snapshots[line["snapshot"]]
            key = (
                str(UUID(snapshot["variation_id"]))
                if snapshot["variation_id"]
                else snapshot["name"]
            )
            category = str(UUID(snapshot["category_id"])) if snapshot["category_id"] else None
            return Item(key, category, net, quantity * 1000 // 10 ** snapshot["exponent"])

        completed = set()
        for sale in self.sales:
            if sale["status"] != "completed":
                continue
            completed.add(sale["position"])
            items = [
                item(line, line["total"] - line["share"], line["quantity"])
                for line in lines[sale["position"]].values()
            ]
            if not sale["has_lines"]:
                items = [Item(None, None, sale["total"], 0)]
            yield entry(sale, sale["initiated_at"], sale["total"], is_sale=True, items=items)
        for refund in self._table("refunds"):
            if refund["refunded_at"] is None or refund["sale"] not in completed:
                continue
            items = [
                item(lines[refund["sale"]][line["line"]], -line["amount"], 0)
                for line in refund_lines[refund["position"]]
            ]
            items = items or [Item(None, None, -refund["goods"], 0)]
            yield entry(refund, refund["refunded_at"], -refund["goods"], is_sale=False, items=items)


def _zone(name: str | None) -> tzinfo:
    try:
        return ZoneInfo(name or "")
    except (KeyError, ValueError, OSError):
        return UTC


def sums_by(
    entries: list[Entry], key: Callable[[Entry], Any], value: Callable[[Entry], int]
) -> dict[Any, int]:
    """Return the sums of ``value`` by ``key``."""
    sums: dict[Any, int] = defaultdict(int)
    for entry in entries:
        sums[key(entry)] += value(entry)
    return dict(sums)
