"""Opens the database that a command works on, and describes errors of the database.

The option ``--database`` selects the database. Without this option, the environment variable
``VENUE_CONTROL_DATABASE`` selects it. If neither is set, root and the service's user use the
database of the service that is installed on this machine, if there is one. Otherwise the default is
a database file in the state directory of the user, or of the system for root.
"""

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from controlplane.client.errors import AccessDeniedError, CommandError, UsageError
from controlplane.clock import system_clock
from controlplane.operation.audit_entries import COMMAND_LINE, Event, Operation, Subject, note
from controlplane.service.account import run_as_service_user, service_user_id
from controlplane.service.paths import OPTIONS
from controlplane.storage.database import (
    Database,
    DatabaseBusyError,
    DatabaseVersionError,
    sqlite_file,
)
from controlplane.storage.default_database import ENVIRONMENT, default_database

Result = TypeVar("Result")
DATABASE_ERRORS = (SQLAlchemyError, DatabaseBusyError, DatabaseVersionError, OSError, ImportError)


@dataclass(frozen=True, slots=True)
class ChosenDatabase:
    """The database of a command.

    Args:
        is_opened_as_service: The process opens the database as the service's user. This is
            necessary if the process is root and the database is that of the installed service.
    """

    url: str
    is_opened_as_service: bool = False

    def as_its_owner(self) -> contextlib.AbstractContextManager[None]:
        return run_as_service_user() if self.is_opened_as_service else contextlib.nullcontext()


def chosen_database(option: str | None) -> ChosenDatabase:
    url = option or os.environ.get(ENVIRONMENT)
    if url:
        return ChosenDatabase(url)
    if sys.platform != "win32" and OPTIONS.exists():
        uid = service_user_id()
        if uid is not None and os.geteuid() in {0, uid}:
            url = service_options().database or default_database({}, is_root=True)
            return ChosenDatabase(url, is_opened_as_service=os.geteuid() == 0)
    return ChosenDatabase(default_database(os.environ))


@contextlib.contextmanager
def open_database(url: str | None) -> Iterator[Database]:
    """Open the chosen database, as the service's user if necessary. Raises CommandError."""
    try:
        choice = chosen_database(url)
        with choice.as_its_owner(), closing(Database(choice.url, connections=1)) as database:
            yield database
    except DATABASE_ERRORS as error:
        raise database_error(error) from error


def in_database(
    options: argparse.Namespace, work: Callable[[Session], Result], *, may_create: bool = False
) -> Result:
    """Run ``work`` in one transaction and return its result.

    Args:
        may_create: Create an SQLite database that does not exist. By default, a missing database is
            an error, because a user would mistake a new, empty one for the service's database.

    Raises:
        CommandError: The database does not exist or cannot be used.
    """
    if not may_create:
        require_database(options.database)
    with open_database(options.database) as database:
        return database.write(work)


def add_audit_entry(
    session: Session,
    operation: Operation,
    subject: Subject,
    detail: str = "",
    *,
    organization_id: str | None,
) -> None:
    """Write an audit log entry about a change that was made on the command line."""
    event = Event(operation, subject, detail)
    note(session, COMMAND_LINE, event, organization_id=organization_id, now=system_clock())


def database_error(error: Exception) -> CommandError:
    """Return the error of the command for a database error, with a message and a hint."""
    if isinstance(error, PermissionError):
        return AccessDeniedError(
            f"this user cannot open the database {error.filename}",
            "Run the command as the owner of the database or as root, or use --database.",
        )
    reason = str(getattr(error, "orig", None) or error).splitlines()[0]
    hint = "--database takes a URL or a file."
    if isinstance(error, DatabaseVersionError):
        hint = error.hint
    return UsageError(f"cannot use the database: {reason}", hint)


def require_database(option: str | None) -> None:
    """Raise UsageError if the chosen SQLite database does not exist."""
    try:
        file = sqlite_file(chosen_database(option).url)
        is_missing = file is not None and not file.exists()
    except (SQLAlchemyError, OSError) as error:
        raise database_error(error) from error
    if is_missing:
        raise UsageError(
            f"there is no database at {file}",
            "`venue-control setup` or `serve` creates one; --database selects another.",
        )


def service_options() -> argparse.Namespace:
    """Return the options with which the service that is installed on this machine runs `serve`."""
    from controlplane.cli.main import build_parser

    return build_parser().parse_args(["serve", f"@{OPTIONS}"])
