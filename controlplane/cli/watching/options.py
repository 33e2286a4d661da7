"""What there is to type about places, notices and wishes. It imports nothing that a verb needs."""

import argparse
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from controlplane.cli.arguments.keys import add_database
from controlplane.cli.arguments.verb import add_verb
from controlplane.settings import Settings

if TYPE_CHECKING:
    from controlplane.cli.arguments.verb import Subparsers

UNITS = {"m": 60, "h": 3600, "d": 86400}
LAST_MAX = timedelta(days=92)
DEFAULT_ORGANIZATION = "org-0001"


def add_serve_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    defaults = Settings()
    add(
        "--offline-after",
        type=_heartbeats,
        metavar="N",
        help="missed heartbeats, of one a minute, after which a device is offline, but not before"
        " the online window ends (default: then)",
    )
    add("--notify-url", metavar="URL", help="webhook that is told what changed, and of its end")
    add(
        "--notify-secret-file",
        type=Path,
        metavar="FILE",
        help="holds whsec_ and Base64: what is sent there is signed with it",
    )
    for name, default, text in (
        (
            "--notify-after",
            defaults.alert_fire_after_s,
            "how long something lasts before it is told",
        ),
        (
            "--notify-end-after",
            defaults.alert_resolve_after_s,
            "how long it is gone before its end is",
        ),
    ):
        add(
            name,
            type=_seconds,
            default=default,
            metavar="SECONDS",
            help=f"{text} (default: %(default)s)",
        )


def add_locations(verbs: "Subparsers") -> None:
    parser = verbs.add_parser(
        "locations", help="name locations, say when they are open or worked on"
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    hours = add_verb(actions, "set", "watching.locations:set_hours", "say when a location is open")
    hours.add_argument("--zone", required=True, help="its time zone, as Europe/Riga")
    when = hours.add_mutually_exclusive_group(required=True)
    when.add_argument(
        "--open",
        action="append",
        metavar="HOURS",
        help='as "Mon-Fri 08:00-22:00" or "Sat 10:00-02:00"; may be repeated',
    )
    when.add_argument("--always-open", action="store_true", help="it has no hours")
    name = add_verb(
        actions, "name", "watching.locations:name", "name a location, or its organization",
        'venue-control locations name loc-0001 "Harbour"',
        'venue-control locations name --of-organization "Harbour Hospitality"',
    )  # fmt: skip
    name.add_argument("id", nargs="?", help="the locationId")
    name.add_argument("name", help="what lists and reports call it")
    name.add_argument("--of-organization", action="store_true", help="name the organization")
    quiet = add_verb(
        actions, "quiet", "watching.locations:quiet", "say that a location or device is worked on"
    )
    quiet.add_argument("--device", metavar="INSTANCE", help="this device only, by its id")
    end = quiet.add_mutually_exclusive_group(required=True)
    end.add_argument("--until", help="as 2026-12-01T06:00, on the location's clock")
    end.add_argument("--end", action="store_true", help="it is over")
    quiet.add_argument("--from", dest="since", help="when it begins (default: now)")
    quiet.add_argument("--reason", default="", help="what is done there")
    for action in (hours, quiet):
        action.add_argument("id", help="the locationId")
    for action in (
        hours,
        quiet,
        name,
        add_verb(actions, "list", "watching.locations:list_all", "list them"),
    ):
        action.add_argument(
            "--organization",
            default=DEFAULT_ORGANIZATION,
            metavar="ID",
            help="whose location it is (default: %(default)s)",
        )
        add_database(action)


def add_wish_options(parser: argparse.ArgumentParser) -> None:
    """``request`` also for devices that are not heard now."""
    parser.add_argument(
        "--when-back", action="store_true", help="ask each device when it is heard, once"
    )
    parser.add_argument(
        "--until",
        type=_lasting,
        default=timedelta(days=3),
        metavar="3d",
        help="with --when-back: for how long it waits, as 12h or 3d (default: 3d)",
    )


def _heartbeats(text: str) -> int:
    count = int(text)
    if not 1 <= count <= 1440:
        raise argparse.ArgumentTypeError("must be 1 to 1440")
    return count


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= 86400:
        raise argparse.ArgumentTypeError("must be 0 to 86400 seconds")
    return seconds


def _lasting(text: str) -> timedelta:
    number, unit = text[:-1], text[-1:]
    if unit not in UNITS or not (number.isascii() and number.isdecimal() and len(number) < 6):
        raise argparse.ArgumentTypeError("must be as 90m, 12h or 3d")
    found = timedelta(seconds=int(number) * UNITS[unit])
    if not timedelta() < found <= LAST_MAX:
        raise argparse.ArgumentTypeError(f"must be more than nothing, at most {LAST_MAX.days}d")
    return found
