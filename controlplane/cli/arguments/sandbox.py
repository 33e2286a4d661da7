"""``venue-control sandbox``: a merchant to try the service with."""

import argparse
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from controlplane.cli.arguments.keys import DEFAULT_ORGANIZATION, add_database
from controlplane.cli.arguments.verb import add_verb

if TYPE_CHECKING:
    from controlplane.cli.arguments.verb import Subparsers


def add_sandbox_verbs(verbs: "Subparsers") -> None:
    parser = verbs.add_parser("sandbox", help="make a merchant up, to try the service with")
    add = partial(add_verb, parser.add_subparsers(required=True, metavar="ACTION"))
    load = add(
        "load", "sandbox:load", "make a merchant up, with a year of sales, and print a key",
        "venue-control sandbox load",
        "venue-control sandbox load --seed 7 --locations 10 --days 92 --sales-per-day 200",
    )  # fmt: skip
    _plan_options(load)
    run = add("run", "sandbox:run", "let the merchant's trade go on as time passes, until Ctrl-C")
    run.add_argument(
        "--every",
        type=_seconds,
        default=5.0,
        metavar="SECONDS",
        help="how often what happened is written (default: %(default)s)",
    )
    run.add_argument("--once", action="store_true", help="write what happened until now, and end")
    export = add("export", "sandbox:export", "write the merchant as lines of JSON")
    export.add_argument("file", nargs="?", default="-", help="default: standard output")
    given = add("import", "sandbox:import_file", "make a merchant of what export wrote")
    given.add_argument("file", nargs="?", default="-", help="default: standard input")
    rebuild = add(
        "rebuild",
        "sandbox:rebuild_all",
        "make the sums over all sales anew, and tell what was wrong",
    )
    for parser in (load, run, export):
        parser.add_argument(
            "--organization",
            default=DEFAULT_ORGANIZATION,
            metavar="ID",
            help="whose data it is (default: %(default)s)",
        )
    for parser in (load, run, export, given, rebuild):
        add_database(parser)


def _plan_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--seed", type=int, default=1, metavar="N", help="the same seed makes the same merchant")
    for name, default, text in (
        ("locations", 3, "how many"),
        ("days", 365, "how many, today included"),
        ("sales-per-day", 60, "of a location"),
        ("goods", 60, "how many"),
    ):
        add(
            f"--{name}",
            type=_count,
            default=default,
            metavar="N",
            help=f"{text} (default: %(default)s)",
        )
    add("--until", type=_date, metavar="DATE", help="the last day (default: today, until now)")
    add("--replace", action="store_true", help="in the place of the sandbox that is there")


def _count(text: str) -> int:
    count = int(text)
    if not 1 <= count <= 1_000_000:
        raise argparse.ArgumentTypeError("must be 1 to 1000000")
    return count


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError("must be 0.1 to 3600 seconds")
    return seconds


def _date(text: str) -> date:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError("must be a date such as 2026-11-20") from None
    if not date(1990, 1, 1) <= found <= date(2999, 12, 31):
        raise argparse.ArgumentTypeError("must be from 1990-01-01 to 2999-12-31")
    return found
