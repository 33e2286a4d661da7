"""``venue-control keys``: API keys, made and revoked directly in the database."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from agent.wire.limits import LOCATION_ID_MAX
from agent.wire.text import utf16_length
from controlplane.accounts import key_store
from controlplane.accounts.key_store import NewKey
from controlplane.accounts.users import addresses
from controlplane.audit.command_line import note_new_key
from controlplane.cli.chosen_database import chosen_database
from controlplane.cli.errors import database_error
from controlplane.cli.key_files import KeyFile, locations_in, plan, written
from controlplane.client.errors import CommandError, UsageError
from controlplane.clock import system_clock
from controlplane.operation.audit_entries import COMMAND_LINE, Event, key_subject, note
from controlplane.storage.database import (
    Database,
    DatabaseBusyError,
    DatabaseVersionError,
    sqlite_file,
)
from controlplane.storage.merchant.retail_tables import RetailKey
from controlplane.storage.tables import ApiKey

Result = TypeVar("Result")


def create(options: argparse.Namespace) -> int:
    locations = [*options.location, *locations_in(options.locations_file)]
    require_locations(locations)
    if options.out is not None:
        return _create_files(options, locations)
    if options.count is not None or options.locations_file is not None:
        raise UsageError("--count and --locations-file need --out, a directory for the keys")
    key = key_store.new_key(name=options.name, locations=locations)
    _add(options, [key])
    sys.stdout.write(f"{key.secret}\n")
    sys.stdout.flush()
    places = ", ".join(options.location) or "every location"
    sys.stderr.write(
        f"This key {_grant_of(options)}, at {places}. It is shown only now: keep it.\n"
    )
    return 0


def list_all(options: argparse.Namespace) -> int:
    require_database(options)

    def read(session: Session) -> tuple[Sequence[ApiKey], Mapping[UUID, str]]:
        keys = key_store.list_keys(session)
        return keys, addresses(session, {key.owner_id for key in keys if key.owner_id})

    keys, owners = in_database(options.database, read)
    from controlplane.cli.screen.listings import print_keys  # rich only where shown

    print_keys(keys, owners)
    return 0


def revoke(options: argparse.Namespace) -> int:
    require_database(options)
    keys = in_database(options.database, key_store.list_keys)
    key_id = key_named(options.id, keys)

    def work(session: Session) -> bool:
        now, row = system_clock(), session.get(ApiKey, key_id)
        if row is not None and row.revoked_at is None:
            event = Event("key.revoke", key_subject(row))
            note(session, COMMAND_LINE, event, organization_id=row.organization_id, now=now)
        return key_store.revoke_key(session, key_id, now)

    if not in_database(options.database, work):
        raise CommandError(f"there is no key {key_id}")
    sys.stdout.write(f"revoked {key_id}\n")
    return 0


def _create_files(options: argparse.Namespace, locations: Sequence[str]) -> int:
    """All keys are on the disk before the first is in the database, and all are or none is."""
    files = plan(locations, options.count or 1, options.name)
    directory = Path(options.out)
    with written(directory, files):
        _add(options, [each.key for each in files])
    _say_files(options, directory, files)
    return 0


def _say_files(options: argparse.Namespace, directory: Path, files: Sequence[KeyFile]) -> None:
    sys.stdout.write(f"wrote {len(files)} keys and manifest.csv to {directory}\n")
    sys.stderr.write(f"Each key {_grant_of(options)}. They are nowhere else: keep the files.\n")
    if not options.write:
        sys.stderr.write("An agent cannot enroll with them: it needs --write.\n")


def _grant_of(options: argparse.Namespace) -> str:
    return "may read and write" if options.write else "may only read"


def _add(options: argparse.Namespace, keys: Sequence[NewKey]) -> None:
    def work(session: Session) -> None:
        now, organization = system_clock(), options.organization
        key_store.add_keys(
            session, keys, can_write=options.write, organization_id=organization, now=now
        )
        for key in keys:
            note_new_key(session, key.id, now)

    in_database(options.database, work)


def key_named(
    text: str, keys: Sequence[ApiKey] | Sequence[RetailKey], listed_by: str = "keys list"
) -> UUID:
    """Return the key meant by its id or the start of it, its name or its last four characters.

    Raises UsageError unless it is exactly one.
    """
    word = text.removeprefix("…")
    found = [key for key in keys if word and str(key.id).startswith(word.casefold())]
    found = found or [key for key in keys if word and word in (key.hint, key.name)]
    if len(found) == 1:
        return found[0].id
    if not found:
        raise UsageError(f"there is no key {text!r}", f"`venue-control {listed_by}` lists them.")
    ids = ", ".join(str(key.id) for key in found)
    raise UsageError(f"{text!r} may be any of {len(found)} keys: {ids}")


def require_locations(ids: Sequence[str]) -> None:
    """Raise UsageError where one is no location's id."""
    for each in ids:
        if not 1 <= utf16_length(each) <= LOCATION_ID_MAX or not each.isprintable():
            raise UsageError(f"a location id has 1 to {LOCATION_ID_MAX} printable characters")


def require_database(options: argparse.Namespace) -> None:
    """Make none where one is only looked at: an empty one would pass for the service's.

    Raises CommandError.
    """
    try:
        file = sqlite_file(chosen_database(options.database).url)
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
        chosen = chosen_database(url)
        with chosen.as_its_owner(), closing(Database(chosen.url, connections=1)) as database:
            return database.write(work)
    except (
        SQLAlchemyError,
        DatabaseBusyError,
        DatabaseVersionError,
        OSError,
        ImportError,
    ) as error:
        raise database_error(error) from error
