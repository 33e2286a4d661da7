"""`venue-agent history`: lists requests and reports, newest first, or shows one report."""

import argparse
import contextlib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Final

from agent.adapters.accounts.privileges import writer_of
from agent.adapters.storage.history import (
    LIMIT,
    HistoryRow,
    KeptReport,
    find_reports,
    find_requests,
    read_bodies,
    read_history,
)
from agent.adapters.storage.sent import KEPT_MAX, KEPT_MAX_AGE
from agent.adapters.storage.state import StateDirectory
from agent.cli.resolve_state import resolve_state
from agent.cli.terminal.options import add_config_and_json_options, parse_count
from agent.cli.terminal.screen import (
    SEVERITY_STYLES,
    Part,
    Screen,
    Style,
    print_json,
    time_to_the_minute,
)
from agent.errors import ConfigError, ConfigMissing, StateError
from agent.presentation.humanize import ago
from agent.wire.codec import parse_json
from agent.wire.validation import ValidationError

DEFAULT_ROWS: Final = 20
PAGE_MODE: Final = 0o644
SUBMITTED: Final = "submitted"
_STYLES: Final[dict[str, Style]] = {
    "completed": "good", "partial": "warn", "failed": "bad", "expired": "warn", "rejected": "bad",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", nargs="?", type=_id_prefix, metavar="ID",
        help="show a report again, by its id, the id of its request, or the start of either id",
    )  # fmt: skip
    add_config_and_json_options(parser)
    parser.add_argument(
        "--limit",
        type=_row_count,
        metavar="N",
        help=f"maximum number of rows (default {DEFAULT_ROWS}, with --json {LIMIT})",
    )
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="with ID: also write the report as a web page"
    )


def run(options: argparse.Namespace) -> int:
    if options.html is not None and options.id is None:
        raise ConfigError(("--html requires the ID of a report",))
    if options.id is None:
        return _list(options)
    if options.html is None:
        return _show_again(options)
    # The page is written with the rights of the user who runs this command.
    with writer_of(options.html, PAGE_MODE) as write:
        return _show_again(options, write)


def _list(options: argparse.Namespace) -> int:
    limit = options.limit or (LIMIT if options.json else DEFAULT_ROWS)
    resolved = resolve_state(options.config)
    resolved.require_visible()
    rows = read_history(resolved.state, limit + 1)  # one more, to see whether there are older rows
    if not rows and isinstance(resolved.guessed_because, ConfigMissing):
        raise resolved.guessed_because
    if options.json:
        print_json([asdict(row) for row in rows[:limit]])
    elif rows:
        _show(Screen(), resolved.state, rows, limit)
    else:
        sys.stdout.write("no requests yet\n")
    return 0


def _find(state: StateDirectory, start: str) -> KeptReport:
    """Return the report whose id, or whose request's id, begins with ``start``.

    Raises:
        StateError: No report or several reports match.
    """
    reports = find_reports(state, start)
    if len(reports) == 1:
        return reports[0]
    if reports:
        ids = ", ".join(report.report_id for report in reports)
        raise StateError(f"{start} matches several reports: use the id of one of them: {ids}")
    rows = find_requests(state, start)
    if not rows:
        raise StateError(
            f"no id of a request or report begins with {start}: see `venue-agent history`"
        )
    row = rows[0]
    if row.state != SUBMITTED:
        why = f": {row.detail}" if row.detail else ""
        raise StateError(f"request {row.request_id} has no report: it is {row.state}{why}")
    raise StateError(
        f"report {row.report_id} is no longer stored: the newest {KEPT_MAX} sent reports are kept"
        f" for {KEPT_MAX_AGE.days} days"
    )


def _show_again(
    options: argparse.Namespace, write: Callable[[bytes], None] = lambda _: None
) -> int:
    """Show a stored report in the same way as `collect`. Raises AgentError.

    With `--json`, print the payload exactly as it was sent.
    """
    from agent.cli.collect import show_report, write_page  # slow to import
    from agent.rules.reports.sealing import report_of

    resolved = resolve_state(options.config)
    resolved.require_visible()
    report = _find(resolved.state, options.id)
    try:
        payload, sealed = parse_json(report.body)["report"], report_of(report.body)
    except ValidationError as error:
        raise StateError(f"report {report.report_id} cannot be read: {error}") from None
    if options.json:
        print_json(payload, ensure_ascii=False)
    else:
        screen = Screen()
        if sealed.report is not None:
            show_report(sealed.report)
            screen.blank()
        else:
            screen.paragraph(
                f"{report.kind} report without content: {sealed.failure_reason}", "bad"
            )
        when = f"sent {ago(report.sent_at)}" if report.sent_at else "waits to be sent"
        screen.paragraph(f"report {report.report_id}, {when}", "quiet")
    if options.html is not None:
        if sealed.report is None:
            raise StateError(f"{options.html} is not written: the report has no content")
        write_page(options.html, sealed.report, write)
    return 0


def headlines_of(state: StateDirectory, rows: Sequence[HistoryRow]) -> dict[str, tuple[str, Style]]:
    """Return the headline and style of each report that is still stored, by the report's id.

    The service shows the same headlines. Raises StateError.
    """
    bodies = read_bodies(state, [row.report_id for row in rows if row.report_id])
    if not bodies:
        return {}
    from agent.presentation.headline import headline_of  # slow to import
    from agent.rules.reports.sealing import report_of

    headlines: dict[str, tuple[str, Style]] = {}
    for report_id, body in bodies.items():
        with contextlib.suppress(ValidationError):  # a body of another version, or damaged
            if (payload := report_of(body).report) is not None:
                headline = headline_of(payload)
                headlines[report_id] = headline.verdict, SEVERITY_STYLES[headline.severity]
    return headlines


def _show(screen: Screen, state: StateDirectory, rows: Sequence[HistoryRow], limit: int) -> None:
    """Print at most ``limit`` rows, and a hint if there are more."""
    headlines = headlines_of(state, rows[:limit])
    lines = [_lines_of(row, headlines.get(row.report_id or "")) for row in rows[:limit]]
    screen.table(("when (UTC)", "kind", "result", "report or reason"), chain(*lines))
    if len(rows) > limit:
        screen.line((f"there are older rows: see --limit (now {limit})", "quiet"))


def _lines_of(row: HistoryRow, headline: Part | None) -> Iterator[tuple[Part, ...]]:
    """Yield the row, with the id of its report in a line of its own if there is a headline."""
    at, result = time_to_the_minute(row.at), result_of(row)
    reason_or_id: Part = (row.detail or row.report_id or "", "quiet")
    yield at, row.kind, (result, _STYLES.get(result, "none")), headline or reason_or_id
    if headline is not None:
        yield "", "", "", (row.report_id or "", "quiet")


def result_of(row: HistoryRow) -> str:
    """Return the outcome if the service has accepted the report; else the state of the request."""
    return row.outcome if row.state == SUBMITTED and row.outcome else row.state


def _id_prefix(text: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F][0-9a-fA-F-]{3,35}", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither the id of a request or report, nor the start of one"
            " (at least four characters)"
        )
    return text.lower()


def _row_count(text: str) -> int:
    return parse_count(text, "rows")
