"""The current operations: dashboard, financial summary and financial pulse."""

from controlplane.analytics import messages, parts
from controlplane.analytics.pulse_facts import pulse_facts
from controlplane.analytics.question import place, question
from controlplane.figures.pulse import pulse
from controlplane.operation.context import RequestContext


def dashboard(context: RequestContext, body: messages.FiguresQuery) -> messages.Dashboard:
    """Return figures of a period and of the period before, with items, trading days and hours."""
    asked = question(context, body)
    current = parts.period(asked)
    return messages.Dashboard.model_construct(
        financial=messages.Financial(current=current, previous=parts.period(asked.previous)),
        financial_items=parts.items_part(asked),
        financial_trading=parts.trading_part(asked),
        buckets=parts.buckets_part(asked),
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
    asked = question(context, body)
    return messages.FinancialSummary(
        current=parts.summary_period(asked), previous=parts.summary_period(asked.previous)
    )


def venue_financial_pulse(
    context: RequestContext, body: messages.LocationQuery
) -> messages.FinancialPulse:
    """Return the figures of today until now, and of yesterday until the same time."""
    facts = pulse_facts(context, place(context, body.location_id))
    return messages.FinancialPulse(venues=(pulse(facts),))
