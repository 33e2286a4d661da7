"""``venue-control users``, which works on the database."""

from typing import TYPE_CHECKING, Final

from controlplane.cli.arguments.keys import DEFAULT_ORGANIZATION, add_database
from controlplane.cli.arguments.verb import add_verb

if TYPE_CHECKING:
    import argparse

    from controlplane.cli.arguments.verb import Subparsers

ROLES: Final = ("owner", "manager", "viewer")
"""As `controlplane.storage.account_tables.Role`, without the libraries of the service."""


def add_user_verbs(verbs: "Subparsers") -> None:
    parser = verbs.add_parser("users", help="say who may sign in, and what they may do")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    add = add_verb(
        actions, "add", "users:add", "make somebody a member of an organization",
        'venue-control users add ada@example.com --name "Ada" --role owner',
        "venue-control users add bob@example.com --role viewer --location loc-0001",
    )  # fmt: skip
    add.add_argument("--name", default="", help="how lists call them (default: the address)")
    add.add_argument("--role", required=True, choices=ROLES, help="a viewer only reads")
    _add_locations(add)
    _add_password(add)
    role = add_verb(actions, "role", "users:role", "change what a member may do")
    remove = add_verb(
        actions, "remove", "users:remove", "end a membership, and the keys that it carried"
    )
    password = add_verb(
        actions, "password", "users:password", "give somebody a new password, and sign them out"
    )
    _add_password(password)
    for action in (add, role, remove, password):
        action.add_argument("email", metavar="EMAIL", help="their e-mail address")
    role.add_argument("role", choices=ROLES, help="a viewer only reads")
    where = role.add_mutually_exclusive_group()
    _add_locations(where)
    where.add_argument("--every-location", action="store_true", help="of the organization")
    every = add_verb(actions, "list", "users:list_all", "list the members of an organization")
    for action in (add, role, remove, every):
        action.add_argument(
            "--organization",
            default=DEFAULT_ORGANIZATION,
            metavar="ID",
            help="whose member it is (default: %(default)s)",
        )
    for action in (add, role, remove, password, every):
        add_database(action)


def _add_locations(parser: "argparse._ActionsContainer") -> None:
    parser.add_argument(
        "--location",
        action="append",
        default=[],
        metavar="ID",
        help="only this location; may be repeated (default: as it is, at first every location)",
    )


def _add_password(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument(
        "--password-file",
        metavar="FILE",
        help="its first line is the password, - for standard input (default: it is asked for)",
    )
