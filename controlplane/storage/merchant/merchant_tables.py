"""A merchant: organization, locations, people, terminals, ways to pay, fees and units.

The retail document's company is the organization. Rows refer to each other by ``position``; ``id``
is what the wire knows. As elsewhere there are no foreign keys: who writes checks.
"""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import JSON, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from controlplane.storage.merchant.columns import RowPosition
from controlplane.storage.tables import Base

NO_CURRENCY: Final = "XXX"
"""The code of ISO 4217 for "no currency": the location has devices, but no sales and figures."""


class Organization(Base):
    """An organization. ``sandbox`` is the plan of generated data, None for a real organization."""

    __tablename__ = "organizations"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    sandbox: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    created_at: Mapped[datetime]


class Location(Base):
    """A venue.

    ``name`` is None until an operator names it. ``zone`` is an IANA name; with None or an invalid
    name, days are those of UTC, which the figures report. Only `controlplane.merchant.locations`
    changes it, because the rollups contain local hours. ``currency`` is an ISO 4217 code, or
    `NO_CURRENCY` without sales.
    """

    __tablename__ = "locations"
    __table_args__ = (UniqueConstraint("organization_id", "id", name="locations_by_id"),)
    position: Mapped[RowPosition]
    id: Mapped[str]
    organization_id: Mapped[str]
    name: Mapped[str | None]
    zone: Mapped[str | None]
    currency: Mapped[str]
    created_at: Mapped[datetime]


class Employee(Base):
    """``status``: active or inactive."""

    __tablename__ = "employees"
    __table_args__ = (UniqueConstraint("organization_id", "id", name="employees_by_id"),)
    position: Mapped[RowPosition]
    id: Mapped[str]
    organization_id: Mapped[str]
    location: Mapped[int | None]
    name: Mapped[str]
    role: Mapped[str]
    status: Mapped[str]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class PointOfSale(Base):
    """A terminal. ``location`` is a location's position; ``status`` active or inactive."""

    __tablename__ = "points_of_sale"
    __table_args__ = (UniqueConstraint("organization_id", "id", name="points_of_sale_by_id"),)
    position: Mapped[RowPosition]
    id: Mapped[str]
    organization_id: Mapped[str]
    location: Mapped[int]
    name: Mapped[str]
    status: Mapped[str]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class PaymentMethod(Base):
    """``type``: cash, card, wallet or other. A sale with several types has the type mixed."""

    __tablename__ = "payment_methods"
    __table_args__ = (UniqueConstraint("organization_id", "id", name="payment_methods_by_id"),)
    position: Mapped[RowPosition]
    id: Mapped[UUID]
    organization_id: Mapped[str]
    type: Mapped[str]
    name: Mapped[str]


class UnitOfMeasure(Base):
    """Quantities are in 10^-``exponent`` of ``symbol``. ``exponent`` is at most 3."""

    __tablename__ = "units_of_measure"
    id: Mapped[UUID] = mapped_column(primary_key=True)
    organization_id: Mapped[str] = mapped_column(index=True)
    name: Mapped[str]
    symbol: Mapped[str]
    exponent: Mapped[int]


class FeeItem(Base):
    """A fee. ``kind``: vat or municipality.

    ``percentage_milli`` is in thousandths of a percent (5 % is 5000). It is None for a fee that is
    exempt or not a percentage.
    """

    __tablename__ = "fee_items"
    id: Mapped[UUID] = mapped_column(primary_key=True)
    organization_id: Mapped[str] = mapped_column(index=True)
    name: Mapped[str]
    kind: Mapped[str]
    percentage_milli: Mapped[int | None]
