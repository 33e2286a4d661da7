"""The sandbox's locations, terminals, people and ways to pay."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from controlplane.figures.local_time import Clock, clock_of
from controlplane.merchant.sales import PaymentType
from controlplane.sandbox.plan import Plan
from controlplane.storage.merchant.merchant_tables import (
    Employee,
    Location,
    Organization,
    PaymentMethod,
    PointOfSale,
)

TERMINALS: Final = 2
EMPLOYEES: Final = 4
VENUES: Final = (
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
"""Name, zone, currency. Half and three-quarter hours, days of 23 and 25 hours, clocks set by half
an hour, both ends of the calendar; one venue without a zone and one with a zone that is none."""
METHODS: Final[tuple[tuple[PaymentType, str], ...]] = (
    ("cash", "Cash"),
    ("card", "Visa"),
    ("card", "Mastercard"),
    ("wallet", "Apple Pay"),
    ("wallet", "Careem Pay"),
    ("other", "Gift voucher"),
)
PEOPLE: Final = ("Amira", "Bilal", "Carla", "Dmitri", "Elif", "Farid", "Grace", "Hamad")


@dataclass(frozen=True, slots=True)
class Venue:
    """A location as what is played there needs it; all but ``number`` are positions or values."""

    number: int
    position: int
    clock: Clock
    currency: str
    terminals: tuple[int, ...]
    employees: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """A way to pay."""

    position: int
    type: PaymentType


def make_places(session: Session, plan: Plan) -> tuple[list[Venue], list[Way]]:
    session.add(
        Organization(
            id=plan.organization_id,
            name="Sandbox Hospitality",
            sandbox=plan.written(),
            created_at=plan.began,
        )
    )
    ways = [
        Way(_insert(session, PaymentMethod, {
            "id": plan.id_of("method", name), "organization_id": plan.organization_id,
            "type": kind, "name": name,
        }), kind)
        for kind, name in METHODS
    ]  # fmt: skip
    return [_venue(session, plan, number) for number in range(plan.locations)], ways


def find_places(session: Session, plan: Plan) -> tuple[list[Venue], list[Way]]:
    """Return what `make_places` made, as it stands in the database."""

    def of(table: type[Any], *order: Any) -> list[Any]:
        query = select(table).where(table.organization_id == plan.organization_id)
        return list(session.scalars(query.order_by(*order)))

    tills, people = of(PointOfSale, PointOfSale.id), of(Employee, Employee.id)
    by_name = {method.name: method for method in of(PaymentMethod, PaymentMethod.position)}
    venues = [
        Venue(
            number,
            location.position,
            clock_of(location.zone),
            location.currency,
            tuple(till.position for till in tills if till.location == location.position),
            tuple(each.position for each in people if each.location == location.position),
        )
        for number, location in enumerate(of(Location, Location.id))
    ]
    return venues, [Way(by_name[name].position, kind) for kind, name in METHODS]


def location_id(number: int) -> str:
    return f"loc-{number + 1:04}"


def _venue(session: Session, plan: Plan, number: int) -> Venue:
    name, zone, currency = VENUES[number % len(VENUES)]
    turn = number // len(VENUES)
    own = {"organization_id": plan.organization_id, "created_at": plan.began}
    position = _insert(session, Location, own | {
        "id": location_id(number), "name": f"{name} {turn + 1}" if turn else name, "zone": zone,
        "currency": currency,
    })  # fmt: skip
    own |= {"updated_at": plan.began, "status": "active", "location": position}
    terminals = [
        _insert(session, PointOfSale, own | {
            "id": f"pos-{number + 1:04}-{at + 1}", "name": f"Till {at + 1}"})
        for at in range(TERMINALS)
    ]  # fmt: skip
    employees = [
        _insert(session, Employee, own | {
            "id": f"emp-{number + 1:04}-{at + 1}", "name": person,
            "role": "manager" if at == 0 else "cashier"})
        for at, person in enumerate(_people(number))
    ]  # fmt: skip
    return Venue(number, position, clock_of(zone), currency, tuple(terminals), tuple(employees))


def _people(number: int) -> Iterator[str]:
    for at in range(EMPLOYEES):
        yield PEOPLE[(number * EMPLOYEES + at) % len(PEOPLE)]


def _insert(session: Session, table: type, values: dict[str, object]) -> int:
    statement = insert(table).values(values).returning(table.position)  # type: ignore[attr-defined]
    return int(session.execute(statement).scalar_one())
