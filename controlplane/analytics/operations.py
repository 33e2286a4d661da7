"""The operations that are not deprecated: dashboard, financial summary and financial pulse."""

from controlplane.analytics import messages, parts
from controlplane.analytics.pulse_facts import pulse_facts
from controlplane.analytics.query import query_location, resolve_query
from controlplane.figures.pulse import pulse
from controlplane.operation.context import RequestContext


def dashboard(context: RequestContext, body: messages.FiguresQuery) -> messages.Dashboard:
    """Return figures of a period and of the period before, with items, trading days and hours."""
    query = resolve_query(context, body)
    current = parts.figures_period(query)
    return messages.Dashboard.model_construct(
        financial=messages.Financial(
            current=current, previous=parts.figures_period(query.previous)
        ),
        financial_items=parts.items_part(query),
        financial_trading=parts.trading_part(query),
        buckets=parts.buckets_part(query),
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
        current=parts.summary_period(query), previous=parts.summary_period(query.previous)
    )


def venue_financial_pulse(
    context: RequestContext, body: messages.LocationQuery
) -> messages.FinancialPulse:
    """Return the net of today until now and of yesterday until the same time, and the activity."""
    facts = pulse_facts(context, query_location(context, body.location_id))
    return messages.FinancialPulse(venues=(pulse(facts),))
