"""The operations for figures: current, then deprecated, then the parts that their replies share.

A deprecated operation returns a part of the figures of its successor, which `analytics.registry`
names.
"""

from controlplane.analytics import messages
from controlplane.analytics.pulse_facts import pulse_facts
from controlplane.analytics.query import ResolvedQuery, query_location, resolve_query
from controlplane.figures.buckets import buckets, trading
from controlplane.figures.financial import by_currency
from controlplane.figures.items import items as ranked_items
from controlplane.figures.money import percent
from controlplane.figures.pulse import pulse
from controlplane.figures.records import CurrencyFigures, CurrencySummary
from controlplane.operation.context import RequestContext
from controlplane.operation.records import record_of


def dashboard(context: RequestContext, body: messages.FiguresQuery) -> messages.Dashboard:
    """Return figures of a period and of the period before, with items, trading days and hours."""
    query = resolve_query(context, body)
    current = _figures_period(query)
    return messages.Dashboard.model_construct(
        financial=messages.Financial(current=current, previous=_figures_period(query.previous)),
        financial_items=_items_part(query),
        financial_trading=_trading_part(query),
        buckets=_buckets_part(query),
        windows=current.windows,
        coverage=tuple(
            messages.CurrencyCoverage(currency=each.currency, coverage=each.figures.coverage)
            for each in current.currencies
        ),
    )


def financial_summary(
    context: RequestContext, body: messages.FiguresQuery
) -> messages.FinancialSummary:
    """Return figures, methods, locations and hours of a period and of the period before."""
    query = resolve_query(context, body)
    return messages.FinancialSummary(
        current=_summary_period(query), previous=_summary_period(query.previous)
    )


def venue_financial_pulse(
    context: RequestContext, body: messages.LocationQuery
) -> messages.FinancialPulse:
    """Return the net sales of today until now and of yesterday until the same time, and the number
    of orders of the 28 days before today, by weekday and hour."""
    facts = pulse_facts(context, query_location(context, body.location_id))
    return messages.FinancialPulse(venues=(pulse(facts),))


# ---------------------------------------------------------------------------- deprecated


def chart(context: RequestContext, body: messages.FiguresQuery) -> messages.Chart:
    """Return the figures of each local hour of a period."""
    query = resolve_query(context, body)
    return messages.Chart.model_construct(windows=query.windows, currencies=_buckets_part(query))


def sales(context: RequestContext, body: messages.NarrowedQuery) -> messages.Sales:
    """Return the figures of a period, and the net sales of the period before."""
    query = resolve_query(context, body)
    previous_nets = {
        each.currency: each.figures.net_cents for each in _figures_part(query.previous)
    }
    currencies = []
    for each in _figures_part(query):
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
    return messages.Items(windows=query.windows, currencies=_items_part(query))


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
            for each in _figures_part(query)
        ),
    )


def trend(context: RequestContext, body: messages.NarrowedQuery) -> messages.Trend:
    """Return the trading revenue of each day of a period."""
    query = resolve_query(context, body)
    return messages.Trend(windows=query.windows, currencies=_trading_part(query))


def venues(context: RequestContext, body: messages.NarrowedQuery) -> messages.Venues:
    """Return the figures of each location for a period."""
    query = resolve_query(context, body)
    return messages.Venues(
        windows=query.windows,
        currencies=tuple(
            messages.CurrencyVenues(currency=each.currency, locations=each.locations)
            for each in _figures_part(query)
        ),
    )


def venue_pulse(context: RequestContext, body: messages.LocationQuery) -> messages.Pulse:
    """Return the number of orders of the 28 days before today, by weekday and hour."""
    venue = pulse(pulse_facts(context, query_location(context, body.location_id)))
    return messages.Pulse(venues=(record_of(messages.VenueActivity, venue),))


# ---------------------------------------------------------------------------- parts of replies


def _figures_part(query: ResolvedQuery) -> list[CurrencyFigures]:
    return by_currency(query.locations, query.reader.ledger(query.day_ranges))


def _figures_period(query: ResolvedQuery) -> messages.FiguresPeriod:
    return messages.FiguresPeriod(windows=query.windows, currencies=tuple(_figures_part(query)))


def _summary_period(query: ResolvedQuery) -> messages.SummaryPeriod:
    buckets_by_currency = buckets(query.locations, query.hours())
    return messages.SummaryPeriod(
        windows=query.windows,
        currencies=tuple(
            CurrencySummary.model_construct(
                **{name: getattr(each, name) for name in CurrencyFigures.model_fields},
                buckets=tuple(buckets_by_currency.get(each.currency, ())),
            )
            for each in _figures_part(query)
        ),
    )


def _buckets_part(query: ResolvedQuery) -> tuple[messages.CurrencyBuckets, ...]:
    buckets_by_currency = buckets(query.locations, query.hours())
    # The models are not validated, because that is slow for tens of thousands of buckets.
    return tuple(
        messages.CurrencyBuckets.model_construct(
            currency=currency, buckets=tuple(buckets_by_currency.get(currency, ()))
        )
        for currency in sorted(
            {location.currency for location in query.locations} | set(buckets_by_currency)
        )
    )


def _items_part(query: ResolvedQuery) -> tuple[messages.CurrencyItems, ...]:
    sums_by_currency = query.reader.items(query.day_ranges)
    snapshots = {snapshot for sums in sums_by_currency.values() for snapshot in sums}
    articles = query.reader.articles(snapshots)
    top_items = {
        currency: ranked_items(sums.items(), articles)
        for currency, sums in sums_by_currency.items()
    }
    # The models are not validated, because that is slow for 500 items of a currency.
    return tuple(
        messages.CurrencyItems.model_construct(
            currency=currency,
            items=top.listed,
            omitted_count=top.omitted,
            omitted_net_cents=top.omitted_net,
        )
        for currency, top in sorted(top_items.items())
    )


def _trading_part(query: ResolvedQuery) -> tuple[messages.CurrencyTrading, ...]:
    days_by_currency = trading(query.reader.trading(query.day_ranges))
    return tuple(
        messages.CurrencyTrading(
            currency=currency,
            trading_revenue_cents=sum(day.trading_revenue_cents for day in days),
            days=tuple(days),
        )
        for currency, days in sorted(days_by_currency.items())
    )
