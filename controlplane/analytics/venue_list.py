"""The console's list of locations with figures. The contract does not define it."""

from typing import Final

from sqlalchemy import func, select

from agent.wire.base import Array, Count, Tolerant
from agent.wire.device_operations import EmptyRequest
from controlplane.analytics.query import is_visible
from controlplane.figures.local_time import clock_of
from controlplane.operation.context import RequestContext
from controlplane.storage.merchant.merchant_tables import Location

LISTED_MAX: Final = 500


class ListedVenue(Tolerant):
    """A location. ``currency`` is its usual currency. ``time_zone`` defines its local days.

    ``fell_back_to_utc`` is whether it has no valid time zone, so that its days are in UTC.
    """

    location_id: str
    name: str
    currency: str
    time_zone: str
    fell_back_to_utc: bool


class VenuesReply(Tolerant):
    """Locations, ordered by name. ``omitted_count`` is the number of unlisted locations."""

    venues: Array[ListedVenue]
    omitted_count: Count


def venue_list(context: RequestContext, _body: EmptyRequest) -> VenuesReply:
    """Return the locations with figures that the caller may see."""
    visible = is_visible(context)
    query = select(Location).where(visible).order_by(Location.name, Location.id).limit(LISTED_MAX)
    venues = tuple(_listed_venue(row) for row in context.session.scalars(query))
    count = select(func.count()).select_from(Location).where(visible)
    return VenuesReply(
        venues=venues, omitted_count=context.session.execute(count).scalar_one() - len(venues)
    )


def _listed_venue(row: Location) -> ListedVenue:
    clock = clock_of(row.zone)
    return ListedVenue(
        location_id=row.id,
        name=row.name or row.id,
        currency=row.currency,
        time_zone=clock.name,
        fell_back_to_utc=clock.fell_back,
    )
