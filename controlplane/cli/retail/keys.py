"""``venue-control retail``: keys of the retail API, made and revoked directly in the database."""

import argparse
import sys

from controlplane.cli.errors import CommandError
from controlplane.cli.keys import in_database, key_named, require_database
from controlplane.clock import system_clock
from controlplane.retail.credentials import clients, signing_keys
from controlplane.retail.credentials.clients import Environment


def create(options: argparse.Namespace) -> int:
    environment: Environment = "live" if options.live else "test"
    _, key = in_database(
        options.database,
        lambda session: clients.create_key(
            session,
            name=options.name,
            organization_id=options.organization,
            environment=environment,
            can_write=options.write,
            now=system_clock(),
        ),
    )
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
    if not in_database(
        options.database, lambda session: clients.revoke_key(session, key_id, system_clock())
    ):
        raise CommandError(f"there is no key {key_id}")
    sys.stdout.write(f"revoked {key_id}\n")
    return 0


def rotate_signing_key(options: argparse.Namespace) -> int:
    require_database(options)
    key_id = in_database(
        options.database, lambda session: signing_keys.rotate(session, system_clock())
    )
    sys.stdout.write(f"signs from now on: {key_id}\n")
    sys.stderr.write(
        "Access tokens of before are refused within seconds. API keys and refresh tokens stay:\n"
        "clients get new access tokens by them.\n"
    )
    return 0
