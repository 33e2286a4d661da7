"""``venue-control figures``, over the facade."""

from typing import TYPE_CHECKING, Final

from controlplane.cli.arguments.facade import add_connection
from controlplane.cli.arguments.values import full_date
from controlplane.cli.arguments.verb import add_verb

if TYPE_CHECKING:
    from controlplane.cli.arguments.verb import Subparsers

PERIODS: Final = ("today", "yesterday", "last7", "thisMonth")


def add_figures_verb(verbs: "Subparsers") -> None:
    figures = add_verb(
        verbs, "figures", "figures.verbs:show", "show what was sold, and what in the days before",
        "venue-control figures --location loc-0001",
        "venue-control figures --location loc-0001 --all --period last7",
        "venue-control figures --location loc-0001 --from 2026-11-01 --to 2026-11-15 --json",
    )  # fmt: skip
    add = figures.add_argument
    add("--period", choices=PERIODS, help="of the location's days (default: today)")
    add("--from", dest="first", type=full_date, metavar="DATE", help="the first day")
    add("--to", dest="last", type=full_date, metavar="DATE", help="the last day, included")
    add(
        "--location",
        action="append",
        default=[],
        metavar="ID",
        help="may be repeated (default: all, where devices are enrolled)",
    )
    add("--all", action="store_true", help="every location of the key, added up by currency")
    add("--json", action="store_true", help="print the financial summary as JSON")
    add_connection(figures)
