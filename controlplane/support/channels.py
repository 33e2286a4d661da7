"""How support is reached: one list for all organizations, said by the operator."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from controlplane.storage.support_tables import SupportChannel

CHANNELS_MAX: Final = 20


def channels(session: Session) -> Sequence[SupportChannel]:
    return session.scalars(select(SupportChannel).order_by(SupportChannel.position)).all()


def set_channel(session: Session, *, kind: str, address: str, hours: str | None) -> bool:
    """Add a channel, or say other hours of one that there is. Returns False where it is full."""
    known = channels(session)
    for each in known:
        if (each.kind, each.address) == (kind, address):
            each.hours = hours
            return True
    if len(known) >= CHANNELS_MAX:
        return False
    session.add(SupportChannel(kind=kind, address=address, hours=hours))
    return True


def remove_channel(session: Session, *, kind: str, address: str) -> bool:
    """Return whether there was such a channel."""
    found = delete(SupportChannel).where(
        SupportChannel.kind == kind, SupportChannel.address == address
    )
    return session.execute(found.returning(SupportChannel.position)).first() is not None
