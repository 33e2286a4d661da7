"""Registered OAuth clients (RFC 7591). Anyone can register a client, so their number is limited.

At the limit, a registration deletes clients without a valid grant or code. Clients that no user has
authorized are deleted first. Strangers therefore cannot block the registration of other clients.

All clients are public clients, which have no secret: a secret in every copy of a program would be
public. Instead, PKCE binds a code to the client that requested it.
"""

from datetime import datetime
from typing import Final

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from controlplane.accounts.oauth.secrets import is_client_id, new_client_id
from controlplane.operation.errors import unavailable
from controlplane.storage.oauth_tables import OAuthClient, OAuthCode, OAuthGrant
from controlplane.storage.statements import change_rows

CLIENTS_MAX: Final = 10_000
NAME_MAX: Final = 80
UNNAMED: Final = "A program without a name"
DELETED_AT_ONCE: Final = 100
"""Maximum number of clients that are deleted together if there are too many."""


def add_client(session: Session, name: str, redirect_uris: list[str], now: datetime) -> OAuthClient:
    """Register a client.

    Raises a refusal if there are too many clients with a valid grant or code.
    """
    if _count(session) >= CLIENTS_MAX:
        _delete_unused_clients(session, now)
        if _count(session) >= CLIENTS_MAX:
            raise unavailable("too many programs are registered. Try again later", wait_s=600)
    row = OAuthClient(
        id=new_client_id(), name=display_name(name), redirect_uris=redirect_uris, created_at=now
    )
    session.add(row)
    session.flush()
    return row


def find_client(session: Session, client_id: str) -> OAuthClient | None:
    return session.get(OAuthClient, client_id) if is_client_id(client_id) else None


def display_name(name: str) -> str:
    """Return the name without invisible characters, such as those that change text direction."""
    printable = "".join(each if each.isprintable() else " " for each in name)
    return " ".join(printable.split())[:NAME_MAX].strip() or UNNAMED


def _count(session: Session) -> int:
    return session.scalar(select(func.count()).select_from(OAuthClient)) or 0


def _delete_unused_clients(session: Session, now: datetime) -> None:
    """Delete at most `DELETED_AT_ONCE` clients without a valid grant or code.

    First, clients that never had a grant are deleted, starting with the oldest registration. Then
    clients that had a grant are deleted, starting with the one whose newest grant is the oldest.
    """
    with_grant = select(OAuthGrant.client_id).where(OAuthGrant.expires_at > now)
    with_code = select(OAuthCode.client_id).where(OAuthCode.expires_at > now)
    had_grant = OAuthClient.granted_at.is_not(None)
    last_granted_or_created_at = func.coalesce(OAuthClient.granted_at, OAuthClient.created_at)
    unused_clients = (
        select(OAuthClient.id)
        .where(OAuthClient.id.not_in(with_grant), OAuthClient.id.not_in(with_code))
        .order_by(had_grant, last_granted_or_created_at, OAuthClient.id)
        .limit(DELETED_AT_ONCE)
    )
    change_rows(
        session,
        delete(OAuthClient).where(OAuthClient.id.in_(session.scalars(unused_clients).all())),
    )
