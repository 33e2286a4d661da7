"""``venue-control figures``: sales figures beside the figures of the previous period."""

import argparse
from collections.abc import Sequence
from typing import Final

from agent.wire.codec import validate
from agent.wire.validation import ValidationError
from controlplane.analytics.messages import FiguresQuery, FinancialSummary, LocationQuery
from controlplane.cli.connection import client_of
from controlplane.cli.screen.output import print_json
from controlplane.client.errors import UsageError
from controlplane.client.operations import OperationsClient
from controlplane.client.refusals import NotFoundError
from controlplane.figures.records import VenuePulse
from controlplane.figures.windows import Period

COMPARED_MAX: Final = 40
"""The figures of several locations together are compared with yesterday only if there are at most
this many. The comparison requires a call to the service for each location.
"""


def show(options: argparse.Namespace) -> None:
    """Show the figures of each named location, or of all locations together."""
    period = _period(options)
    if options.all and len(options.location) > 1:
        raise UsageError("--all shows all locations: use it with at most one --location")
    with client_of(options) as client:
        if options.location and not options.all:
            bodies = [
                _body(options, period, location_id, is_all=False)
                for location_id in options.location
            ]
            summaries = [client.financial_summary(body) for body in bodies]
        else:
            summaries = [_summary_of_all(client, options, period)]
        is_compared = period == "today" and not options.json
        pulses_of_all = [_pulses(client, summary) if is_compared else None for summary in summaries]
    if options.json:
        print_json(summaries)
        return
    from controlplane.cli.figures.listings import print_summary  # rich is slow to import

    for number, (summary, pulses) in enumerate(zip(summaries, pulses_of_all, strict=True)):
        print_summary(summary, pulses, is_first=number == 0)


def _pulses(client: OperationsClient, summary: FinancialSummary) -> Sequence[VenuePulse]:
    """Return the pulse of each location: its net sales of today, and of yesterday until
    the same time.

    Empty if there are more than `COMPARED_MAX` locations.
    """
    windows = summary.current.windows
    if len(windows) > COMPARED_MAX:
        return ()
    queries = (LocationQuery(location_id=window.location_id) for window in windows)
    return [venue for query in queries for venue in client.venue_financial_pulse(query).venues]


def _period(options: argparse.Namespace) -> Period:
    """Return the selected period. Raises UsageError."""
    if options.first is None and options.last is None:
        period: Period = options.period or "today"
        return period
    if options.period is not None:
        raise UsageError("use either --period, or --from and --to")
    if options.first is None or options.last is None:
        raise UsageError("--from and --to require each other")
    if options.last < options.first:
        raise UsageError("--to must not be before --from")
    return "custom"


def _body(
    options: argparse.Namespace, period: Period, location_id: str, *, is_all: bool
) -> FiguresQuery:
    """Return the body of a query. Raises UsageError if it violates the contract."""
    days = {"from": options.first, "to": options.last}
    fields = {
        "locationId": location_id,
        "period": period,
        "locationMode": "all" if is_all else "single",
        **{name: day.isoformat() for name, day in days.items() if day is not None},
    }
    try:
        return validate(fields, FiguresQuery)
    except ValidationError as error:
        raise UsageError(f"the query is not valid: {error}") from error


def _summary_of_all(
    client: OperationsClient, options: argparse.Namespace, period: Period
) -> FinancialSummary:
    """Query the figures of all locations together. Raises CommandError.

    The query requires the id of a location with sales, and the contract has no list of locations.
    Without --location, this function therefore tries the locations of the enrolled devices.
    """
    for location_id in options.location or _locations_of_devices(client):
        try:
            return client.financial_summary(_body(options, period, location_id, is_all=True))
        except NotFoundError:
            if options.location:
                raise
    raise UsageError(
        "no device is enrolled at a location with sales",
        "Use --location ID, and --all to include all other locations.",
    )


def _locations_of_devices(client: OperationsClient) -> Sequence[str]:
    return sorted({device.location_id for device in client.devices()[0]})
