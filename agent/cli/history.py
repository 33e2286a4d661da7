"""`venue-agent history`: requests and their reports, newest first, from the journal."""

import argparse
import json
import sys
from dataclasses import asdict

from agent.adapters.history import LIMIT, HistoryRow, read_history
from agent.adapters.state import StateDirectory
from agent.cli.options import add_config_option, add_json_option
from agent.config import LocalConfig, state_dir
from agent.config_file import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_option(parser)
    add_json_option(parser)
    parser.add_argument("--limit", type=int, default=LIMIT, help=f"rows at most ({LIMIT})")


def run(options: argparse.Namespace) -> int:
    state = StateDirectory(state_dir(load(LocalConfig, options.config).config.device))
    rows = read_history(state, max(1, options.limit))
    if options.json:
        sys.stdout.write(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    elif rows:
        _show(rows)
    else:
        sys.stdout.write("no requests yet\n")
    return 0


def _show(rows: tuple[HistoryRow, ...]) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("when (UTC)", "kind", "state", "outcome", "report or reason"):
        table.add_column(heading, no_wrap=heading != "report or reason")
    for row in rows:
        end = row.detail or row.report_id or ""
        table.add_row(
            Text(row.at[:19].replace("T", " ")), Text(row.kind), Text(row.state),
            Text(row.outcome or ""), Text(end),
        )  # fmt: skip
    Console(highlight=False).print(table)
