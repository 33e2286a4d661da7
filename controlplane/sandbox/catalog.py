"""The sandbox's catalog: units, fees, categories, goods, and the snapshots for the lines of sales.

The plan determines every row. Therefore a stored catalog is not read: its rows are generated again,
and only the positions of its snapshots are read. Rows are processed in batches. A batch is released
from memory before the next one begins.
"""

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.figures.money import milli
from controlplane.merchant.sales import SoldArticle
from controlplane.merchant.writing import article_of
from controlplane.sandbox.plan import Plan
from controlplane.storage.merchant.catalog_tables import (
    CatalogExternalId,
    Category,
    Good,
    GoodCode,
    GoodVariation,
    LineSnapshot,
)
from controlplane.storage.merchant.merchant_tables import FeeItem, UnitOfMeasure
from controlplane.storage.tables import Base

UNITS: Final = (("Piece", "pcs", 0), ("Kilogram", "kg", 3), ("Litre", "l", 2))
"""Name, symbol and exponent of each unit."""
VAT: Final = (("VAT 5 %", 5_000), ("Zero rate", 0), ("Exempt", None))
"""Name and rate of each VAT fee. Rates are in thousandths of a percent."""
AWKWARD_VAT: Final = (("VAT 5 %", 5_000), ("VAT 19 %", 19_000), ("Exempt", None))
"""The VAT fees of an awkward sandbox (`Plan.is_awkward`), in the same form as `VAT`."""
MUNICIPALITY_MILLI: Final = 7_000
CATEGORIES: Final = ("Coffee", "Tea", "Bakery", "Salads", "Grill", "Juices", "Deli")
WORDS: Final = ("House", "Royal", "Golden", "Double", "Smoked", "Fresh", "Spiced", "Iced")
DISHES: Final = ("Espresso", "Karak", "Croissant", "Fattoush", "Kofta", "Lemonade", "Olives",
                 "Cappuccino", "Baklava", "Shawarma", "Labneh", "Dates")  # fmt: skip
SIZES: Final = ("Small", "Large")
CURRENCY: Final = "AED"
CENT_STEP: Final = 25
"""The price of a good is a multiple of this many cents. In the size Large, the good costs 1.5 times
this price."""
ROWS_MAX: Final = 1_000
"""A batch ends with the good that brings it to this number of rows or more."""
Row = TypeVar("Row", bound=Base)


@dataclass(frozen=True, slots=True)
class Offer:
    """An article. ``price`` is in cents. ``weight`` is the relative number of its sales."""

    article: SoldArticle
    price: int
    weight: int


@dataclass(frozen=True, slots=True)
class Catalog:
    """The offers of the sandbox.

    ``irregular`` offers are not in the catalog tables: staff enter them by hand during a sale. If
    the sandbox is awkward, some have an unknown tax or no unit.
    """

    offers: tuple[Offer, ...]
    irregular: tuple[Offer, ...]


def make_catalog(session: Session, plan: Plan) -> Catalog:
    """Write the catalog and return it."""

    def write(rows: list[Base]) -> None:
        session.add_all(rows)
        session.flush()
        for row in rows:
            session.expunge(row)

    return _CatalogBuilder(plan, write).build()


def load_catalog(session: Session, plan: Plan) -> Catalog:
    """Return the catalog that `make_catalog` wrote."""

    def set_positions(rows: list[Base]) -> None:
        snapshots = {row.content_hash: row for row in rows if isinstance(row, LineSnapshot)}
        query = select(LineSnapshot.content_hash, LineSnapshot.position).where(
            LineSnapshot.organization_id == plan.organization_id,
            LineSnapshot.content_hash.in_(snapshots),
        )
        positions = {row.content_hash: row.position for row in session.execute(query)}
        for content_hash, snapshot in snapshots.items():
            snapshot.position = positions[content_hash]

    return _CatalogBuilder(plan, set_positions).build()


class _CatalogBuilder:
    """Generates the rows of a catalog in batches.

    ``store`` is called with the rows of a batch and must set the positions of its snapshots.
    """

    def __init__(self, plan: Plan, store: Callable[[list[Base]], None]) -> None:
        self._plan = plan
        self._store = store
        self._owner = {"organization_id": plan.organization_id}
        self._dated = {**self._owner, "created_at": plan.created_at, "updated_at": plan.created_at}
        # The snapshots of the batch, each with the price and the weight of its offer.
        self._drafts: list[tuple[LineSnapshot, int, int]] = []
        self._rows: list[Base] = []
        self._units = [self._unit(*unit) for unit in UNITS]
        rates = AWKWARD_VAT if plan.is_awkward else VAT
        self._fees = [self._fee(name, name, "vat", percentage) for name, percentage in rates]
        self._fee("municipality", "Municipality fee", "municipality", MUNICIPALITY_MILLI)
        self._categories = [
            self._add(
                Category(id=plan.id_of("category", name), name=name, status="active", **self._dated)
            ).id
            for name in CATEGORIES
        ]

    def build(self) -> Catalog:
        offers: list[Offer] = []
        for number in range(self._plan.goods):
            self._good(number)
            if len(self._rows) >= ROWS_MAX:
                offers += self._end_batch()
        offers += self._end_batch()
        piece, fee = self._units[0], self._fees[0]
        self._drafts = [(self._snapshot("Something else", "manual_input", piece, fee), 1500, 1)]
        if self._plan.is_awkward:
            imported_article = self._snapshot("Imported article", "manual_input", piece, None)
            self._drafts.append((imported_article, 900, 1))
        unit = None if self._plan.is_awkward else piece
        self._drafts.append((self._snapshot("Open amount", "custom_amount", unit, fee), 2000, 1))
        return Catalog(tuple(offers), tuple(self._end_batch()))

    def _end_batch(self) -> list[Offer]:
        """Store the rows of the batch, and return the offers of its snapshots."""
        self._store(self._rows)
        offers = [Offer(article_of(row), price, weight) for row, price, weight in self._drafts]
        self._rows, self._drafts = [], []
        return offers

    def _add(self, row: Row) -> Row:
        self._rows.append(row)
        return row

    def _unit(self, name: str, symbol: str, exponent: int) -> UnitOfMeasure:
        columns = {"name": name, "symbol": symbol, "exponent": exponent}
        return self._add(
            UnitOfMeasure(id=self._plan.id_of("uom", symbol), **columns, **self._owner)
        )

    def _fee(self, subject: str, name: str, kind: str, percentage_milli: int | None) -> FeeItem:
        columns = {"name": name, "kind": kind, "percentage_milli": percentage_milli}
        return self._add(FeeItem(id=self._plan.id_of("fee", subject), **columns, **self._owner))

    def _good(self, number: int) -> None:
        plan = self._plan
        rng = plan.random_for("good", number)
        name = f"{WORDS[number % len(WORDS)]} {DISHES[number % len(DISHES)]}"
        if number >= len(DISHES):
            name += f" {number // len(DISHES) + 1}"
        unit = rng.choices(self._units, (80, 15, 5))[0]
        fee = rng.choices(self._fees, (80, 10, 10))[0]
        good_id, category = plan.id_of("good", number), rng.choice([*self._categories, None])
        external_id = f"erp-{plan.organization_id}-{number:05}" if number % 5 == 0 else None
        self._add(
            Good(
                id=good_id,
                name=name,
                description=f"{name}, homemade." if number % 3 else None,
                status="inactive" if number % 29 == 28 else "active",
                category_id=category,
                uom_id=unit.id,
                fee_item_id=fee.id,
                external_data=external_id and {"id": external_id},
                **self._dated,
            )
        )
        if external_id is not None:
            self._add(
                CatalogExternalId(
                    external_id=external_id, kind="good", entity_id=good_id, **self._owner
                )
            )
        price = rng.randrange(20, 240) * CENT_STEP
        sizes: tuple[str | None, ...] = SIZES if unit.exponent == 0 and number % 4 == 0 else (None,)
        for index, size in enumerate(sizes):
            variation_id = plan.id_of("variation", number, index)
            own_price = price * (index + 2) // 2
            codes = [("sku", f"SKU-{number:05}-{index}"), ("ean_13", _ean13(rng))]
            columns = {"number": index + 1, "name": size, "price": own_price}
            self._variation(codes, id=variation_id, good_id=good_id, **columns)
            full_name = f"{name}, {size}" if size else name
            ids = (good_id, variation_id, category)
            snapshot = self._snapshot(full_name, "catalog", unit, fee, ids=ids, codes=codes)
            self._drafts.append((snapshot, own_price, rng.randrange(1, 20)))

    def _variation(self, codes: Sequence[tuple[str, str]], **columns: Any) -> None:
        row = self._add(GoodVariation(status="active", currency=CURRENCY, **columns))
        for number, (kind, value) in enumerate(codes, 1):
            self._add(GoodCode(variation_id=row.id, number=number, type=kind, value=value))

    def _snapshot(
        self,
        name: str,
        source: str,
        unit: UnitOfMeasure | None,
        fee: FeeItem | None,
        *,
        ids: tuple[UUID | None, UUID | None, UUID | None] = (None, None, None),
        codes: Sequence[tuple[str, str]] = (),
    ) -> LineSnapshot:
        """Add a snapshot. ``ids`` are the ids of the good, the variation and the category."""
        exponent = unit.exponent if unit else 0
        values: dict[str, Any] = {
            **self._owner, "name": name, "source": source,
            "good_id": ids[0], "variation_id": ids[1], "category_id": ids[2],
            "codes": [list(code) for code in codes],
            "uom_id": unit and unit.id, "uom_name": unit and unit.name,
            "uom_symbol": unit and unit.symbol, "exponent": exponent,
            "unit_milli": milli(1, exponent), "fee_item_id": fee and fee.id,
            "fee_name": fee and fee.name, "percentage_milli": fee and fee.percentage_milli,
        }  # fmt: skip
        content_hash = hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()
        return self._add(LineSnapshot(content_hash=content_hash, **values))


def _ean13(rng: random.Random) -> str:
    digits = [rng.randrange(10) for _ in range(12)]
    odd, even = sum(digits[0::2]), sum(digits[1::2])
    return "".join(map(str, digits)) + str(-(odd + 3 * even) % 10)
