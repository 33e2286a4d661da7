"""``venue-control keys``: API keys, made and revoked directly in the database."""

import argparse
import os
import sys
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from agent.wire.limits import LOCATION_ID_MAX
from agent.wire.text import utf16_length
from controlplane.accounts import key_store
from controlplane.cli.errors import CommandError, UsageError
from controlplane.cli.serve import database_error
from controlplane.clock import system_clock
from controlplane.storage.database import (
    Database,
    DatabaseBusyError,
    DatabaseVersionError,
    sqlite_file,
)
from controlplane.storage.location import default_database

Result = TypeVar("Result")


def create(options: argparse.Namespace) -> int:
    for location in options.location:
        if not 1 <= utf16_length(location) <= LOCATION_ID_MAX:
            raise UsageError(f"a location id has 1 to {LOCATION_ID_MAX} characters")
    _, key = in_database(
        options.database,
        lambda session: key_store.create_key(
            session,
            name=options.name,
            can_write=options.write,
            locations=options.location,
            organization_id=options.organization,
            now=system_clock(),
        ),
    )
    sys.stdout.write(f"{key}\n")
    sys.stdout.flush()
    grant = "may read and write" if options.write else "may only read"
    places = ", ".join(options.location) or "every location"
    sys.stderr.write(f"This key {grant}, at {places}. It is shown only now: keep it.\n")
    return 0


def list_all(options: argparse.Namespace) -> int:
    require_database(options)
    keys = in_database(options.database, key_store.list_keys)
    from controlplane.cli.tables import print_keys  # rich only where shown

    print_keys(keys)
    return 0


def revoke(options: argparse.Namespace) -> int:
    try:
        key_id = UUID(options.id)
    except ValueError as error:
        raise UsageError(
            f"{options.id!r} is not a key's id: see `venue-control keys list`"
        ) from error
    require_database(options)
    if not in_database(
        options.database, lambda session: key_store.revoke_key(session, key_id, system_clock())
    ):
        raise CommandError(f"there is no key {key_id}")
    sys.stdout.write(f"revoked {key_id}\n")
    return 0


def require_database(options: argparse.Namespace) -> None:
    """Make none where one is only looked at: an empty one would pass for the service's.

    Raises CommandError.
    """
    try:
        file = sqlite_file(options.database or default_database(os.environ))
        is_missing = file is not None and not file.exists()
    except (SQLAlchemyError, OSError) as error:
        raise database_error(error) from error
    if is_missing:
        raise UsageError(
            f"there is no database at {file}",
            "`venue-control serve` or `keys create` makes one; --database names another.",
        )


def in_database(url: str | None, work: Callable[[Session], Result]) -> Result:
    """Return what ``work`` does in one transaction. Raises CommandError."""
    try:
        database = Database(url or default_database(os.environ), connections=1)
        try:
            return database.write(work)
        finally:
            database.close()
    except (
        SQLAlchemyError,
        DatabaseBusyError,
        DatabaseVersionError,
        OSError,
        ImportError,
    ) as error:
        raise database_error(error) from error
