"""``venue-control retail``: keys of the retail API, made and revoked directly in the database."""

import argparse
import sys

from sqlalchemy.orm import Session

from controlplane.audit.command_line import note_new_retail_key, retail_key_subject
from controlplane.cli.keys import in_database, key_named, require_database
from controlplane.client.errors import CommandError
from controlplane.clock import system_clock
from controlplane.operation.audit_entries import COMMAND_LINE, Event, Subject, note
from controlplane.retail.credentials import clients, signing_keys
from controlplane.retail.credentials.clients import Environment
from controlplane.storage.merchant.retail_tables import RetailKey


def create(options: argparse.Namespace) -> int:
    environment: Environment = "live" if options.live else "test"

    def work(session: Session) -> str:
        now, organization = system_clock(), options.organization
        key_id, key = clients.create_key(
            session,
            name=options.name,
            organization_id=organization,
            environment=environment,
            can_write=options.write,
            now=now,
        )
        note_new_retail_key(session, key_id, environment, now)
        return key

    key = in_database(options.database, work)
    sys.stdout.write(f"{key}\n")
    sys.stdout.flush()
    grant = "may read, and create goods" if options.write else "may only read"
    sys.stderr.write(f"This {environment} key {grant}. It is shown only now: keep it.\n")
    return 0


def list_all(options: argparse.Namespace) -> int:
    require_database(options)
    keys = in_database(options.database, clients.list_keys)
    from controlplane.cli.retail.listings import print_retail_keys  # rich only where shown

    print_retail_keys(keys)
    return 0


def revoke(options: argparse.Namespace) -> int:
    """End a key; its access tokens are refused within seconds."""
    require_database(options)
    keys = in_database(options.database, clients.list_keys)
    key_id = key_named(options.id, keys, "retail keys list")

    def work(session: Session) -> bool:
        now, row = system_clock(), session.get(RetailKey, key_id)
        if row is not None and row.revoked_at is None:
            event = Event("retail_key.revoke", retail_key_subject(row))
            note(session, COMMAND_LINE, event, organization_id=row.organization_id, now=now)
        return clients.revoke_key(session, key_id, now)

    if not in_database(options.database, work):
        raise CommandError(f"there is no key {key_id}")
    sys.stdout.write(f"revoked {key_id}\n")
    return 0


def rotate_signing_key(options: argparse.Namespace) -> int:
    require_database(options)

    def work(session: Session) -> str:
        now = system_clock()
        key_id = signing_keys.rotate(session, now)
        event = Event("retail_key.rotate", Subject("signing_key", str(key_id)))
        note(session, COMMAND_LINE, event, organization_id=None, now=now)
        return str(key_id)

    key_id = in_database(options.database, work)
    sys.stdout.write(f"signs from now on: {key_id}\n")
    sys.stderr.write(
        "Access tokens of before are refused within seconds. API keys and refresh tokens stay:\n"
        "clients get new access tokens by them.\n"
    )
    return 0
