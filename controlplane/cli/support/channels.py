"""How support is reached, as merchants are told."""

import argparse
import re
import sys
from typing import Final

from controlplane.cli.keys import in_database, require_database
from controlplane.cli.support.words import words
from controlplane.client.errors import CommandError, UsageError
from controlplane.support.channels import CHANNELS_MAX, channels, remove_channel, set_channel

_KIND: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")


def list_all(options: argparse.Namespace) -> int:
    require_database(options)
    found = in_database(options.database, channels)
    from controlplane.cli.support.listings import print_channels  # rich only where shown

    print_channels(found)
    return 0


def put(options: argparse.Namespace) -> int:
    kind, address = _named(options)
    hours = None if options.hours is None else words(options.hours, "what --hours says")
    require_database(options)
    if not in_database(
        options.database,
        lambda session: set_channel(session, kind=kind, address=address, hours=hours),
    ):
        raise CommandError(f"there are {CHANNELS_MAX} channels: remove one first")
    sys.stdout.write(f"{kind} {address}: {hours or 'hours are not said'}\n")
    return 0


def remove(options: argparse.Namespace) -> int:
    kind, address = _named(options)
    require_database(options)
    if not in_database(
        options.database, lambda session: remove_channel(session, kind=kind, address=address)
    ):
        raise CommandError(f"{kind} {address} is not on the list")
    sys.stdout.write(f"removed {kind} {address}\n")
    return 0


def _named(options: argparse.Namespace) -> tuple[str, str]:
    if not _KIND.fullmatch(options.kind):
        raise UsageError("a kind is one word of small letters, digits and -, as phone or email")
    return options.kind, words(options.address, "an address")
