"""Which locations a console may show figures of: beside the contract, with the same keys."""

from typing import Final

from sqlalchemy import func, select

from agent.wire.base import Array, Count, Exact, Tolerant
from controlplane.figures.local_time import clock_of
from controlplane.operation.context import RequestContext
from controlplane.storage.merchant.merchant_tables import NO_CURRENCY, Location

LISTED_MAX: Final = 500


class VenuesRequest(Exact):
    """The body of a call that has nothing to say."""


class ListedVenue(Tolerant):
    """``currency`` is what it usually takes; ``time_zone`` that of its days."""

    location_id: str
    name: str
    currency: str
    time_zone: str
    fell_back_to_utc: bool


class VenuesReply(Tolerant):
    """By name; ``omitted_count`` more are not listed."""

    venues: Array[ListedVenue]
    omitted_count: Count


def venue_list(context: RequestContext, _body: VenuesRequest) -> VenuesReply:
    """List the locations that the caller may see; none where there is no merchant."""
    seen = (Location.organization_id == context.caller.organization_id) & (
        Location.currency != NO_CURRENCY
    )
    if context.caller.locations:
        seen &= Location.id.in_(context.caller.locations)
    query = select(Location).where(seen).order_by(Location.name, Location.id).limit(LISTED_MAX)
    venues = tuple(_listed(row) for row in context.session.scalars(query))
    count = select(func.count()).select_from(Location).where(seen)
    return VenuesReply(
        venues=venues, omitted_count=context.session.execute(count).scalar_one() - len(venues)
    )


def _listed(row: Location) -> ListedVenue:
    clock = clock_of(row.zone)
    return ListedVenue(
        location_id=row.id,
        name=row.name or row.id,
        currency=row.currency,
        time_zone=clock.name,
        fell_back_to_utc=clock.fell_back,
    )
