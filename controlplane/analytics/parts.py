"""Builds parts of replies for `analytics.operations` and `analytics.deprecated`."""

from controlplane.analytics import messages
from controlplane.analytics.query import ResolvedQuery
from controlplane.figures.buckets import buckets, trading
from controlplane.figures.financial import by_currency
from controlplane.figures.items import items
from controlplane.figures.records import CurrencyFigures, CurrencySummary


def figures_part(query: ResolvedQuery) -> list[CurrencyFigures]:
    return by_currency(query.locations, query.reader.ledger(query.day_ranges))


def figures_period(query: ResolvedQuery) -> messages.FiguresPeriod:
    return messages.FiguresPeriod(windows=query.windows, currencies=tuple(figures_part(query)))


def summary_period(query: ResolvedQuery) -> messages.SummaryPeriod:
    buckets_by_currency = buckets(query.locations, query.hours())
    return messages.SummaryPeriod(
        windows=query.windows,
        currencies=tuple(
            CurrencySummary.model_construct(
                **{name: getattr(each, name) for name in CurrencyFigures.model_fields},
                buckets=tuple(buckets_by_currency.get(each.currency, ())),
            )
            for each in figures_part(query)
        ),
    )


def buckets_part(query: ResolvedQuery) -> tuple[messages.CurrencyBuckets, ...]:
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


def items_part(query: ResolvedQuery) -> tuple[messages.CurrencyItems, ...]:
    sums_by_currency = query.reader.items(query.day_ranges)
    snapshots = {snapshot for sums in sums_by_currency.values() for snapshot in sums}
    articles = query.reader.articles(snapshots)
    top_items = {
        currency: items(sums.items(), articles) for currency, sums in sums_by_currency.items()
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


def trading_part(query: ResolvedQuery) -> tuple[messages.CurrencyTrading, ...]:
    days_by_currency = trading(query.reader.trading(query.day_ranges))
    return tuple(
        messages.CurrencyTrading(
            currency=currency,
            trading_revenue_cents=sum(day.trading_revenue_cents for day in days),
            days=tuple(days),
        )
        for currency, days in sorted(days_by_currency.items())
    )
