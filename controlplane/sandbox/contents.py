"""The tables with an organization's data, in the order in which they are written, and how their
rows refer to the organization and to each other."""

from dataclasses import dataclass, field
from typing import Any, Final, cast

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.orm import Session

from controlplane.storage.merchant import catalog_tables as catalog
from controlplane.storage.merchant import merchant_tables as merchant
from controlplane.storage.merchant import rollup_tables as rollups
from controlplane.storage.merchant import sales_tables as sales

ROLLUPS: Final = (
    rollups.HourRollup,
    rollups.DayRollup,
    rollups.UnitRollup,
    rollups.ItemDayRollup,
    rollups.ItemSpanRollup,
)


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """A table.

    Args:
        references: Columns with positions of another table.
        owner: A table with an organization, this table's column that refers to it, and the column
            that is referred to. None if this table has an organization itself.
    """

    table: Any
    references: dict[str, Any] = field(default_factory=dict)
    owner: tuple[Any, str, str] | None = None

    @property
    def name(self) -> str:
        return str(self.table.__tablename__)

    def belongs(self, organization_id: str) -> ColumnElement[bool]:
        columns: Any = self.table
        if self.table is catalog.GoodCode:
            goods = select(catalog.Good.id).where(catalog.Good.organization_id == organization_id)
            within = select(catalog.GoodVariation.id).where(
                catalog.GoodVariation.good_id.in_(goods)
            )
            return catalog.GoodCode.variation_id.in_(within)
        if self.owner is None:
            own = columns.id if self.table is merchant.Organization else columns.organization_id
            return cast(ColumnElement[bool], own == organization_id)
        owner, here, there = self.owner
        rows = select(getattr(owner, there)).where(owner.organization_id == organization_id)
        return cast(ColumnElement[bool], getattr(columns, here).in_(rows))


CONTENTS: Final = (
    Content(merchant.Organization),
    Content(merchant.Location),
    Content(merchant.Employee, {"location": merchant.Location}),
    Content(merchant.PointOfSale, {"location": merchant.Location}),
    Content(merchant.PaymentMethod),
    Content(merchant.UnitOfMeasure),
    Content(merchant.FeeItem),
    Content(catalog.Category),
    Content(catalog.Good),
    Content(catalog.GoodVariation, owner=(catalog.Good, "good_id", "id")),
    Content(catalog.GoodCode),
    Content(catalog.CatalogExternalId),
    Content(catalog.LineSnapshot),
    Content(
        sales.Sale,
        {
            "location": merchant.Location,
            "point_of_sale": merchant.PointOfSale,
            "employee": merchant.Employee,
            "payment_method": merchant.PaymentMethod,
        },
    ),
    Content(
        sales.SaleLine,
        {"sale": sales.Sale, "snapshot": catalog.LineSnapshot},
        (sales.Sale, "sale", "position"),
    ),
    Content(
        sales.SalePayment,
        {"sale": sales.Sale, "method": merchant.PaymentMethod},
        (sales.Sale, "sale", "position"),
    ),
    Content(
        sales.Refund,
        {
            "sale": sales.Sale,
            "location": merchant.Location,
            "employee": merchant.Employee,
            "payment_method": merchant.PaymentMethod,
        },
    ),
    Content(sales.RefundLine, {"refund": sales.Refund}, (sales.Refund, "refund", "position")),
)


def clear(session: Session, organization_id: str) -> None:
    """Delete the organization and all of its data."""
    locations = select(merchant.Location.position).where(
        merchant.Location.organization_id == organization_id
    )
    for rollup in ROLLUPS:
        session.execute(delete(rollup).where(rollup.location.in_(locations)))
    for content in reversed(CONTENTS):
        session.execute(delete(content.table).where(content.belongs(organization_id)))
