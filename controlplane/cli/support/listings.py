"""Links and channels as lists on a terminal."""

from collections.abc import Sequence
from datetime import UTC, datetime

from controlplane.cli.tables import age, ids_of, print_rows, text_of
from controlplane.storage.support_tables import SupportChannel
from controlplane.support.messages import Link, LinkState

_STYLES: dict[LinkState, str] = {"waiting": "cyan", "confirmed": "green"}


def print_links(links: Sequence[Link]) -> None:
    now = datetime.now(UTC)
    ids = ids_of(each.id for each in links)
    rows = [
        (
            ids[each.id],
            text_of(each.channel),
            text_of(each.requested_by),
            age(each.requested_at, now),
            text_of(each.state, _STYLES.get(each.state, "dim")),
            text_of(each.organization_id or "–"),
        )
        for each in links
    ]
    empty = "There are no links. Make a token: venue-control support link --channel … --asked-by …"
    print_rows(("id", "channel", "asked by", "asked", "state", "organization"), rows, empty)


def print_channels(channels: Sequence[SupportChannel]) -> None:
    rows = [
        (text_of(each.kind), text_of(each.address), text_of(each.hours or "–")) for each in channels
    ]
    empty = "Nothing says how support is reached: venue-control support channels set KIND ADDRESS"
    print_rows(("kind", "address", "hours"), rows, empty)
