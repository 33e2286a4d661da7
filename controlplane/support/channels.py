"""The channels of support, which are the ways to contact it. The operator maintains the list.

Every organization gets the same list.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from controlplane.storage.support_tables import SupportChannel

CHANNELS_MAX: Final = 20


def channels(session: Session) -> Sequence[SupportChannel]:
    return session.scalars(select(SupportChannel).order_by(SupportChannel.position)).all()


def set_channel(session: Session, *, kind: str, address: str, hours: str | None) -> bool:
    """Add a channel, or change the hours of an existing one. Return False if the list is full."""
    channel_rows = channels(session)
    for channel_row in channel_rows:
        if (channel_row.kind, channel_row.address) == (kind, address):
            channel_row.hours = hours
            return True
    if len(channel_rows) >= CHANNELS_MAX:
        return False
    session.add(SupportChannel(kind=kind, address=address, hours=hours))
    return True


def remove_channel(session: Session, *, kind: str, address: str) -> bool:
    """Remove a channel. Return whether it existed."""
    statement = delete(SupportChannel).where(
        SupportChannel.kind == kind, SupportChannel.address == address
    )
    return session.execute(statement.returning(SupportChannel.position)).first() is not None
