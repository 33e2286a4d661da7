"""The sandbox's catalog: units, fees, categories, goods, and what lines of sales show of them."""

import hashlib
import random
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from controlplane.figures.money import milli
from controlplane.merchant.sales import SoldArticle
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

UNITS: Final = (("Piece", "pcs", 0), ("Kilogram", "kg", 3), ("Litre", "l", 2))
VAT: Final = (("VAT 5 %", 5_000), ("VAT 19 %", 19_000), ("Exempt", None))
MUNICIPALITY_MILLI: Final = 7_000
CATEGORIES: Final = ("Coffee", "Tea", "Bakery", "Salads", "Grill", "Juices", "Deli")
WORDS: Final = ("House", "Royal", "Golden", "Double", "Smoked", "Fresh", "Spiced", "Iced")
DISHES: Final = ("Espresso", "Karak", "Croissant", "Fattoush", "Kofta", "Lemonade", "Olives",
                 "Cappuccino", "Baklava", "Shawarma", "Labneh", "Dates")  # fmt: skip
SIZES: Final = ("Small", "Large")
CURRENCY: Final = "AED"
CENT_STEP: Final = 25


@dataclass(frozen=True, slots=True)
class Offer:
    """A thing that can be sold: its article, its price, and how much of it people buy."""

    article: SoldArticle
    price: int
    weight: int


@dataclass(frozen=True, slots=True)
class Catalog:
    """``oddities``: sold by hand, with a tax nobody knows, or of no unit."""

    offers: tuple[Offer, ...]
    oddities: tuple[Offer, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    id: UUID
    name: str
    symbol: str
    exponent: int


@dataclass(frozen=True, slots=True)
class Fee:
    id: UUID
    name: str
    percentage_milli: int | None


@dataclass(frozen=True, slots=True)
class Shown:
    """What lines show of an article. ``good`` is the ids of good, variation and category."""

    name: str
    source: str
    unit: Unit | None
    fee: Fee | None
    good: tuple[UUID | None, UUID | None, UUID | None] = (None, None, None)
    codes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """What goods are sorted by."""

    units: list[Unit]
    fees: list[Fee]
    categories: list[UUID]


class Shelf:
    """Where the catalog is put. A standing one is only looked through: its snapshots are found."""

    def __init__(self, session: Session, *, is_standing: bool = False) -> None:
        self._session = session
        self._is_standing = is_standing

    def put(self, table: type[Any], *rows: dict[str, Any]) -> None:
        if not self._is_standing:
            self._session.execute(insert(table), list(rows))

    def snapshot(self, values: dict[str, Any]) -> int:
        """Return the position."""
        if self._is_standing:
            found = select(LineSnapshot.position).where(
                LineSnapshot.organization_id == values["organization_id"],
                LineSnapshot.content_hash == values["content_hash"],
            )
            return self._session.execute(found).scalar_one()
        made = insert(LineSnapshot).values(values).returning(LineSnapshot.position)
        return self._session.execute(made).scalar_one()


def make_catalog(shelf: Shelf, plan: Plan) -> Catalog:
    units, fees = _units(shelf, plan), _fees(shelf, plan)
    taxonomy = Taxonomy(units, fees, [_category(shelf, plan, name) for name in CATEGORIES])
    offers: list[Offer] = []
    for number in range(plan.goods):
        offers += _good(shelf, plan, number, taxonomy)
    by_hand = _snapshot(shelf, plan, Shown("Something else", "manual_input", units[0], fees[0]))
    untaxed = _snapshot(shelf, plan, Shown("Imported article", "manual_input", units[0], None))
    bare = _snapshot(shelf, plan, Shown("Open amount", "custom_amount", None, fees[0]))
    return Catalog(
        tuple(offers), (Offer(by_hand, 1500, 1), Offer(untaxed, 900, 1), Offer(bare, 2000, 1))
    )


def _units(shelf: Shelf, plan: Plan) -> list[Unit]:
    units = [Unit(plan.id_of("uom", symbol), name, symbol, exp) for name, symbol, exp in UNITS]
    shelf.put(UnitOfMeasure, *(
        {"id": unit.id, "organization_id": plan.organization_id, "name": unit.name,
         "symbol": unit.symbol, "exponent": unit.exponent}
        for unit in units
    ))  # fmt: skip
    return units


def _fees(shelf: Shelf, plan: Plan) -> list[Fee]:
    fees = [Fee(plan.id_of("fee", name), name, milli) for name, milli in VAT]
    municipality = Fee(plan.id_of("fee", "municipality"), "Municipality fee", MUNICIPALITY_MILLI)
    shelf.put(FeeItem, *(
        {"id": fee.id, "organization_id": plan.organization_id, "name": fee.name,
         "kind": "municipality" if fee is municipality else "vat",
         "percentage_milli": fee.percentage_milli}
        for fee in (*fees, municipality)
    ))  # fmt: skip
    return fees


def _category(shelf: Shelf, plan: Plan, name: str) -> UUID:
    category_id = plan.id_of("category", name)
    shelf.put(
        Category,
        {
            "id": category_id,
            "organization_id": plan.organization_id,
            "name": name,
            "parent_id": None,
            "status": "active",
            "external_data": None,
            "created_at": plan.began,
            "updated_at": plan.began,
        },
    )
    return category_id


def _good(shelf: Shelf, plan: Plan, number: int, taxonomy: Taxonomy) -> list[Offer]:
    dice = plan.dice("good", number)
    name = f"{WORDS[number % len(WORDS)]} {DISHES[number % len(DISHES)]}"
    name += f" {number // len(DISHES) + 1}" if number >= len(DISHES) else ""
    unit = dice.choices(taxonomy.units, (80, 15, 5))[0]
    fee = dice.choices(taxonomy.fees, (80, 10, 10))[0]
    good_id, category = plan.id_of("good", number), dice.choice([*taxonomy.categories, None])
    external = {"id": f"erp-{plan.organization_id}-{number:05}"} if number % 5 == 0 else None
    shelf.put(
        Good,
        {
            "id": good_id,
            "organization_id": plan.organization_id,
            "name": name,
            "description": f"{name}, as the house makes it." if number % 3 else None,
            "status": "inactive" if number % 29 == 28 else "active",
            "category_id": category,
            "uom_id": unit.id,
            "fee_item_id": fee.id,
            "external_data": external,
            "created_at": plan.began,
            "updated_at": plan.began,
        },
    )
    if external is not None:
        shelf.put(
            CatalogExternalId,
            {
                "organization_id": plan.organization_id,
                "external_id": external["id"],
                "kind": "good",
                "entity_id": good_id,
            },
        )
    sizes = SIZES if unit.exponent == 0 and number % 4 == 0 else (None,)
    price = dice.randrange(20, 240) * CENT_STEP
    offers = []
    for at, size in enumerate(sizes):
        variation = plan.id_of("variation", number, at)
        codes = [("sku", f"SKU-{number:05}-{at}"), ("ean_13", _ean13(dice))]
        own_price = price * (at + 2) // 2
        shelf.put(
            GoodVariation,
            {
                "id": variation,
                "good_id": good_id,
                "number": at + 1,
                "name": size,
                "description": None,
                "status": "active",
                "price": own_price,
                "currency": CURRENCY,
                "image_url": None,
                "external_data": None,
            },
        )
        shelf.put(GoodCode, *(
            {"variation_id": variation, "number": place, "type": kind, "value": value}
            for place, (kind, value) in enumerate(codes, 1)
        ))  # fmt: skip
        shown = f"{name}, {size}" if size else name
        article = _snapshot(
            shelf,
            plan,
            Shown(shown, "catalog", unit, fee, (good_id, variation, category), tuple(codes)),
        )
        offers.append(Offer(article, own_price, dice.randrange(1, 20)))
    return offers


def _snapshot(shelf: Shelf, plan: Plan, shown: Shown) -> SoldArticle:
    unit, fee = shown.unit, shown.fee
    exponent = unit.exponent if unit else 0
    values: dict[str, Any] = {
        "organization_id": plan.organization_id, "name": shown.name, "source": shown.source,
        "good_id": shown.good[0], "variation_id": shown.good[1], "category_id": shown.good[2],
        "codes": [list(code) for code in shown.codes],
        "uom_id": unit and unit.id, "uom_name": unit and unit.name,
        "uom_symbol": unit and unit.symbol, "exponent": exponent,
        "unit_milli": milli(1, exponent), "fee_item_id": fee and fee.id,
        "fee_name": fee and fee.name, "percentage_milli": fee and fee.percentage_milli,
    }  # fmt: skip
    values["content_hash"] = hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()
    return SoldArticle(
        shelf.snapshot(values),
        values["uom_symbol"],
        exponent,
        values["percentage_milli"],
        has_known_tax=fee is not None,
    )


def _ean13(dice: random.Random) -> str:
    digits = [dice.randrange(10) for _ in range(12)]
    odd, even = sum(digits[0::2]), sum(digits[1::2])
    return "".join(map(str, digits)) + str(-(odd + 3 * even) % 10)
