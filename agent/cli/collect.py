"""`venue-agent collect`: a report here and now. Progress goes to stderr, the result to stdout."""

import argparse
import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path

from agent.adapters.storage.state import StateDirectory
from agent.cli.options import add_config_option
from agent.cli.report import collect_report, show_report, write_page
from agent.config.file import load
from agent.config.model import LocalConfig
from agent.wire.codec import encode, encode_indented
from collectors.contract import Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=("network", "application"))
    add_config_option(parser)
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "--json", action="store_true", help="print the exact payload that would be submitted"
    )
    output.add_argument(
        "--ndjson", action="store_true", help="print progress and the payload as JSON lines"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page as well")


def run(options: argparse.Namespace) -> int:
    """Exit 0 with a report, 1 when nothing at all could be collected."""
    loaded = load(LocalConfig, options.config)
    show = _print_line if options.ndjson else None
    state = StateDirectory(loaded.state_dir)
    payload = asyncio.run(collect_report(loaded.config, state, options.kind, show=show))
    if options.json:
        sys.stdout.write(encode_indented(payload) + "\n")
    elif options.ndjson:
        sys.stdout.write(encode(payload).decode() + "\n")
    else:
        show_report(payload)
    if options.html is not None:
        write_page(options.html, payload)
    return 0


def _print_line(progress: Progress) -> None:
    sys.stdout.write(json.dumps(asdict(progress)) + "\n")
    sys.stdout.flush()
