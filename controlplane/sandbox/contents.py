"""The tables of a merchant except the rollups, in the order in which they are written.

Each entry of `CONTENTS` describes how the rows of a table refer to the organization and to other
tables.
"""

from dataclasses import dataclass, field
from typing import Any, Final, cast

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.orm import Session

from controlplane.storage.merchant import catalog_tables as catalog
from controlplane.storage.merchant import merchant_tables as merchant
from controlplane.storage.merchant import sales_tables as sales
from controlplane.storage.merchant.rollup_tables import ROLLUPS


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """A table, and how its rows refer to the organization and to other tables.

    Args:
        references: The names of the columns that refer to a row of another table by its primary key
            ``position``, each with that table.
        owner: How to find the organization of a row if this table has no column for it. The values
            are the `Content` of the parent table, the column of this table that refers to a row of
            the parent table, and the column of the parent table that contains the same value.
    """

    table: Any
    references: dict[str, Any] = field(default_factory=dict)
    owner: "tuple[Content, str, str] | None" = None

    @property
    def name(self) -> str:
        return str(self.table.__tablename__)

    def belongs_to(self, organization_id: str) -> ColumnElement[bool]:
        columns: Any = self.table
        if self.owner is None:
            column = columns.id if self.table is merchant.Organization else columns.organization_id
            return cast(ColumnElement[bool], column == organization_id)
        owner, reference, key = self.owner
        keys = select(getattr(owner.table, key)).where(owner.belongs_to(organization_id))
        return cast(ColumnElement[bool], getattr(columns, reference).in_(keys))


_GOODS: Final = Content(catalog.Good)
_VARIATIONS: Final = Content(catalog.GoodVariation, owner=(_GOODS, "good_id", "id"))
_SALES: Final = Content(
    sales.Sale,
    {
        "location": merchant.Location,
        "point_of_sale": merchant.PointOfSale,
        "employee": merchant.Employee,
        "payment_method": merchant.PaymentMethod,
    },
)
_REFUNDS: Final = Content(
    sales.Refund,
    {
        "sale": sales.Sale,
        "location": merchant.Location,
        "employee": merchant.Employee,
        "payment_method": merchant.PaymentMethod,
    },
)
CONTENTS: Final = (
    Content(merchant.Organization),
    Content(merchant.Location),
    Content(merchant.Employee, {"location": merchant.Location}),
    Content(merchant.PointOfSale, {"location": merchant.Location}),
    Content(merchant.PaymentMethod),
    Content(merchant.UnitOfMeasure),
    Content(merchant.FeeItem),
    Content(catalog.Category),
    _GOODS,
    _VARIATIONS,
    Content(catalog.GoodCode, owner=(_VARIATIONS, "variation_id", "id")),
    Content(catalog.CatalogExternalId),
    Content(catalog.LineSnapshot),
    _SALES,
    Content(
        sales.SaleLine,
        {"sale": sales.Sale, "snapshot": catalog.LineSnapshot},
        (_SALES, "sale", "position"),
    ),
    Content(
        sales.SalePayment,
        {"sale": sales.Sale, "method": merchant.PaymentMethod},
        (_SALES, "sale", "position"),
    ),
    _REFUNDS,
    Content(sales.RefundLine, {"refund": sales.Refund}, (_REFUNDS, "refund", "position")),
)


def delete_merchant(session: Session, organization_id: str) -> None:
    """Delete the merchant: the organization with its locations, goods, sales and rollups.

    Its devices, users and keys are in other tables and are kept.
    """
    locations = select(merchant.Location.position).where(
        merchant.Location.organization_id == organization_id
    )
    for rollup in ROLLUPS:
        session.execute(delete(rollup).where(rollup.location.in_(locations)))
    for content in reversed(CONTENTS):
        session.execute(delete(content.table).where(content.belongs_to(organization_id)))
