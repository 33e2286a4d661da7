"""A query for figures: the locations and local days that a caller requests."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, bindparam, select

from controlplane.analytics.messages import FiguresQuery, NarrowedQuery
from controlplane.analytics.reading import DayRange, Reader, day_ranges
from controlplane.figures.buckets import HourRow
from controlplane.figures.financial import QueryLocation, window
from controlplane.figures.local_time import clock_of
from controlplane.figures.records import Window
from controlplane.figures.windows import DAYS_MAX, Days, PeriodError, PeriodQuery, period_days
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import invalid_field, not_found
from controlplane.storage.merchant.merchant_tables import NO_CURRENCY, Location

LOCATION_DAYS_MAX: Final = 50 * DAYS_MAX
"""Maximum number of days in a query that lists hours, summed over its locations.

A query for at most `HOURLY_DAYS_MAX` days does not have this limit.
"""
HOURLY_DAYS_MAX: Final = 92
"""A query for at most this many days can list the hours of any number of locations."""


@dataclass(frozen=True, slots=True)
class ResolvedQuery:
    """The locations of a query, each with its local days, and the reader of their data."""

    days: dict[QueryLocation, Days]
    reader: Reader

    @property
    def locations(self) -> list[QueryLocation]:
        return list(self.days)

    @property
    def day_ranges(self) -> list[DayRange]:
        return day_ranges(self.days)

    def hours(self) -> Iterator[HourRow]:
        """Yield the hours of the locations. Raises a refusal if there may be too many.

        A year of 50 locations has a quarter of a million hours with sales. Reading them takes two
        seconds.
        """
        count = len(self.days)
        days_max = max(HOURLY_DAYS_MAX, LOCATION_DAYS_MAX // max(1, count))
        if any(days.count > days_max for days in self.days.values()):
            raise invalid_field(
                "to",
                f"must be less than {days_max} days after `from`, because the hours of {count}"
                " locations are listed. Query fewer days or fewer locations",
            )
        return self.reader.hours(self.day_ranges)

    @property
    def previous(self) -> "ResolvedQuery":
        return ResolvedQuery(
            {location: days.previous for location, days in self.days.items()}, self.reader
        )

    @property
    def windows(self) -> tuple[Window, ...]:
        return tuple(window(location, days) for location, days in self.days.items())


def resolve_query(context: RequestContext, body: FiguresQuery) -> ResolvedQuery:
    """Return the locations and days of a query.

    Raises a refusal if `query_location` refuses the location, or if the dates are invalid.
    """
    period = PeriodQuery(body.period, body.first, body.last)
    location = query_location(context, body.location_id)
    locations = [location] if body.location_mode == "single" else visible_locations(context)
    days = days_of(context, locations, period)
    types: Collection[str] | None = None
    if isinstance(body, NarrowedQuery) and body.payment_types is not None:
        types = frozenset(body.payment_types)
    return ResolvedQuery(days, Reader(context.session, context.caller.organization_id, types))


def days_of(
    context: RequestContext, locations: Iterable[QueryLocation], query: PeriodQuery
) -> dict[QueryLocation, Days]:
    """Return the local days of each location. Raises a refusal if the dates are invalid."""
    try:
        return {location: period_days(query, location.clock, context.now) for location in locations}
    except PeriodError as error:
        raise invalid_field(error.field, str(error)) from None


def query_location(context: RequestContext, location_id: str) -> QueryLocation:
    """Return a location of the organization.

    Raises a refusal if the caller has no access to it, or if it does not exist or has no figures.
    """
    # Access is checked first, so that the reply does not reveal whether a foreign location exists.
    context.require_access(context.organization_id, location_id, "location")
    location_key = {"organization_id": context.organization_id, "location_id": location_id}
    row = context.session.execute(_LOCATION, location_key).first()
    if row is None:
        raise not_found("location")
    return _query_location(row)


def visible_locations(context: RequestContext) -> list[QueryLocation]:
    """Return every location with figures that the caller may see, ordered by id."""
    query = _LOCATIONS
    if context.caller.locations:
        query = query.where(_columns.id.in_(context.caller.locations))
    rows = context.session.execute(query, {"organization_id": context.organization_id})
    return [_query_location(row) for row in rows]


def is_visible(context: RequestContext) -> ColumnElement[bool]:
    """Return the SQL condition for the locations with figures that the caller may see."""
    condition = (Location.organization_id == context.organization_id) & (
        Location.currency != NO_CURRENCY
    )
    if context.caller.locations:
        condition &= Location.id.in_(context.caller.locations)
    return condition


# Each statement is built once, because building it takes longer than executing it. It selects
# columns of tables, not of classes, because the ORM would take longer than the database.
_columns: Final = Location.__table__.c
_WITH_FIGURES: Final = select(
    _columns.position, _columns.id, _columns.currency, _columns.zone
).where(_columns.organization_id == bindparam("organization_id"), _columns.currency != NO_CURRENCY)
_LOCATIONS: Final = _WITH_FIGURES.order_by(_columns.id)
_LOCATION: Final = _WITH_FIGURES.where(_columns.id == bindparam("location_id"))


def _query_location(row: Row[*tuple[Any, ...]]) -> QueryLocation:
    return QueryLocation(row.position, row.id, row.currency, clock_of(row.zone))
