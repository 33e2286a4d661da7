"""``venue-control audit``, which reads the database."""

from typing import TYPE_CHECKING, Final

from controlplane.cli.arguments.keys import DEFAULT_ORGANIZATION, add_database
from controlplane.cli.arguments.values import count, moment
from controlplane.cli.arguments.verb import add_verb

if TYPE_CHECKING:
    from controlplane.cli.arguments.verb import Subparsers

SHOWN: Final = 50


def add_audit_verb(verbs: "Subparsers") -> None:
    parser = add_verb(
        verbs, "audit", "audit:show", "list what was asked and changed, by whom",
        "venue-control audit --since 7d --by ada@example.com",
        "venue-control audit --since 2026-11-01 --csv > audit.csv",
    )  # fmt: skip
    add = parser.add_argument
    add("--since", type=moment, metavar="WHEN", help="as 7d, 2026-11-20 or 2026-11-20T09:30")
    add("--by", metavar="TEXT", help="part of a person's or key's name, or the end of an API key")
    add(
        "--limit",
        type=count,
        metavar="N",
        help=f"at most N, the newest (default: {SHOWN}; all with --since, --json or --csv)",
    )
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument(
        "--organization",
        default=DEFAULT_ORGANIZATION,
        metavar="ID",
        help="whose log (default: %(default)s)",
    )
    whose.add_argument(
        "--of-nobody",
        action="store_true",
        help="what is no organization's: tries to sign in as somebody whom nobody knows",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print them as JSON")
    form.add_argument("--csv", action="store_true", help="print them as CSV, with headings")
    add_database(parser)
