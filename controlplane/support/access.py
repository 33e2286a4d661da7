"""What a caller is to organizations: of which they may see links, and for which they may speak.

A link is the whole organization's. So who may do something at some of its locations only does not
speak for it, and a key speaks for its own organization only, whoever owns it.
"""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy.orm import Session

from controlplane.accounts.users import memberships
from controlplane.operation.caller import Caller
from controlplane.operation.permissions import WRITING


@dataclass(frozen=True, slots=True)
class Standing:
    """Ids of organizations: ``sees`` are all of the caller's, ``speaks_for`` is a part of them."""

    sees: Collection[str]
    speaks_for: Collection[str]


def standing_of(session: Session, caller: Caller) -> Standing:
    """Return what the caller is now. Who is signed in is asked for in all their organizations:
    the operations of support name the one that they mean."""
    if caller.kind == "session" and caller.owner_id is not None:
        members = memberships(session, caller.owner_id)
        speaks = (each for each in members if each.role in WRITING and not each.locations)
        return Standing(
            tuple(each.organization_id for each in members),
            tuple(each.organization_id for each in speaks),
        )
    own = (caller.organization_id,)
    return Standing(own, own if caller.can_write and not caller.locations else ())
