"""A merchant: organization, locations, employees, points of sale, payment methods, fees and units.

An organization is called a company in the retail API. The tables of this folder refer to locations,
employees, points of sale and payment methods by ``position``, and to organizations, fees and units
by ``id``. The tables of devices, and the APIs, refer to all of them by ``id``.

There are no foreign keys: the code that writes a row checks its references.
"""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import JSON, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from controlplane.storage.merchant.columns import RowPosition
from controlplane.storage.tables import Base

NO_CURRENCY: Final = "XXX"
"""The ISO 4217 code for "no currency", for locations that have devices but no sales."""


class Organization(Base):
    """An organization.

    ``sandbox`` has the parameters from which its data was generated (`controlplane.sandbox.plan`).
    It is None for real data.
    """

    __tablename__ = "organizations"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    sandbox: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    created_at: Mapped[datetime]


class Location(Base):
    """A venue.

    ``name`` is None until an operator names it. ``zone`` is the IANA name of the time zone.
    If it is None or invalid, the figures use the days of UTC and report this. Only
    `controlplane.merchant.locations` changes ``zone``: it also computes the rollups again, because
    their hours and days are in the local time of the location.
    ``currency`` is an ISO 4217 code, or `NO_CURRENCY` for a location without sales.
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
    """An employee. ``status`` is active or inactive. ``role`` is a text such as cashier.

    ``location`` is the position of a location, or None for an employee of no particular location.
    """

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
    """A point of sale, such as a till. ``status`` is active or inactive.

    ``location`` is the position of a location.
    """

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
    """A payment method.

    ``type`` is a `controlplane.figures.records.PaymentType`, but not "mixed".
    """

    __tablename__ = "payment_methods"
    __table_args__ = (UniqueConstraint("organization_id", "id", name="payment_methods_by_id"),)
    position: Mapped[RowPosition]
    id: Mapped[UUID]
    organization_id: Mapped[str]
    type: Mapped[str]
    name: Mapped[str]


class UnitOfMeasure(Base):
    """A unit. Quantities are multiples of 10^-``exponent`` units. ``exponent`` is at most 3."""

    __tablename__ = "units_of_measure"
    id: Mapped[UUID] = mapped_column(primary_key=True)
    organization_id: Mapped[str] = mapped_column(index=True)
    name: Mapped[str]
    symbol: Mapped[str]
    exponent: Mapped[int]


class FeeItem(Base):
    """A fee. ``kind`` is vat or municipality.

    ``percentage_milli`` is in thousandths of a percent (5 % is 5000). It is None for a fee that is
    exempt or not a percentage.
    """

    __tablename__ = "fee_items"
    id: Mapped[UUID] = mapped_column(primary_key=True)
    organization_id: Mapped[str] = mapped_column(index=True)
    name: Mapped[str]
    kind: Mapped[str]
    percentage_milli: Mapped[int | None]
