"""``venue-control support``: links of chats with organizations, and the channels of support.

The ``channel`` of a link is a text that names what is linked, such as a chat. A channel of support
is a way to contact support: a kind, such as phone, and an address.
"""

import argparse
import re
from functools import partial
from typing import Final

from controlplane.cli.chosen_database import in_database
from controlplane.cli.locations import require_name
from controlplane.cli.matching import only_match
from controlplane.cli.screen.cells import Styled, age
from controlplane.cli.screen.output import print_json_or_csv, print_records, print_secret
from controlplane.client.errors import CommandError, UsageError
from controlplane.clock import system_clock
from controlplane.support import channels
from controlplane.support.links import all_links, end_link, link_record, make_link
from controlplane.support.messages import Link, LinkState

_KIND: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")
_STYLES: Final[dict[LinkState, str]] = {"waiting": "cyan", "confirmed": "green"}


def create_link(options: argparse.Namespace) -> None:
    channel = require_name(options.channel, "a channel")
    requested_by = require_name(options.asked_by)
    new_link = in_database(
        options,
        lambda session: make_link(
            session, channel=channel, requested_by=requested_by, now=system_clock()
        ),
    )
    note = (
        f"The token can link {channel} once."
        f" It expires at {new_link.expires_at:%Y-%m-%d %H:%M} UTC."
        " Hand the token over now: it is shown only once."
    )
    print_secret(new_link.token, note)


def list_links(options: argparse.Namespace) -> None:
    links = _links(options)
    if not print_json_or_csv(options, links):
        print_records(
            links,
            {
                "id": lambda link: link.id,
                "channel": lambda link: link.channel,
                "requested by": lambda link: link.requested_by,
                "requested": lambda link: age(link.requested_at),
                "state": lambda link: Styled(link.state, _STYLES.get(link.state, "dim")),
                "organization": lambda link: link.organization_id or None,
            },
            "There are no links. `venue-control support link` creates a token for one.",
        )


def disconnect(options: argparse.Namespace) -> None:
    start = options.id.casefold()
    matches = {link.id: link.id for link in _links(options) if str(link.id).startswith(start)}
    hint = "`venue-control support list` lists the links."
    link_id = only_match(options.id, matches, "link", hint, UsageError)
    if not in_database(options, lambda session: end_link(session, link_id, system_clock())):
        raise CommandError(f"the link {link_id} has ended already")
    print(f"disconnected {link_id}")


def list_channels(options: argparse.Namespace) -> None:
    print_records(
        in_database(options, channels.channels),
        {
            "kind": lambda channel: channel.kind,
            "address": lambda channel: channel.address,
            "hours": lambda channel: channel.hours,
        },
        "There are no channels. Add one: venue-control support channels set KIND ADDRESS",
    )


def set_channel(options: argparse.Namespace) -> None:
    kind, address = _kind_and_address(options)
    hours = None if options.hours is None else require_name(options.hours, "the text of --hours")
    if not in_database(
        options, partial(channels.set_channel, kind=kind, address=address, hours=hours)
    ):
        raise CommandError(
            f"there are {channels.CHANNELS_MAX} channels, the maximum: remove one first"
        )
    print(f"{kind} {address}: {hours or 'no hours stated'}")


def remove_channel(options: argparse.Namespace) -> None:
    kind, address = _kind_and_address(options)
    if not in_database(options, partial(channels.remove_channel, kind=kind, address=address)):
        raise CommandError(f"there is no channel {kind} {address}")
    print(f"removed {kind} {address}")


def _links(options: argparse.Namespace) -> list[Link]:
    now = system_clock()
    return in_database(
        options, lambda session: [link_record(link, now) for link in all_links(session)]
    )


def _kind_and_address(options: argparse.Namespace) -> tuple[str, str]:
    if not _KIND.fullmatch(options.kind):
        raise UsageError(
            "a kind is one word of lowercase letters, digits and -, such as phone or email"
        )
    return options.kind, require_name(options.address, "an address")
