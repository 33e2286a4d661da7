"""Registered OAuth clients (RFC 7591). Anyone can register one, so their number is limited.

All clients are public clients, which have no secret: a secret in every copy of a program would be
public. Instead, PKCE binds a code to the client that requested it.
"""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from controlplane.accounts.oauth.secrets import is_client_id, new_client_id
from controlplane.operation.errors import unavailable
from controlplane.storage.oauth_tables import OAuthClient, OAuthGrant
from controlplane.storage.statements import change_rows

CLIENTS_MAX: Final = 10_000
NAME_MAX: Final = 80
UNNAMED: Final = "A program without a name"
UNUSED: Final = timedelta(days=90)
"""If there are too many clients, each client whose last grant is older than this is deleted, unless
a grant is still valid.
"""
NEVER_GRANTED: Final = timedelta(hours=1)
"""If there are too many clients, each client that never had a grant and registered longer ago than
this is deleted.
"""


def add_client(session: Session, name: str, redirect_uris: list[str], now: datetime) -> OAuthClient:
    """Register a client. Raises a refusal if there are too many."""
    if _count(session) >= CLIENTS_MAX:
        _forget(session, now)
        if _count(session) >= CLIENTS_MAX:
            raise unavailable("too many clients are registered. Try again later", wait_s=600)
    row = OAuthClient(
        id=new_client_id(), name=display_name(name), redirect_uris=redirect_uris, created_at=now
    )
    session.add(row)
    session.flush()
    return row


def find_client(session: Session, client_id: str) -> OAuthClient | None:
    return session.get(OAuthClient, client_id) if is_client_id(client_id) else None


def display_name(name: str) -> str:
    """Return the name to display, without invisible characters, for example for text direction."""
    printable = "".join(each if each.isprintable() else " " for each in name)
    return " ".join(printable.split())[:NAME_MAX].strip() or UNNAMED


def _count(session: Session) -> int:
    return session.scalar(select(func.count()).select_from(OAuthClient)) or 0


def _forget(session: Session, now: datetime) -> None:
    """Delete clients without a recent grant, as `UNUSED` and `NEVER_GRANTED` define."""
    in_use = select(OAuthGrant.client_id).where(OAuthGrant.expires_at > now)
    is_old = func.coalesce(OAuthClient.granted_at, OAuthClient.created_at) <= now - UNUSED
    is_idle = OAuthClient.granted_at.is_(None) & (OAuthClient.created_at <= now - NEVER_GRANTED)
    unused = delete(OAuthClient).where(OAuthClient.id.not_in(in_use), is_old | is_idle)
    change_rows(session, unused)
