"""A merchant's data: who and where, what is offered, what was sold, and the sums over it."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.types import TypeEngine

revision = "0004"
down_revision = "0003"

Position = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Moment = sa.DateTime(timezone=True)
Kind = TypeEngine[Any] | type[TypeEngine[Any]]
Columns = dict[str, Kind]

DAY_SUMS = (
    "gross", "discount", "sale_count", "pieces", "municipality_fee", "tip", "sale_tax",
    "unknown_tax_lines", "missing_count", "missing_amount", "unresolved_count",
    "unresolved_amount", "undated_count", "undated_amount", "undone", "refund", "refund_count",
    "refunded_fee", "refunded_tip", "refund_tax", "refund_unknown_tax",
    "refund_unknown_components",
)  # fmt: skip
ITEM_SUMS = ("quantity_milli", "line_count", "gross", "discount", "refunded_milli", "refund")


def upgrade() -> None:
    _organizations()
    _people_and_places()
    _fees_and_units()
    _catalog()
    _snapshots()
    _sales()
    _refunds()
    _rollups()


def _required(columns: Mapping[str, Kind]) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=False) for name, kind in columns.items()]


def _optional(columns: Columns) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind) for name, kind in columns.items()]


def _position() -> sa.Column[Any]:
    return sa.Column("position", Position, primary_key=True, autoincrement=True)


def _key(columns: Columns) -> list[sa.Column[Any]]:
    """A primary key of several columns, none of which counts up by itself."""
    return [
        sa.Column(name, kind, primary_key=True, autoincrement=False)
        for name, kind in columns.items()
    ]


def _organizations() -> None:
    op.create_table(
        "organizations",
        sa.Column("id", sa.Text, primary_key=True),
        *_required({"name": sa.Text, "created_at": Moment}),
        *_optional({"sandbox": sa.JSON}),
    )
    op.create_table(
        "locations",
        _position(),
        *_required({"id": sa.Text, "organization_id": sa.Text, "name": sa.Text}),
        *_optional({"zone": sa.Text}),
        *_required({"currency": sa.Text, "created_at": Moment}),
        sa.UniqueConstraint("organization_id", "id", name="locations_by_id"),
    )


def _people_and_places() -> None:
    named: Columns = {"id": sa.Text, "organization_id": sa.Text, "name": sa.Text}
    stamps: Columns = {"status": sa.Text, "created_at": Moment, "updated_at": Moment}
    op.create_table(
        "employees",
        _position(),
        *_required(named | {"role": sa.Text} | stamps),
        *_optional({"location": sa.Integer}),
        sa.UniqueConstraint("organization_id", "id", name="employees_by_id"),
    )
    op.create_table(
        "points_of_sale",
        _position(),
        *_required(named | {"location": sa.Integer} | stamps),
        sa.UniqueConstraint("organization_id", "id", name="points_of_sale_by_id"),
    )
    op.create_table(
        "payment_methods",
        _position(),
        *_required(named | {"id": sa.Uuid, "type": sa.Text}),
        sa.UniqueConstraint("organization_id", "id", name="payment_methods_by_id"),
    )


def _fees_and_units() -> None:
    named: Columns = {"organization_id": sa.Text, "name": sa.Text}
    op.create_table(
        "units_of_measure",
        sa.Column("id", sa.Uuid, primary_key=True),
        *_required(named | {"symbol": sa.Text, "exponent": sa.Integer}),
    )
    op.create_table(
        "fee_items",
        sa.Column("id", sa.Uuid, primary_key=True),
        *_required(named | {"kind": sa.Text}),
        *_optional({"percentage_milli": sa.Integer}),
    )
    for table in ("units_of_measure", "fee_items"):
        op.create_index(f"ix_{table}_organization_id", table, ["organization_id"])


def _catalog() -> None:
    entity: Columns = {"organization_id": sa.Text, "name": sa.Text, "status": sa.Text}
    stamps: Columns = {"created_at": Moment, "updated_at": Moment}
    op.create_table(
        "categories",
        _position(),
        sa.Column("id", sa.Uuid, nullable=False, unique=True),
        *_required(entity | stamps),
        *_optional({"parent_id": sa.Uuid, "external_data": sa.JSON}),
    )
    op.create_table(
        "goods",
        _position(),
        sa.Column("id", sa.Uuid, nullable=False, unique=True),
        *_required(entity | stamps | {"uom_id": sa.Uuid, "fee_item_id": sa.Uuid}),
        *_optional({"description": sa.Text, "category_id": sa.Uuid, "external_data": sa.JSON}),
    )
    for table in ("categories", "goods"):
        op.create_index(f"{table}_by_organization", table, ["organization_id", "position"])
    op.create_table(
        "good_variations",
        sa.Column("id", sa.Uuid, primary_key=True),
        *_required({"good_id": sa.Uuid, "number": sa.Integer, "status": sa.Text}),
        *_optional({"name": sa.Text, "description": sa.Text, "price": sa.BigInteger}),
        *_optional({"currency": sa.Text, "image_url": sa.Text, "external_data": sa.JSON}),
    )
    op.create_index(
        "good_variations_by_good", "good_variations", ["good_id", "number"], unique=True
    )
    op.create_table(
        "good_codes",
        *_key({"variation_id": sa.Uuid, "number": sa.Integer}),
        *_required({"type": sa.Text, "value": sa.Text}),
    )
    op.create_index("ix_good_codes_value", "good_codes", ["value"])
    op.create_table(
        "catalog_external_ids",
        *_key({"organization_id": sa.Text, "external_id": sa.Text}),
        *_required({"kind": sa.Text, "entity_id": sa.Uuid}),
    )


def _snapshots() -> None:
    op.create_table(
        "line_snapshots",
        _position(),
        *_required({"organization_id": sa.Text, "content_hash": sa.Text, "name": sa.Text}),
        *_required({"source": sa.Text, "codes": sa.JSON, "exponent": sa.Integer}),
        *_required({"unit_milli": sa.BigInteger}),
        *_optional({"good_id": sa.Uuid, "variation_id": sa.Uuid, "category_id": sa.Uuid}),
        *_optional({"uom_id": sa.Uuid, "uom_name": sa.Text, "uom_symbol": sa.Text}),
        *_optional({"fee_item_id": sa.Uuid, "fee_name": sa.Text, "percentage_milli": sa.Integer}),
    )
    op.create_index(
        "line_snapshots_by_content",
        "line_snapshots",
        ["organization_id", "content_hash"],
        unique=True,
    )


def _sales() -> None:
    moments = ("initiated_at", "created_at", "updated_at")
    money = ("gross", "discount", "total", "taxable_amount", "tax", "municipality_fee", "tip")
    op.create_table(
        "sales",
        _position(),
        sa.Column("id", sa.Uuid, nullable=False, unique=True),
        *_required({"organization_id": sa.Text, "location": sa.Integer}),
        *_required({"point_of_sale": sa.Integer}),
        *_optional({"employee": sa.Integer}),
        *_required({"number": sa.Text, "ticket_number": sa.Text, "status": sa.Text}),
        *_required(dict.fromkeys(moments, sa.BigInteger)),
        *_required({"local_hour": sa.Integer}),
        *_optional({"comment": sa.Text, "external_data": sa.JSON}),
        *_required({"currency": sa.Text}),
        *_required(dict.fromkeys(money, sa.BigInteger)),
        *_required({"has_lines": sa.Boolean, "pieces": sa.BigInteger}),
        *_required({"unknown_tax_lines": sa.Integer, "payment_type": sa.Text}),
        *_optional({"payment_method": sa.Integer}),
    )
    for name, columns in {
        "sales_by_moment": ["organization_id", "initiated_at", "position"],
        "sales_by_creation": ["organization_id", "created_at", "position"],
        "sales_by_change": ["organization_id", "updated_at", "position"],
        "sales_by_number": ["organization_id", "number", "position"],
        "sales_by_location": ["location", "initiated_at"],
    }.items():
        op.create_index(name, "sales", columns)
    amounts = ("quantity", "unit_price", "gross", "discount", "share", "total")
    op.create_table(
        "sale_lines",
        *_key({"sale": sa.BigInteger, "number": sa.Integer}),
        *_required({"snapshot": sa.BigInteger} | dict.fromkeys(amounts, sa.BigInteger)),
        *_optional({"tax": sa.BigInteger}),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sale_payments",
        *_key({"sale": sa.BigInteger, "number": sa.Integer}),
        *_optional({"method": sa.Integer}),
        *_required({"amount": sa.BigInteger}),
        sqlite_with_rowid=False,
    )


def _refunds() -> None:
    op.create_table(
        "refunds",
        _position(),
        sa.Column("id", sa.Uuid, nullable=False, unique=True),
        *_required({"sale": sa.BigInteger, "organization_id": sa.Text, "location": sa.Integer}),
        *_optional({"employee": sa.Integer, "refunded_at": sa.BigInteger}),
        *_required({"created_at": sa.BigInteger}),
        *_optional({"local_hour": sa.Integer}),
        *_required({"currency": sa.Text}),
        *_required(dict.fromkeys(("goods", "fee", "tip"), sa.BigInteger)),
        *_optional({"tax": sa.BigInteger}),
        *_required({"has_components": sa.Boolean, "payment_type": sa.Text}),
        *_optional({"payment_method": sa.Integer}),
    )
    op.create_index("refunds_by_sale", "refunds", ["sale"])
    op.create_index("refunds_by_location", "refunds", ["location", "refunded_at"])
    op.create_table(
        "refund_lines",
        *_key({"refund": sa.BigInteger, "number": sa.Integer}),
        *_required({"line": sa.Integer, "quantity": sa.BigInteger, "amount": sa.BigInteger}),
        sqlite_with_rowid=False,
    )


def _rollups() -> None:
    place: Columns = {"location": sa.Integer}
    day: Columns = place | {"day": sa.Integer, "currency": sa.Text}
    item: Columns = {"snapshot": sa.BigInteger}
    payment: Columns = {"payment_type": sa.Text}
    hour_sums = ("gross", "discount", "sale_count", "refund", "refund_count", "undone")
    _rollup("hour_rollups", place | {"hour": sa.Integer, "currency": sa.Text}, hour_sums)
    _rollup("day_rollups", day | payment | {"payment_method": sa.Integer}, DAY_SUMS)
    _rollup("unit_rollups", day | payment | {"unit": sa.Text}, ("quantity_milli", "line_count"))
    _rollup("item_day_rollups", day | item | payment, ITEM_SUMS)
    _rollup(
        "item_span_rollups",
        place | {"span": sa.Integer, "currency": sa.Text} | item,
        ITEM_SUMS,
    )


def _rollup(name: str, key: Columns, sums: tuple[str, ...]) -> None:
    op.create_table(
        name,
        *_key(key),
        *_required(dict.fromkeys(sums, sa.BigInteger)),
        sqlite_with_rowid=False,
    )
