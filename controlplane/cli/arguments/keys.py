"""``venue-control keys``, which works on the database."""

import argparse
from typing import TYPE_CHECKING, Final

from controlplane.cli.arguments.values import count
from controlplane.cli.arguments.verb import add_verb

if TYPE_CHECKING:
    from controlplane.cli.arguments.verb import Subparsers

DEFAULT_ORGANIZATION: Final = "org-0001"


def add_key_verbs(verbs: "Subparsers") -> None:
    parser = verbs.add_parser("keys", help="make, list and revoke API keys in the database")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    create = add_verb(
        actions, "create", "keys:create", "make an API key and print it, or keys for a rollout",
        'venue-control keys create --write --name "first key"',
        "venue-control keys create --write --location loc-0001 --count 3 --out keys/",
        "venue-control keys create --write --locations-file venues.txt --out keys/",
    )  # fmt: skip
    _add_create(create)
    revoke = add_verb(actions, "revoke", "keys:revoke", "end an API key")
    revoke.add_argument(
        "id",
        help="the key's id or its first characters, its name or its last four, see `keys list`",
    )
    every = add_verb(actions, "list", "keys:list_all", "list API keys")
    for action in (create, revoke, every):
        add_database(action)


def add_database(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--database",
        metavar="URL",
        help="database URL or SQLite file (default: $VENUE_CONTROL_DATABASE, "
        "or a file in the state directory)",
    )


def _add_create(create: argparse.ArgumentParser) -> None:
    add = create.add_argument
    add("--write", action="store_true", help="with a write grant, which an agent needs")
    add(
        "--location",
        action="append",
        default=[],
        metavar="ID",
        help="only this location; may be repeated (default: every location)",
    )
    add("--name", default="", help="what it is for; with --out the beginning of each key's name")
    add(
        "--organization",
        default=DEFAULT_ORGANIZATION,
        metavar="ID",
        help="whose key it is (default: %(default)s)",
    )
    rollout = create.add_argument_group("for a rollout: each key in a file, for one location")
    add = rollout.add_argument
    add("--out", metavar="DIR", help="a new directory for the files and their list, manifest.csv")
    add("--count", type=count, metavar="N", help="keys for each location (default: 1)")
    add("--locations-file", metavar="FILE", help="more locations: an id on each line")
