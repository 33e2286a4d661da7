"""``venue-control support channels``: the contact details of support that merchants see."""

import argparse
import re
from functools import partial
from typing import Final

from controlplane.cli.chosen_database import in_database
from controlplane.cli.screen.output import print_records
from controlplane.cli.support.links import require_label
from controlplane.client.errors import CommandError, UsageError
from controlplane.support.channels import CHANNELS_MAX, channels, remove_channel, set_channel

_KIND: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")


def list_all(options: argparse.Namespace) -> int:
    print_records(
        in_database(options, channels),
        {
            "kind": lambda each: each.kind,
            "address": lambda each: each.address,
            "hours": lambda each: each.hours,
        },
        "There are no channels. Add one: venue-control support channels set KIND ADDRESS",
    )
    return 0


def put(options: argparse.Namespace) -> int:
    kind, address = _named(options)
    hours = None if options.hours is None else require_label(options.hours, "the text of --hours")
    if not in_database(options, partial(set_channel, kind=kind, address=address, hours=hours)):
        raise CommandError(f"there are {CHANNELS_MAX} channels, the maximum: remove one first")
    print(f"{kind} {address}: {hours or 'no hours stated'}")
    return 0


def remove(options: argparse.Namespace) -> int:
    kind, address = _named(options)
    if not in_database(options, partial(remove_channel, kind=kind, address=address)):
        raise CommandError(f"there is no channel {kind} {address}")
    print(f"removed {kind} {address}")
    return 0


def _named(options: argparse.Namespace) -> tuple[str, str]:
    if not _KIND.fullmatch(options.kind):
        raise UsageError(
            "a kind is one word of lowercase letters, digits and -, such as phone or email"
        )
    return options.kind, require_label(options.address, "an address")
