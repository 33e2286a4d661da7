"""The financial summary on a terminal: a table for each currency, and notes about the data."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from rich.text import Text

from agent.presentation.humanize import counted
from controlplane.analytics.messages import FinancialSummary
from controlplane.cli.screen.cells import NONE
from controlplane.cli.screen.tables import console, fits, is_piped, print_lines, print_rows, text_of
from controlplane.figures.local_time import clock_of
from controlplane.figures.money import format_amount, format_money
from controlplane.figures.records import (
    Coverage,
    CurrencySummary,
    Figures,
    LocationFigures,
    VenuePulse,
    Window,
)

UNKNOWN: Final = "unknown"
MONEY: Final[Sequence[tuple[str, Callable[[Figures], int | float | None]]]] = (
    ("gross", lambda figures: figures.gross_cents),
    ("discount", lambda figures: figures.discount_cents),
    ("sales", lambda figures: figures.sale_cents),
    ("refunds", lambda figures: figures.refund_cents),
    ("net", lambda figures: figures.net_cents),
    ("VAT", lambda figures: figures.vat_cents),
    ("known VAT", lambda figures: figures.known_vat_cents),
    ("net without VAT", lambda figures: figures.net_without_vat_cents),
    ("municipality fee", lambda figures: figures.municipality_fee_cents),
    ("refunded fees", lambda figures: figures.refunded_fee_cents),
    ("refunded tips", lambda figures: figures.refund_tip_cents),
    ("refunded in total", lambda figures: figures.refund_amount_cents),
    ("average sale", lambda figures: figures.average_sale_cents),
)
COUNTS: Final[Sequence[tuple[str, Callable[[Figures], int]]]] = (
    ("number of sales", lambda figures: figures.sale_count),
    ("number of refunds", lambda figures: figures.refund_count),
)


@dataclass(frozen=True, slots=True)
class Today:
    """The net of today and of yesterday until the same local time.

    ``nets`` has both amounts in cents, by currency. It is None if there are too many locations.
    ``until`` describes the time, such as "until 14:30".
    """

    nets: Mapping[str, tuple[int, int]] | None
    until: str


def print_summary(
    summary: FinancialSummary, pulses: Sequence[VenuePulse] | None = None, *, is_first: bool
) -> None:
    """Print the figures.

    Args:
        pulses: The pulse of each location. Empty if there are too many locations, and None if the
            period is not today.
    """
    if not is_first:
        console().print()
    print_heading(summary)
    previous = {currency.currency: currency for currency in summary.previous.currencies}
    current = {currency.currency: currency for currency in summary.current.currencies}
    today = None if pulses is None else _today(summary.current.windows, pulses)
    for currency in sorted({*current, *previous}):
        _print_currency(currency, current.get(currency), previous.get(currency), today)
    if not current and not previous:
        console().print(Text("Nothing was sold.", "dim"))
    location_ids = sorted(
        {window.location_id for window in summary.current.windows if window.fell_back_to_utc}
    )
    if location_ids:
        print_lines([f"No valid time zone, so days are in UTC: {', '.join(location_ids)}."])


def print_heading(summary: FinancialSummary) -> None:
    windows = summary.current.windows
    location_ids = [window.location_id for window in windows]
    locations = location_ids[0] if len(location_ids) == 1 else f"{len(location_ids)} locations"
    line = f"{locations}, {_days(windows)}; before: {_days(summary.previous.windows)}"
    console().print(text_of(line), soft_wrap=is_piped())


def _today(windows: Sequence[Window], pulses: Sequence[VenuePulse]) -> Today:
    if not pulses:
        return Today(None, "")
    nets: dict[str, tuple[int, int]] = {}
    for pulse in pulses:
        for sums in pulse.currencies:
            today, yesterday = nets.get(sums.currency, (0, 0))
            nets[sums.currency] = today + sums.today_cents, yesterday + sums.yesterday_cents
    now = datetime.now(UTC)
    times = {f"{now.astimezone(clock_of(window.time_zone).zone):%H:%M}" for window in windows}
    return Today(nets, f"until {times.pop()}" if len(times) == 1 else "until the same time")


def _print_currency(
    currency: str,
    now: CurrencySummary | None,
    before: CurrencySummary | None,
    today: Today | None,
) -> None:
    console().print()
    figures = None if now is None else now.figures
    figures_before = None if before is None else before.figures
    rows: list[tuple[str, ...]] = [
        _money_row(name, value, currency, figures, figures_before) for name, value in MONEY
    ]
    rows += [_count_row(name, value, figures, figures_before) for name, value in COUNTS]
    # If the VAT of both periods is known, the row "known VAT" would repeat the row "VAT".
    if figures is not None and figures_before is not None and figures.vat_cents is not None:
        rows = [row for row in rows if row[0] != "known VAT" or figures_before.vat_cents is None]
    if today is None:
        _print_comparison((currency, "now", "before", "change"), rows)
    else:
        rows = list(_rows_of_today(currency, rows, today))
        _print_comparison((currency, "today", "yesterday", "change"), rows)
        other_figures = "all other figures" if today.nets else "all figures"
        net = f"net {today.until}; " if today.nets else ""
        print_lines([f"Yesterday: {net}{other_figures} are for the whole day."])
    if now is not None and len(now.locations) > 1:
        _print_locations(currency, now.locations)
    if figures is not None:
        print_lines([*notes_of(figures.coverage, currency)])


def _print_comparison(headings: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    """Print a table. Omit the column of changes if the terminal is too narrow."""
    if not fits(headings, rows):
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    print_rows(headings, rows, "")


def _rows_of_today(
    currency: str, rows: Sequence[tuple[str, ...]], today: Today
) -> Iterator[tuple[str, ...]]:
    """Yield a row with the net of today and of yesterday until the same time, then ``rows``.

    The first row is omitted if these nets are unknown. In ``rows``, the figures of yesterday are
    for the whole day, but today has not ended. Therefore these rows show no change.
    """
    if today.nets is not None:
        net, net_before = today.nets.get(currency, (0, 0))
        amounts = format_amount(net, currency), format_amount(net_before, currency)
        yield f"net {today.until}", *amounts, _format_change(net, net_before)
    for name, now, before, _ in rows:
        yield name, now, before, ""


def _money_row(
    name: str,
    value: Callable[[Figures], int | float | None],
    currency: str,
    now: Figures | None,
    before: Figures | None,
) -> tuple[str, str, str, str]:
    values = [None if figures is None else value(figures) for figures in (now, before)]
    cells = [
        _format_missing(name, figures) if amount is None else format_amount(round(amount), currency)
        for figures, amount in zip((now, before), values, strict=True)
    ]
    return name, cells[0], cells[1], _format_change(*values)


def _count_row(
    name: str, value: Callable[[Figures], int], now: Figures | None, before: Figures | None
) -> tuple[str, str, str, str]:
    values = [0 if figures is None else value(figures) for figures in (now, before)]
    return name, str(values[0]), str(values[1]), _format_change(*values)


def _format_missing(name: str, figures: Figures | None) -> str:
    """Return the text of a missing amount: a dash if there were no sales, otherwise ``unknown``."""
    return NONE if figures is None or name == "average sale" else UNKNOWN


def _format_change(now: float | None, before: float | None) -> str:
    if now is None or not before:
        return ""
    percent = 100 * (now - before) / abs(before)
    return f"{percent:+.1f} %"


def _print_locations(currency: str, locations: Sequence[LocationFigures]) -> None:
    rows = [
        (
            location.location_id,
            format_amount(location.figures.net_cents, currency),
            "" if location.share_percent is None else f"{location.share_percent:.1f} %",
            str(location.figures.sale_count),
        )
        for location in locations
    ]
    console().print()
    print_rows(("location", "net", "share", "sales"), rows, "")


def _days(windows: Sequence[Window]) -> str:
    first = min((window.from_date for window in windows), default="")
    last = max((window.to_date for window in windows), default="")
    return first if first == last else f"{first} to {last}"


def notes_of(coverage: Coverage, currency: str) -> Iterator[str]:
    """Yield a sentence for each kind of incomplete data."""
    if count := coverage.missing_sale_snapshot_count:
        amount = format_money(coverage.missing_sale_snapshot_cents, currency)
        yield (
            f"{counted(count, 'sale')} of {amount} without lines: included, but not in sums by"
            " article."
        )
    if count := coverage.unresolved_imported_order_count:
        amount = format_money(coverage.unresolved_imported_order_cents, currency)
        yield f"{counted(count, 'unresolved order')} of {amount}: not included."
    if count := coverage.sale_unknown_tax_line_count:
        yield f"{counted(count, 'sale line')} with an unknown tax."
    if count := coverage.undated_refund_payment_count:
        amount = format_money(coverage.undated_refund_cents, currency)
        yield f"{counted(count, 'refund')} of {amount} without a date: not subtracted."
    if count := coverage.refund_unknown_components_count:
        yield f"{counted(count, 'refund')} of which only the amount is known: counted as goods."
    if count := coverage.refund_unknown_tax_count:
        yield f"{counted(count, 'refund')} with an unknown tax."
