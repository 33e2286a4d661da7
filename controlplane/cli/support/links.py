"""Support makes tokens, sees what became of them, and ends links."""

import argparse
import json
import sys
from collections.abc import Iterable
from uuid import UUID

from agent.wire.codec import to_plain
from controlplane.cli.keys import in_database, require_database
from controlplane.cli.support.words import words
from controlplane.client.errors import CommandError, UsageError
from controlplane.clock import system_clock
from controlplane.support.links import all_links, end_link, make_link, record_of
from controlplane.support.messages import Link


def create(options: argparse.Namespace) -> int:
    channel = words(options.channel, "a channel")
    requested_by = words(options.asked_by, "a name")
    require_database(options)
    made = in_database(
        options.database,
        lambda session: make_link(
            session, channel=channel, requested_by=requested_by, now=system_clock()
        ),
    )
    sys.stdout.write(f"{made.token}\n")
    sys.stdout.flush()
    until = made.expires_at.strftime("%Y-%m-%d %H:%M")
    sys.stderr.write(
        f"It links {channel}, once, until {until} UTC. It is shown only now: hand it over.\n"
    )
    return 0


def list_all(options: argparse.Namespace) -> int:
    found = _links(options)
    if options.json:
        sys.stdout.write(json.dumps([to_plain(each) for each in found], indent=2) + "\n")
        return 0
    from controlplane.cli.support.listings import print_links  # rich only where shown

    print_links(found)
    return 0


def end(options: argparse.Namespace) -> int:
    link_id = _link_named(options.id, (each.id for each in _links(options)))
    if not in_database(
        options.database, lambda session: end_link(session, link_id, system_clock())
    ):
        raise CommandError(f"{link_id} is over already")
    sys.stdout.write(f"disconnected {link_id}\n")
    return 0


def _links(options: argparse.Namespace) -> list[Link]:
    require_database(options)
    now = system_clock()
    return in_database(
        options.database, lambda session: [record_of(each, now) for each in all_links(session)]
    )


def _link_named(text: str, ids: Iterable[UUID]) -> UUID:
    found = [each for each in ids if text and str(each).startswith(text.casefold())]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"there is no link {text!r}", "`venue-control support list` lists them.")
    raise UsageError(f"{text!r} may be any of {len(found)} links: {', '.join(map(str, found))}")
