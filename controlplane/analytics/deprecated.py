"""The deprecated operations. `analytics.registry` names the successor of each.

Each operation returns a part of its successor's figures.
"""

from controlplane.analytics import messages
from controlplane.analytics.parts import buckets_part, figures_part, items_part, trading_part
from controlplane.analytics.pulse_facts import pulse_facts
from controlplane.analytics.query import query_location, resolve_query
from controlplane.figures.money import percent
from controlplane.figures.pulse import pulse
from controlplane.operation.context import RequestContext


def chart(context: RequestContext, body: messages.FiguresQuery) -> messages.Chart:
    """Return the figures of each local hour of a period."""
    query = resolve_query(context, body)
    return messages.Chart.model_construct(windows=query.windows, currencies=buckets_part(query))


def sales(context: RequestContext, body: messages.NarrowedQuery) -> messages.Sales:
    """Return the figures of a period, and the net of the period before."""
    query = resolve_query(context, body)
    previous_nets = {each.currency: each.figures.net_cents for each in figures_part(query.previous)}
    currencies = []
    for each in figures_part(query):
        previous_net = previous_nets.get(each.currency, 0)
        currencies.append(
            messages.CurrencySales(
                currency=each.currency,
                figures=each.figures,
                previous_net_cents=previous_net,
                delta_percent=percent(each.figures.net_cents - previous_net, previous_net),
            )
        )
    return messages.Sales(windows=query.windows, currencies=tuple(currencies))


def items(context: RequestContext, body: messages.NarrowedQuery) -> messages.Items:
    """Return the sold items of a period."""
    query = resolve_query(context, body)
    return messages.Items(windows=query.windows, currencies=items_part(query))


def reconciliation(
    context: RequestContext, body: messages.NarrowedQuery
) -> messages.Reconciliation:
    """Return the payments and refunds of a period, summed by method of payment."""
    query = resolve_query(context, body)
    return messages.Reconciliation(
        windows=query.windows,
        currencies=tuple(
            messages.CurrencyReconciliation(
                currency=each.currency, methods=each.methods, coverage=each.figures.coverage
            )
            for each in figures_part(query)
        ),
    )


def trend(context: RequestContext, body: messages.NarrowedQuery) -> messages.Trend:
    """Return the trading revenue of each day of a period."""
    query = resolve_query(context, body)
    return messages.Trend(windows=query.windows, currencies=trading_part(query))


def venues(context: RequestContext, body: messages.NarrowedQuery) -> messages.Venues:
    """Return the figures of each location for a period."""
    query = resolve_query(context, body)
    return messages.Venues(
        windows=query.windows,
        currencies=tuple(
            messages.CurrencyVenues(currency=each.currency, locations=each.locations)
            for each in figures_part(query)
        ),
    )


def venue_pulse(context: RequestContext, body: messages.LocationQuery) -> messages.Pulse:
    """Return the number of orders of the 28 days before today, by weekday and hour."""
    venue = pulse(pulse_facts(context, query_location(context, body.location_id)))
    return messages.Pulse(
        venues=(
            messages.VenueActivity(
                location_id=venue.location_id,
                activity_complete=venue.activity_complete,
                activity=venue.activity,
            ),
        )
    )
