"""Bodies and replies of the operations of support.

The contract defines the bodies, but not the replies. docs/support.md describes the replies.
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
    """A way to contact support. ``hours`` is text for users, or null if it is not known."""

    kind: str
    address: str
    hours: str | None


class Link(Tolerant):
    """A link between an organization and a chat with support.

    ``channel`` describes the chat, and ``requested_by`` names the requester. Both are texts from
    support. ``confirmed_by_id`` is the id of a user or a key. ``organization_id``, ``confirmed_at``
    and ``confirmed_by_id`` are null until the link is confirmed. ``disconnected_at`` is null until
    the link ends. A confirmed link does not expire.
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
    """An organization that the caller may link. ``name`` is null if there is no name."""

    id: str
    name: str | None


class Inspection(Link):
    """A link, and the organizations for which the caller may confirm the link.

    ``organizations`` is empty unless the state of the link is waiting.
    """

    organizations: Array[Choice]


class Contact(Tolerant):
    """The channels of support, and the confirmed links of the caller, newest first."""

    channels: Array[SupportChannel]
    links: Array[Link]
