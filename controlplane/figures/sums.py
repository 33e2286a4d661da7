"""Sums over sales and refunds.

The fields of each class have the names and the order of the sums in its rollup tables.
`controlplane.storage.merchant.rollup_tables` defines these columns.
"""

from collections.abc import Hashable, Iterable
from operator import add
from typing import NamedTuple, TypeVar


class HourSums(NamedTuple):
    gross: int = 0
    discount: int = 0
    sale_count: int = 0
    refund: int = 0
    refund_count: int = 0
    undone: int = 0


class DaySums(NamedTuple):
    gross: int = 0
    discount: int = 0
    sale_count: int = 0
    pieces: int = 0
    municipality_fee: int = 0
    tip: int = 0
    sale_tax: int = 0
    unknown_tax_lines: int = 0
    missing_count: int = 0
    missing_amount: int = 0
    unresolved_count: int = 0
    unresolved_amount: int = 0
    undated_count: int = 0
    undated_amount: int = 0
    undone: int = 0
    refund: int = 0
    refund_count: int = 0
    refunded_fee: int = 0
    refunded_tip: int = 0
    refund_tax: int = 0
    refund_unknown_tax: int = 0
    refund_unknown_components: int = 0

    @property
    def sale(self) -> int:
        return self.gross - self.discount

    @property
    def net(self) -> int:
        return self.sale - self.refund

    @property
    def refund_amount(self) -> int:
        """Return the refunded amount, including fees and tips."""
        return self.refund + self.refunded_fee + self.refunded_tip


class UnitSums(NamedTuple):
    quantity_milli: int = 0
    line_count: int = 0


class ItemSums(NamedTuple):
    quantity_milli: int = 0
    line_count: int = 0
    gross: int = 0
    discount: int = 0
    refunded_milli: int = 0
    refund: int = 0


Key = TypeVar("Key", bound=Hashable)
Sums = TypeVar("Sums", HourSums, DaySums, UnitSums, ItemSums)


def add_part(sums: dict[Key, Sums], key: Key, part: Sums) -> None:
    """Add ``part`` to the sums of ``key``."""
    previous = sums.get(key)
    sums[key] = part if previous is None else type(part)(*map(add, previous, part))


def total(sum_type: type[Sums], parts: Iterable[Sums]) -> Sums:
    """Return the sums of all parts, field by field."""
    return sum_type(*map(sum, zip(*parts, strict=True)))
