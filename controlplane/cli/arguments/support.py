"""``venue-control support``, which works on the database."""

from typing import TYPE_CHECKING

from controlplane.cli.arguments.keys import add_database
from controlplane.cli.arguments.verb import add_verb

if TYPE_CHECKING:
    import argparse

    from controlplane.cli.arguments.verb import Subparsers


def add_support_verbs(verbs: "Subparsers") -> None:
    parser = verbs.add_parser("support", help="link support's channels with organizations")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    link = add_verb(
        actions, "link", "support.links:create", "make a token that links a channel, and print it",
        'venue-control support link --channel "telegram @venue" --asked-by "Ada of support"',
    )  # fmt: skip
    link.add_argument(
        "--channel", required=True, metavar="WORDS", help="what it would link, for the merchant"
    )
    link.add_argument(
        "--asked-by", required=True, metavar="NAME", help="who of support asks, for the merchant"
    )
    every = add_verb(actions, "list", "support.links:list_all", "list links, the newest first")
    every.add_argument("--json", action="store_true", help="print the records as a JSON array")
    end = add_verb(
        actions, "disconnect", "support.links:end", "end a link, or a token that was not used"
    )
    end.add_argument("id", help="the link's id or its first characters, see `support list`")
    for action in (link, every, end, *_channel_verbs(actions)):
        add_database(action)


def _channel_verbs(verbs: "Subparsers") -> "list[argparse.ArgumentParser]":
    parser = verbs.add_parser("channels", help="say how support is reached")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    every = add_verb(actions, "list", "support.channels:list_all", "list how support is reached")
    put = add_verb(
        actions, "set", "support.channels:put", "add a channel, or say other hours of it",
        'venue-control support channels set phone "+971 4 123 4567" --hours "Mon-Fri 9-18"',
        "venue-control support channels set email support@example.com",
    )  # fmt: skip
    remove = add_verb(actions, "remove", "support.channels:remove", "take a channel off the list")
    for action in (put, remove):
        action.add_argument("kind", metavar="KIND", help="one word: phone, email, telegram, ...")
        action.add_argument("address", metavar="ADDRESS", help="where it is reached")
    put.add_argument("--hours", metavar="WORDS", help="when somebody answers (default: not said)")
    return [every, put, remove]
