"""Bodies and replies of the operations of support.

The bodies are from the contract. The contract does not define the replies, which docs/support.md
describes.
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
    """A channel of support. ``hours`` is text for users, or null if it is not known."""

    kind: str
    address: str
    hours: str | None


class Link(Tolerant):
    """A link between a channel of support and an organization.

    ``channel`` and ``requested_by`` are texts of support. ``organization_id``, ``confirmed_at`` and
    ``confirmed_by_id`` (of a user or a key) are null until the link is confirmed.
    ``disconnected_at`` is null until the link ends. ``expires_at`` applies until it is confirmed.
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
    """An organization that the caller may link. ``name`` is null if it has none."""

    id: str
    name: str | None


class Inspection(Link):
    """A link. Until it is used, it has the organizations for which the caller may confirm it."""

    organizations: Array[Choice]


class Contact(Tolerant):
    """The channels of support, and the confirmed links of the caller, newest first."""

    channels: Array[SupportChannel]
    links: Array[Link]
