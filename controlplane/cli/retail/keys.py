"""``venue-control retail``: keys of the retail API, created and revoked in the database."""

import argparse
import sys
from uuid import UUID

from sqlalchemy.orm import Session

from controlplane.audit.command_line import note_new_retail_key, retail_key_subject
from controlplane.cli.chosen_database import add_audit_entry, in_database
from controlplane.cli.keys import find_key
from controlplane.cli.screen.cells import grant
from controlplane.cli.screen.output import print_records, print_secret
from controlplane.clock import system_clock
from controlplane.operation.audit_entries import Subject
from controlplane.retail.credentials import clients, signing_keys
from controlplane.retail.credentials.clients import Environment


def create(options: argparse.Namespace) -> None:
    environment: Environment = "live" if options.live else "test"

    def work(session: Session) -> str:
        now = system_clock()
        key_id, key = clients.create_key(
            session,
            name=options.name,
            organization_id=options.organization,
            environment=environment,
            can_write=options.write,
            now=now,
        )
        note_new_retail_key(session, key_id, environment, now)
        return key

    key = in_database(options, work, may_create=True)
    access = "read, and create goods" if options.write else "read only"
    note = f"Access of this {environment} key: {access}. Save the key: it is shown only once."
    print_secret(key, note)


def list_all(options: argparse.Namespace) -> None:
    print_records(
        in_database(options, clients.list_keys),
        {
            "id": lambda key: key.id,
            "key": lambda key: f"…{key.hint}",
            "grant": grant,
            "organization": lambda key: key.organization_id,
            "name": lambda key: key.name or None,
            "created": lambda key: f"{key.created_at:%Y-%m-%d}",
        },
        "There are no retail keys. Create one: venue-control retail keys create",
    )


def revoke(options: argparse.Namespace) -> None:
    """Revoke a key. Its access tokens are refused within seconds."""

    def work(session: Session) -> UUID:
        row = find_key(options.id, clients.list_keys(session), "retail keys list")
        if row.revoked_at is None:
            subject, owner = retail_key_subject(row), row.organization_id
            add_audit_entry(session, "retail_key.revoke", subject, organization_id=owner)
        clients.revoke_key(session, row.id, system_clock())
        return row.id

    print(f"revoked {in_database(options, work)}")


def rotate_signing_key(options: argparse.Namespace) -> None:
    def work(session: Session) -> UUID:
        key_id = signing_keys.rotate(session, system_clock())
        subject = Subject("signing_key", str(key_id))
        add_audit_entry(session, "retail_key.rotate", subject, organization_id=None)
        return key_id

    print(f"new signing key: {in_database(options, work)}")
    sys.stderr.write(
        "Existing access tokens are refused within seconds. API keys and refresh tokens stay\n"
        "valid: clients get new access tokens with them.\n"
    )
