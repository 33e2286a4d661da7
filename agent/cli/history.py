"""`venue-agent history`: requests and their reports, newest first, from the journal."""

import argparse
import json
import sys
from dataclasses import asdict
from typing import Final

from agent.adapters.storage.history import LIMIT, HistoryRow, read_history
from agent.cli.options import add_config_option, add_json_option
from agent.cli.resolve_state import resolve_state
from agent.cli.screen import Screen, Style
from agent.errors import ConfigMissing

SHOWN: Final = 20
SUBMITTED: Final = "submitted"
_TONES: Final[dict[str, Style]] = {
    "completed": "good", "partial": "warn", "failed": "bad", "expired": "warn", "rejected": "bad",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_option(parser)
    add_json_option(parser)
    parser.add_argument(
        "--limit",
        type=_positive,
        metavar="N",
        help=f"rows at most (default {SHOWN}, with --json {LIMIT})",
    )


def run(options: argparse.Namespace) -> int:
    limit = options.limit or (LIMIT if options.json else SHOWN)
    here = resolve_state(options.config)
    here.require_visible()
    rows = read_history(here.state, limit + 1)
    if not rows and isinstance(here.guessed_because, ConfigMissing):
        raise here.guessed_because
    if options.json:
        sys.stdout.write(json.dumps([asdict(row) for row in rows[:limit]], indent=2) + "\n")
    elif rows:
        _show(Screen(), rows[:limit], has_more=len(rows) > limit)
    else:
        sys.stdout.write("no requests yet\n")
    return 0


def _show(screen: Screen, rows: tuple[HistoryRow, ...], *, has_more: bool) -> None:
    screen.table(
        ("when (UTC)", "kind", "result", "report, or why not"),
        [
            (
                (row.at[:16].replace("T", " "), "none"),
                (row.kind, "none"),
                (result_of(row), _TONES.get(result_of(row), "none")),
                (row.detail or row.report_id or "", "quiet"),
            )
            for row in rows
        ],
    )
    if has_more:
        screen.line((f"older ones are left out: see --limit (now {len(rows)})", "quiet"))


def result_of(row: HistoryRow) -> str:
    """Say in one word what came of a request: its outcome once the service has the report."""
    return row.outcome if row.state == SUBMITTED and row.outcome else row.state


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text[:9]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows")
    return int(text[:9])
