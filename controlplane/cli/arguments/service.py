"""What there is to type for a service of one's own machine and for its database."""

import argparse
from typing import TYPE_CHECKING, Final

from controlplane.cli.arguments.keys import add_database
from controlplane.cli.arguments.verb import add_verb

if TYPE_CHECKING:
    from controlplane.cli.arguments.verb import Subparsers

COMMENT: Final = "#"


def add_service_verbs(verbs: "Subparsers") -> None:
    parser = verbs.add_parser("service", help="run the service at boot, by systemd (root)")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    install = add_verb(actions, "install", "service:install", "have it start at boot, and start it")
    install.add_argument("--dry-run", action="store_true", help="print the unit and the options")
    install.add_argument(
        "options",
        nargs=argparse.REMAINDER,
        metavar="-- OPTIONS",
        help="options of `serve` for a first options file, after --",
    )
    uninstall = add_verb(
        actions, "uninstall", "service:uninstall", "stop it and have it start no more"
    )
    uninstall.add_argument(
        "--purge", action="store_true", help="delete SQLite database, options and user too"
    )
    add_verb(actions, "start", "service:start", "start it and wait until it listens")
    add_verb(actions, "stop", "service:stop", "stop it and wait until it has ended")
    add_verb(actions, "status", "service:status", "exit 0 when it runs, else 1")


def add_database_verbs(verbs: "Subparsers") -> None:
    backup = add_verb(
        verbs, "backup", "database:backup", "copy an SQLite database while it is in use"
    )
    backup.add_argument("file", metavar="FILE", help="where to; it must not exist yet")
    restore = add_verb(
        verbs, "restore", "database:restore", "put a backup in the place of an SQLite database"
    )
    restore.add_argument("file", metavar="FILE", help="what `backup` wrote; the service must stand")
    for parser in (backup, restore):
        add_database(parser)
    database = verbs.add_parser("database", help="move to another database")
    actions = database.add_subparsers(required=True, metavar="ACTION")
    copy = add_verb(
        actions, "copy", "database:copy", "copy all rows into an empty database, of either kind"
    )
    copy.add_argument("source", metavar="FROM", help="database URL or SQLite file")
    copy.add_argument("target", metavar="TO", help="database URL or SQLite file, without devices")


def words_of_line(line: str) -> list[str]:
    """Return the words of a line of an options file: an option, and what follows as its value."""
    text = line.strip()
    return [] if text.startswith(COMMENT) else text.split(None, 1)
