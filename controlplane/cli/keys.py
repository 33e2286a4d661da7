"""``venue-control keys``: API keys, created and revoked directly in the database."""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar
from uuid import UUID

from sqlalchemy.orm import Session

from agent.wire.limits import LOCATION_ID_MAX
from agent.wire.text import utf16_length
from controlplane.accounts.keys import key_store
from controlplane.accounts.keys.key_store import NewKey
from controlplane.accounts.names import known_locations
from controlplane.accounts.users import email_addresses
from controlplane.audit.command_line import note_new_key
from controlplane.cli.chosen_database import add_audit_entry, in_database
from controlplane.cli.key_files import plan_key_files, read_locations, write_key_files
from controlplane.cli.matching import only_match
from controlplane.cli.screen.cells import Columns, age, grant, shorten_list
from controlplane.cli.screen.output import print_records, print_secret
from controlplane.client.errors import UsageError
from controlplane.clock import system_clock
from controlplane.operation.audit_entries import key_subject
from controlplane.storage.merchant.retail_tables import RetailKey
from controlplane.storage.tables import ApiKey

Key = TypeVar("Key", ApiKey, RetailKey)
LISTED_MAX: Final = 3
"""Maximum number of new locations that a message names."""
KNOWN_LISTED_MAX: Final = 10
"""Maximum number of existing locations that an error message names."""


def create(options: argparse.Namespace) -> None:
    locations = [*options.location, *read_locations(options.locations_file)]
    require_location_ids(locations)
    if options.out is not None:
        _create_files(options, locations)
        return
    if options.count is not None or options.locations_file is not None:
        raise UsageError("--count and --locations-file require --out, a directory for the keys")
    key = key_store.new_key(name=options.name, locations=locations)
    new_locations = _add_keys(options, [key])
    scope = ", ".join(options.location) or "all locations"
    access = f"{_grant_of(options)}, {scope}"
    print_secret(key.secret, f"Access: {access}. Save the key: it is shown only once.")
    report_new_locations(new_locations)


def list_all(options: argparse.Namespace) -> None:
    def read(session: Session) -> tuple[Sequence[ApiKey], Mapping[UUID, str]]:
        keys = key_store.list_keys(session)
        return keys, email_addresses(session, {key.owner_id for key in keys if key.owner_id})

    keys, owners = in_database(options, read)
    columns: Columns[ApiKey] = {
        "id": lambda key: key.id,
        "key": lambda key: f"…{key.hint}",
        "grant": grant,
        "locations": lambda key: ", ".join(key.locations) or "all",
        "name": lambda key: key.name or None,
        "used": lambda key: age(key.last_used_at),
    }
    if owners:
        columns = {
            **columns,
            "owner": lambda key: key.owner_id and owners.get(key.owner_id, "deleted"),
        }
    print_records(keys, columns, "There are no keys. Create one: venue-control keys create --write")


def revoke(options: argparse.Namespace) -> None:
    def work(session: Session) -> UUID:
        row = find_key(options.id, key_store.list_keys(session))
        if row.revoked_at is None:
            subject = key_subject(row)
            add_audit_entry(session, "key.revoke", subject, organization_id=row.organization_id)
        key_store.revoke_key(session, row.id, system_clock())
        return row.id

    print(f"revoked {in_database(options, work)}")


def _create_files(options: argparse.Namespace, locations: Sequence[str]) -> None:
    """Write all keys to the disk, then add them to the database in one transaction."""
    files = plan_key_files(locations, options.count or 1, options.name)
    directory = Path(options.out)
    with write_key_files(directory, files):
        new_locations = _add_keys(options, [file.key for file in files])
    print(f"wrote {len(files)} keys and manifest.csv to {directory}")
    sys.stderr.write(
        f"Access of each key: {_grant_of(options)}. Keep the files: they are the only copy.\n"
    )
    if not options.write:
        sys.stderr.write("An agent cannot enroll with these keys. For an agent, use --write.\n")
    report_new_locations(new_locations)


def _grant_of(options: argparse.Namespace) -> str:
    return "read and write" if options.write else "read only"


def _add_keys(options: argparse.Namespace, keys: Sequence[NewKey]) -> list[str]:
    """Add the keys to the database. Return their locations that are new."""

    def work(session: Session) -> list[str]:
        now, organization = system_clock(), options.organization
        location_ids = {location for key in keys for location in key.locations}
        new_locations = unknown_locations(session, options, location_ids)
        key_store.add_keys(
            session, keys, can_write=options.write, organization_id=organization, now=now
        )
        for key in keys:
            note_new_key(session, key.id, now)
        return new_locations

    return in_database(options, work, may_create=True)


def find_key(text: str, keys: Sequence[Key], list_command: str = "keys list") -> Key:
    """Return a key, given its id, the start of its id, its name or its last characters.

    Raises UsageError unless exactly one key matches.
    """
    word = text.removeprefix("…")
    matches = [key for key in keys if word and str(key.id).startswith(word.casefold())]
    matches = matches or [key for key in keys if word and word in (key.hint, key.name)]
    hint = f"`venue-control {list_command}` lists the keys."
    return only_match(text, {key.id: key for key in matches}, "key", hint, UsageError)


def unknown_locations(
    session: Session, options: argparse.Namespace, ids: Iterable[str]
) -> list[str]:
    """Return the ``ids`` that are not among the organization's `known_locations`.

    Raises UsageError if there are any and the option ``--new-locations`` is not given.
    """
    existing_ids = known_locations(session, options.organization)
    unknown = sorted(set(ids) - existing_ids.keys())
    if unknown and not options.new_locations:
        subject, verb = ("location", "does") if len(unknown) == 1 else ("locations", "do")
        names = [
            f"{location_id} ({name})" if name else location_id
            for location_id, name in existing_ids.items()
        ]
        raise UsageError(
            f"the {subject} {shorten_list(unknown, LISTED_MAX)} {verb} not exist",
            f"Locations: {shorten_list(names, KNOWN_LISTED_MAX) or 'none'}."
            " If a location is new, repeat the command with --new-locations.",
        )
    return unknown


def report_new_locations(ids: Sequence[str]) -> None:
    """List the new locations on standard error, so that a mistyped id is noticed."""
    if ids:
        noun = "location" if len(ids) == 1 else "locations"
        sys.stderr.write(
            f"New {noun}: {shorten_list(ids, LISTED_MAX)}."
            " `venue-control locations name ID NAME` sets a name.\n"
        )


def require_location_ids(ids: Sequence[str]) -> None:
    """Raise UsageError if a text cannot be the id of a location."""
    for location_id in ids:
        if not 1 <= utf16_length(location_id) <= LOCATION_ID_MAX or not location_id.isprintable():
            raise UsageError(f"a location id has 1 to {LOCATION_ID_MAX} printable characters")
