"""The tables of a merchant, how their rows refer to each other, and the deletion of a merchant."""

from typing import Any, Final, cast

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.orm import Session

from controlplane.storage.merchant import catalog_tables as catalog
from controlplane.storage.merchant import merchant_tables as merchant
from controlplane.storage.merchant import sales_tables as sales
from controlplane.storage.merchant.rollup_tables import ROLLUPS

CONTENTS: Final[tuple[Any, ...]] = (
    merchant.Organization,
    merchant.Location,
    merchant.Employee,
    merchant.PointOfSale,
    merchant.PaymentMethod,
    merchant.UnitOfMeasure,
    merchant.FeeItem,
    catalog.Category,
    catalog.Good,
    catalog.GoodVariation,
    catalog.GoodCode,
    catalog.CatalogExternalId,
    catalog.LineSnapshot,
    sales.Sale,
    sales.SaleLine,
    sales.SalePayment,
    sales.Refund,
    sales.RefundLine,
)
"""The tables except the rollups, in the order in which they are written."""
REFERENCES: Final[dict[str, Any]] = {
    "location": merchant.Location,
    "point_of_sale": merchant.PointOfSale,
    "employee": merchant.Employee,
    "payment_method": merchant.PaymentMethod,
    "method": merchant.PaymentMethod,
    "snapshot": catalog.LineSnapshot,
    "sale": sales.Sale,
    "refund": sales.Refund,
}
"""The columns that refer to a row of another table by its primary key ``position``, each with that
table."""
OWNERS: Final[dict[Any, tuple[Any, str, str]]] = {
    catalog.GoodVariation: (catalog.Good, "good_id", "id"),
    catalog.GoodCode: (catalog.GoodVariation, "variation_id", "id"),
    sales.SaleLine: (sales.Sale, "sale", "position"),
    sales.SalePayment: (sales.Sale, "sale", "position"),
    sales.RefundLine: (sales.Refund, "refund", "position"),
}
"""How to find the organization of a row if its table has no column for it.

The values are the parent table, the column that refers to a row of the parent table, and the column
of the parent table that contains the same value.
"""


def belongs_to(table: Any, organization_id: str) -> ColumnElement[bool]:
    """Return the SQL condition for the rows of ``table`` that belong to an organization."""
    if table in OWNERS:
        parent, reference, key = OWNERS[table]
        keys = select(getattr(parent, key)).where(belongs_to(parent, organization_id))
        return cast(ColumnElement[bool], getattr(table, reference).in_(keys))
    column = table.id if table is merchant.Organization else table.organization_id
    return cast(ColumnElement[bool], column == organization_id)


def delete_merchant(session: Session, organization_id: str) -> None:
    """Delete the merchant: the organization with its locations, goods, sales and rollups.

    Its devices, users and keys are in other tables and are kept.
    """
    locations = select(merchant.Location.position).where(
        merchant.Location.organization_id == organization_id
    )
    for rollup in ROLLUPS:
        session.execute(delete(rollup).where(rollup.location.in_(locations)))
    for table in reversed(CONTENTS):
        session.execute(delete(table).where(belongs_to(table, organization_id)))
