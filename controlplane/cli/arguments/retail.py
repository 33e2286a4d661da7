"""The verbs of the retail API: ``retail`` works on the database, the others speak to a service."""

import argparse
from typing import TYPE_CHECKING, Final

from controlplane.cli.arguments.facade import DEFAULT_URL
from controlplane.cli.arguments.keys import DEFAULT_ORGANIZATION, add_database
from controlplane.cli.arguments.values import count, moment
from controlplane.cli.arguments.verb import add_verb

if TYPE_CHECKING:
    from controlplane.cli.arguments.verb import Subparsers

ORDERS: Final = tuple(
    f"{field}_{direction}"
    for field in ("initiated_at", "created_at", "updated_at", "number")
    for direction in ("asc", "desc")
)
LISTS: Final = {
    "goods": "what is sold, with prices",
    "categories": "the groups of goods",
    "uoms": "the units of measure",
    "fees": "the taxes and fees",
}
SALES_SHOWN: Final = 50


def add_retail_verbs(verbs: "Subparsers") -> None:
    _add_keys(verbs)
    _add_sales(verbs)
    _add_catalog(verbs)


def _add_keys(verbs: "Subparsers") -> None:
    parser = verbs.add_parser("retail", help="make, list and revoke keys of the retail API")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    keys = actions.add_parser("keys", help="make, list and revoke retail API keys in the database")
    of_keys = keys.add_subparsers(required=True, metavar="ACTION")
    create = add_verb(
        of_keys, "create", "retail.keys:create", "make a retail API key and print it",
        "venue-control retail keys create",
        'venue-control retail keys create --live --write --name "the web shop"',
    )  # fmt: skip
    add = create.add_argument
    add("--write", action="store_true", help="may create goods, and not only read")
    add("--live", action="store_true", help="begins with venue_live_ (default: venue_test_)")
    add("--name", default="", help="what it is for")
    add(
        "--organization",
        default=DEFAULT_ORGANIZATION,
        metavar="ID",
        help="whose key it is (default: %(default)s)",
    )
    every = add_verb(of_keys, "list", "retail.keys:list_all", "list retail API keys")
    revoke = add_verb(of_keys, "revoke", "retail.keys:revoke", "end a retail API key")
    revoke.add_argument(
        "id", help="its id or the first characters of it, its name or its last four"
    )
    rotate = add_verb(
        actions,
        "rotate-signing-key",
        "retail.keys:rotate_signing_key",
        "sign access tokens by a new key, and refuse all of before",
    )
    for each in (create, every, revoke, rotate):
        add_database(each)


def _add_sales(verbs: "Subparsers") -> None:
    sales = add_verb(
        verbs, "sales", "retail.sales:list_all", "list completed sales, the newest first",
        "venue-control sales --since 7d",
        "venue-control sales --since 2026-11-01 --until 2026-11-07 --csv > sales.csv",
    )  # fmt: skip
    add = sales.add_argument
    when = "7d, 12h, 2026-11-01 or 2026-11-01T09:30"
    add("--since", type=moment, metavar="WHEN", help=when)
    add("--until", type=moment, metavar="WHEN", help="likewise; of a date the whole day")
    add(
        "--sort",
        choices=ORDERS,
        default="initiated_at_desc",
        metavar="ORDER",
        help="initiated_at, created_at, updated_at or number, with _asc or _desc"
        " (default: %(default)s)",
    )
    add(
        "--limit",
        type=count,
        default=None,
        metavar="N",
        help=f"at most N (default: {SALES_SHOWN}; all with --since, --json or --csv)",
    )
    _add_forms(sales)
    _add_connection(sales)


def _add_catalog(verbs: "Subparsers") -> None:
    parser = verbs.add_parser("catalog", help="show what a merchant sells")
    actions = parser.add_subparsers(required=True, metavar="LIST")
    for name, text in LISTS.items():
        each = add_verb(actions, name, f"retail.catalog:{name}", f"list {text}")
        _add_forms(each)
        _add_connection(each)
    good = add_verb(actions, "good", "retail.catalog:good", "show a good with its variations")
    good.add_argument("id", help="its id, see `catalog goods --json`")
    good.add_argument("--json", action="store_true", help="print the record as JSON")
    _add_connection(good)


def _add_forms(parser: argparse.ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the records as a JSON array")
    form.add_argument("--csv", action="store_true", help="print them as CSV, with headings")


def _add_connection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the service")
    group.add_argument(
        "--base-url",
        metavar="URL",
        help=f"where it is (default: $VENUE_CONTROL_URL, or {DEFAULT_URL})",
    )
    group.add_argument(
        "--retail-key-file",
        metavar="FILE",
        help="file with the retail API key (default: $VENUE_CONTROL_RETAIL_KEY)",
    )
