"""Which tables hold an organization's data, in the order they are written, and how rows of them
belong to it and to each other."""

from dataclasses import dataclass, field
from typing import Any, Final, cast

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.orm import Session

from controlplane.storage.merchant.catalog_tables import (
    CatalogExternalId,
    Category,
    Good,
    GoodCode,
    GoodVariation,
    LineSnapshot,
)
from controlplane.storage.merchant.merchant_tables import (
    Employee,
    FeeItem,
    Location,
    Organization,
    PaymentMethod,
    PointOfSale,
    UnitOfMeasure,
)
from controlplane.storage.merchant.rollup_tables import ROLLUPS
from controlplane.storage.merchant.sales_tables import (
    Refund,
    RefundLine,
    Sale,
    SaleLine,
    SalePayment,
)


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """``references`` names the columns that hold another table's positions. ``owner`` is a table
    with an organization, and the columns, here and there, by which rows belong to it; None for a
    table that names the organization itself."""

    table: Any
    references: dict[str, Any] = field(default_factory=dict)
    owner: tuple[Any, str, str] | None = None

    @property
    def name(self) -> str:
        return str(self.table.__tablename__)

    def belongs(self, organization_id: str) -> ColumnElement[bool]:
        columns: Any = self.table
        if self.table is GoodCode:
            goods = select(Good.id).where(Good.organization_id == organization_id)
            within = select(GoodVariation.id).where(GoodVariation.good_id.in_(goods))
            return GoodCode.variation_id.in_(within)
        if self.owner is None:
            own = columns.id if self.table is Organization else columns.organization_id
            return cast(ColumnElement[bool], own == organization_id)
        owner, here, there = self.owner
        rows = select(getattr(owner, there)).where(owner.organization_id == organization_id)
        return cast(ColumnElement[bool], getattr(columns, here).in_(rows))


CONTENTS: Final = (
    Content(Organization),
    Content(Location),
    Content(Employee, {"location": Location}),
    Content(PointOfSale, {"location": Location}),
    Content(PaymentMethod),
    Content(UnitOfMeasure),
    Content(FeeItem),
    Content(Category),
    Content(Good),
    Content(GoodVariation, owner=(Good, "good_id", "id")),
    Content(GoodCode),
    Content(CatalogExternalId),
    Content(LineSnapshot),
    Content(
        Sale,
        {
            "location": Location,
            "point_of_sale": PointOfSale,
            "employee": Employee,
            "payment_method": PaymentMethod,
        },
    ),
    Content(SaleLine, {"sale": Sale, "snapshot": LineSnapshot}, (Sale, "sale", "position")),
    Content(SalePayment, {"sale": Sale, "method": PaymentMethod}, (Sale, "sale", "position")),
    Content(
        Refund,
        {
            "sale": Sale,
            "location": Location,
            "employee": Employee,
            "payment_method": PaymentMethod,
        },
    ),
    Content(RefundLine, {"refund": Refund}, (Refund, "refund", "position")),
)


def clear(session: Session, organization_id: str) -> None:
    """Delete all that belongs to the organization, and itself."""
    places = select(Location.position).where(Location.organization_id == organization_id)
    for rollup in ROLLUPS:
        session.execute(delete(rollup).where(rollup.location.in_(places)))
    for content in reversed(CONTENTS):
        session.execute(delete(content.table).where(content.belongs(organization_id)))
