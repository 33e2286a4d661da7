"""The catalog: categories, goods, variations and codes."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, Index
from sqlalchemy.orm import Mapped, mapped_column

from controlplane.storage.merchant.columns import ExternalData, OptionalWide, RowPosition, Wide
from controlplane.storage.tables import Base


class Category(Base):
    """A category. ``parent_id`` is None at the top level. ``status`` is active or inactive."""

    __tablename__ = "categories"
    __table_args__ = (Index("categories_by_organization", "organization_id", "position"),)
    position: Mapped[RowPosition]
    id: Mapped[UUID] = mapped_column(unique=True)
    organization_id: Mapped[str]
    name: Mapped[str]
    parent_id: Mapped[UUID | None]
    status: Mapped[str]
    external_data: Mapped[ExternalData]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class Good(Base):
    """A good. ``status`` is active, inactive or unknown.

    ``uom_id`` is the id of the unit of measure, and ``fee_item_id`` is the id of the VAT fee. Both
    apply to all variations.
    """

    __tablename__ = "goods"
    __table_args__ = (Index("goods_by_organization", "organization_id", "position"),)
    position: Mapped[RowPosition]
    id: Mapped[UUID] = mapped_column(unique=True)
    organization_id: Mapped[str]
    name: Mapped[str]
    description: Mapped[str | None]
    status: Mapped[str]
    category_id: Mapped[UUID | None]
    uom_id: Mapped[UUID]
    fee_item_id: Mapped[UUID]
    external_data: Mapped[ExternalData]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class GoodVariation(Base):
    """A variation of a good. ``number`` orders the variations, from 1.

    ``name`` is None if the good has only one variation. ``status`` is active or inactive.
    ``price`` is in minor units of ``currency``. Both are None if the price is entered at the sale.
    """

    __tablename__ = "good_variations"
    __table_args__ = (Index("good_variations_by_good", "good_id", "number", unique=True),)
    id: Mapped[UUID] = mapped_column(primary_key=True)
    good_id: Mapped[UUID]
    number: Mapped[int]
    name: Mapped[str | None]
    description: Mapped[str | None]
    status: Mapped[str]
    price: Mapped[OptionalWide]
    currency: Mapped[str | None]
    image_url: Mapped[str | None]
    external_data: Mapped[ExternalData]


class GoodCode(Base):
    """A code of a variation. ``type`` is ean_8, ean_13, itf_14, upc_a, sku or other.

    ``number`` orders the codes of a variation.
    """

    __tablename__ = "good_codes"
    variation_id: Mapped[UUID] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    type: Mapped[str]
    value: Mapped[str] = mapped_column(index=True)


class CatalogExternalId(Base):
    """An external id, unique among the categories, goods and variations of an organization.

    ``entity_id`` is the ``id`` of the object that has the external id. ``kind`` is the kind of the
    object, such as good.
    """

    __tablename__ = "catalog_external_ids"
    organization_id: Mapped[str] = mapped_column(primary_key=True)
    external_id: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    entity_id: Mapped[UUID]


class LineSnapshot(Base):
    """The article of a sale line, as it was when it was sold. Equal articles share one snapshot.

    ``content_hash`` is the hash of all other columns except ``position``. ``source`` is catalog,
    manual_input or custom_amount. ``codes`` are pairs of type and value. An imported line can have
    no unit (``uom_*`` are None) and no tax (``fee_*`` are None). ``percentage_milli`` is that of
    the `FeeItem`, or None without a tax. ``exponent`` is the exponent of the unit, or 0 without a
    unit. ``unit_milli`` is 10^(3 − ``exponent``). The quantity of a line multiplied by
    ``unit_milli`` is the quantity in thousandths of the unit.
    """

    __tablename__ = "line_snapshots"
    __table_args__ = (
        Index("line_snapshots_by_content", "organization_id", "content_hash", unique=True),
    )
    position: Mapped[RowPosition]
    organization_id: Mapped[str]
    content_hash: Mapped[str]
    name: Mapped[str]
    source: Mapped[str]
    good_id: Mapped[UUID | None]
    variation_id: Mapped[UUID | None]
    category_id: Mapped[UUID | None]
    codes: Mapped[list[Any]] = mapped_column(JSON)
    uom_id: Mapped[UUID | None]
    uom_name: Mapped[str | None]
    uom_symbol: Mapped[str | None]
    exponent: Mapped[int]
    unit_milli: Mapped[Wide]
    fee_item_id: Mapped[UUID | None]
    fee_name: Mapped[str | None]
    percentage_milli: Mapped[int | None]
