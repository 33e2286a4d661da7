"""The current operations: dashboard, financial summary and financial pulse."""

from controlplane.analytics.messages import (
    CurrencyCoverage,
    Dashboard,
    FiguresQuery,
    Financial,
    FinancialPulse,
    FinancialSummary,
    LocationQuery,
)
from controlplane.analytics.parts import (
    buckets_part,
    items_part,
    period,
    summary_period,
    trading_part,
)
from controlplane.analytics.pulse_facts import pulse_facts
from controlplane.analytics.question import place, question
from controlplane.figures.pulse import pulse
from controlplane.operation.context import RequestContext


def dashboard(context: RequestContext, body: FiguresQuery) -> Dashboard:
    """Return how a period went: figures beside those of the days before, what was sold, when."""
    asked = question(context, body)
    current = period(asked)
    return Dashboard.model_construct(
        financial=Financial(current=current, previous=period(asked.previous)),
        financial_items=items_part(asked),
        financial_trading=trading_part(asked),
        buckets=buckets_part(asked),
        windows=current.windows,
        coverage=tuple(
            CurrencyCoverage(currency=each.currency, coverage=each.figures.coverage)
            for each in current.currencies
        ),
    )


def financial_summary(context: RequestContext, body: FiguresQuery) -> FinancialSummary:
    """Return the figures, methods, locations and hours of a period, and of the days before."""
    asked = question(context, body)
    return FinancialSummary(current=summary_period(asked), previous=summary_period(asked.previous))


def venue_financial_pulse(context: RequestContext, body: LocationQuery) -> FinancialPulse:
    """Return how today goes until now, beside yesterday until the same time."""
    facts = pulse_facts(context, place(context, body.location_id))
    return FinancialPulse(venues=(pulse(facts),))
