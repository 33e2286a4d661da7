"""The sandbox's locations, tills, employees and payment methods."""

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.figures.local_time import Clock, clock_of
from controlplane.figures.records import PaymentType
from controlplane.sandbox.plan import Plan
from controlplane.storage.merchant.merchant_tables import (
    Employee,
    Location,
    Organization,
    PaymentMethod,
    PointOfSale,
)

TILLS_PER_VENUE: Final = 2
EMPLOYEES_PER_VENUE: Final = 4
VENUES: Final = tuple(
    (name, "Asia/Dubai", "AED")
    for name in (
        "Marina Café", "Old Town Bakery", "Creek Grill", "Palm Juice Bar", "Harbour Fish",
        "Airport Coffee", "Garden Deli", "Corniche Tea House", "Souk Sweets", "Desert Road Diner",
    )
)  # fmt: skip
"""Name, time zone and currency of each venue."""
AWKWARD_VENUES: Final = (
    ("Marina Café", "Asia/Dubai", "AED"),
    ("Bäckerei am Markt", "Europe/Berlin", "EUR"),
    ("Kiosk ohne Uhr", None, "AED"),
    ("Thamel Tea House", "Asia/Kathmandu", "AED"),
    ("Lagoon Bar", "Pacific/Pago_Pago", "AED"),
    ("First Light Diner", "Pacific/Kiritimati", "AED"),
    ("Harbour Fish", "America/St_Johns", "AED"),
    ("Reef Grill", "Australia/Lord_Howe", "AED"),
    ("Old Town Juice", "Mars/Olympus_Mons", "AED"),
    ("Palm Bakery", "Asia/Dubai", "AED"),
)
"""The venues of an awkward sandbox (`Plan.is_awkward`), in the same form as `VENUES`.

The zones include offsets of half and three-quarter hours, days of 23 and 25 hours, and clock
changes by half an hour. They also include the zone in which a day begins first, and the inhabited
zone in which it begins last. One venue has no zone, and one has an unknown zone.
"""
METHODS: Final[tuple[tuple[PaymentType, str], ...]] = (
    ("cash", "Cash"),
    ("card", "Visa"),
    ("card", "Mastercard"),
    ("wallet", "Apple Pay"),
    ("wallet", "Careem Pay"),
    ("other", "Gift voucher"),
)
NAMES: Final = ("Amira", "Bilal", "Carla", "Dmitri", "Elif", "Farid", "Grace", "Hamad")


@dataclass(frozen=True, slots=True)
class Venue:
    """A location for which sales are generated.

    ``number`` counts the venues from 0. The other integers are positions of rows.
    """

    number: int
    position: int
    clock: Clock
    currency: str
    tills: tuple[int, ...]
    employees: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Method:
    """A payment method."""

    position: int
    type: PaymentType


def create_locations(session: Session, plan: Plan) -> tuple[list[Venue], list[Method]]:
    """Write the organization, its venues and its payment methods.

    Returns the venues and the payment methods.
    """
    session.add(
        Organization(
            id=plan.organization_id,
            name="Sandbox Hospitality",
            sandbox=plan.to_json(),
            created_at=plan.created_at,
        )
    )
    owner = {"organization_id": plan.organization_id}
    session.add_all(
        PaymentMethod(id=plan.id_of("method", name), type=kind, name=name, **owner)
        for kind, name in METHODS
    )
    for number in range(plan.locations):
        _add_venue(session, plan, number)
    return load_locations(session, plan)


def load_locations(session: Session, plan: Plan) -> tuple[list[Venue], list[Method]]:
    """Return the venues and payment methods that `create_locations` wrote."""

    def rows_of(table: type[Any], order: Any) -> list[Any]:
        query = select(table).where(table.organization_id == plan.organization_id)
        return list(session.scalars(query.order_by(order)))

    tills = rows_of(PointOfSale, PointOfSale.id)
    employees = rows_of(Employee, Employee.id)
    by_name = {method.name: method for method in rows_of(PaymentMethod, PaymentMethod.position)}
    venues = [
        Venue(
            number,
            location.position,
            clock_of(location.zone),
            location.currency,
            tuple(till.position for till in tills if till.location == location.position),
            tuple(
                employee.position
                for employee in employees
                if employee.location == location.position
            ),
        )
        for number, location in enumerate(rows_of(Location, Location.id))
    ]
    return venues, [Method(by_name[name].position, kind) for kind, name in METHODS]


def _add_venue(session: Session, plan: Plan, number: int) -> None:
    venues = AWKWARD_VENUES if plan.is_awkward else VENUES
    name, zone, currency = venues[number % len(venues)]
    # Each name is used again with a number, if there are more locations than names.
    repetition = number // len(venues)
    common: dict[str, Any] = {
        "organization_id": plan.organization_id,
        "created_at": plan.created_at,
    }
    location = Location(
        id=f"loc-{number + 1:04}",
        name=f"{name} {repetition + 1}" if repetition else name,
        zone=zone,
        currency=currency,
        **common,
    )
    session.add(location)
    session.flush()
    common |= {"updated_at": plan.created_at, "status": "active", "location": location.position}
    for index in range(TILLS_PER_VENUE):
        session.add(
            PointOfSale(id=f"pos-{number + 1:04}-{index + 1}", name=f"Till {index + 1}", **common)
        )
    for index in range(EMPLOYEES_PER_VENUE):
        employee_name = NAMES[(number * EMPLOYEES_PER_VENUE + index) % len(NAMES)]
        role = "cashier" if index else "manager"
        session.add(
            Employee(id=f"emp-{number + 1:04}-{index + 1}", name=employee_name, role=role, **common)
        )
