"""What the operations of support take and answer.

Bodies are the contract's; it does not show the replies, those are ours: docs/support.md.
"""

from typing import Annotated, Literal

from pydantic import StringConstraints

from agent.wire.base import Array, Exact, Timestamp, Tolerant, Uuid
from agent.wire.text import NonEmptyText

Token = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$")]
LinkState = Literal["waiting", "confirmed", "disconnected", "expired"]


class TokenRequest(Exact):
    token: Token


class ConfirmRequest(TokenRequest):
    organization_id: NonEmptyText


class SupportChannel(Tolerant):
    """A way to reach support. ``hours`` are words for a person, null where it does not say."""

    kind: str
    address: str
    hours: str | None


class Link(Tolerant):
    """What support asked to be linked with an organization.

    ``channel`` and ``requested_by`` are support's words. ``organization_id``, ``confirmed_at`` and
    ``confirmed_by_id``, a person's id or a key's, are null until it is confirmed;
    ``disconnected_at`` is null until it is ended. ``expires_at`` bounds the waiting only.
    """

    id: Uuid
    channel: str
    requested_by: str
    requested_at: Timestamp
    expires_at: Timestamp
    state: LinkState
    organization_id: str | None
    confirmed_at: Timestamp | None
    confirmed_by_id: str | None
    disconnected_at: Timestamp | None


class Choice(Tolerant):
    """An organization that the caller may link; ``name`` is null where nobody named it."""

    id: str
    name: str | None


class Inspection(Link):
    """A link, and ``organizations`` that the caller may confirm it for: none once it is used."""

    organizations: Array[Choice]


class Contact(Tolerant):
    """How support is reached, and the caller's links that are confirmed, the newest first."""

    channels: Array[SupportChannel]
    links: Array[Link]
