"""A query for figures: the locations and local days that a caller requests."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sqlalchemy import select

from controlplane.analytics.messages import FiguresQuery, NarrowedQuery
from controlplane.analytics.reading import Reader, Stretch, stretches
from controlplane.figures.financial import Place, window
from controlplane.figures.local_time import clock_of
from controlplane.figures.records import Window
from controlplane.figures.windows import Days, PeriodError, days_asked
from controlplane.figures.windows import Question as PeriodAsked
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import invalid_field, not_found
from controlplane.storage.merchant.merchant_tables import NO_CURRENCY, Location


@dataclass(frozen=True, slots=True)
class Question:
    """The locations of a query, each with its local days."""

    days: dict[Place, Days]
    reader: Reader

    @property
    def places(self) -> list[Place]:
        return list(self.days)

    @property
    def stretches(self) -> list[Stretch]:
        return stretches(self.days)

    @property
    def previous(self) -> "Question":
        return Question({place: days.previous for place, days in self.days.items()}, self.reader)

    @property
    def windows(self) -> tuple[Window, ...]:
        return tuple(window(place, days) for place, days in self.days.items())


def question(context: RequestContext, body: FiguresQuery) -> Question:
    """Return the query. Raises a refusal for a foreign location or invalid dates."""
    request = PeriodAsked(body.period, body.first, body.last)
    own = place(context, body.location_id)
    places = [own] if body.location_mode == "single" else visible_places(context)
    days = days_of(context, places, request)
    types: Collection[str] | None = None
    if isinstance(body, NarrowedQuery) and body.payment_types is not None:
        types = frozenset(body.payment_types)
    return Question(days, Reader(context.session, context.caller.organization_id, types))


def days_of(
    context: RequestContext, places: Iterable[Place], asked: PeriodAsked
) -> dict[Place, Days]:
    """Return the local days of each location. Raises a refusal."""
    try:
        return {each: days_asked(asked, each.clock, context.now) for each in places}
    except PeriodError as error:
        raise invalid_field(error.field, str(error)) from None


def place(context: RequestContext, location_id: str) -> Place:
    """Return a location of the caller's organization. Raises a refusal."""
    row = context.session.scalars(
        select(Location).where(
            Location.organization_id == context.caller.organization_id,
            Location.id == location_id,
            Location.currency != NO_CURRENCY,
        )
    ).first()
    # Checked first, so that the reply does not reveal whether a foreign location exists.
    context.visit(context.caller.organization_id, location_id, "location")
    if row is None:
        raise not_found("location")
    return _place(row)


def visible_places(context: RequestContext) -> list[Place]:
    """Return every location that the caller may see, by id."""
    query = (
        select(Location)
        .where(
            Location.organization_id == context.caller.organization_id,
            Location.currency != NO_CURRENCY,
        )
        .order_by(Location.id)
    )
    if context.caller.locations:
        query = query.where(Location.id.in_(context.caller.locations))
    return [_place(row) for row in context.session.scalars(query)]


def _place(row: Location) -> Place:
    return Place(row.position, row.id, row.currency, clock_of(row.zone))
