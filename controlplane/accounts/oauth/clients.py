"""Programs that registered themselves (RFC 7591). Anybody may, so they are bounded and forgotten.

All are public clients: a secret that every copy of a program holds, or that a registration
answers to anybody, proves nothing. A code is bound to who asked for it by PKCE.
"""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from controlplane.accounts.oauth.secrets import is_client_id, new_client_id
from controlplane.operation.errors import unavailable
from controlplane.storage.oauth_tables import OAuthClient, OAuthGrant

CLIENTS_MAX: Final = 10_000
NAME_MAX: Final = 80
UNNAMED: Final = "A program without a name"
UNUSED: Final = timedelta(days=90)
"""For how long a client is kept whose last grant was made, or that was registered, so long ago."""
NEVER_GRANTED: Final = timedelta(hours=1)
"""Where there are too many, those whom nobody let read in this time give way."""


def add_client(session: Session, name: str, redirect_uris: list[str], now: datetime) -> OAuthClient:
    """Raises a refusal where there are too many."""
    if _count(session) >= CLIENTS_MAX:
        _forget(session, now)
        if _count(session) >= CLIENTS_MAX:
            raise unavailable("too many programs have registered, try again later", wait_s=600)
    row = OAuthClient(
        id=new_client_id(), name=shown_name(name), redirect_uris=redirect_uris, created_at=now
    )
    session.add(row)
    session.flush()
    return row


def find_client(session: Session, client_id: str) -> OAuthClient | None:
    return session.get(OAuthClient, client_id) if is_client_id(client_id) else None


def shown_name(name: str) -> str:
    """Return what may stand on a page: nothing that is unseen or turns the text around."""
    printable = "".join(each if each.isprintable() else " " for each in name)
    return " ".join(printable.split())[:NAME_MAX].strip() or UNNAMED


def _count(session: Session) -> int:
    return session.scalar(select(func.count()).select_from(OAuthClient)) or 0


def _forget(session: Session, now: datetime) -> None:
    """Forget those that nobody let read soon enough, or lets read any more."""
    in_use = select(OAuthGrant.client_id).where(OAuthGrant.expires_at > now)
    is_old = func.coalesce(OAuthClient.granted_at, OAuthClient.created_at) <= now - UNUSED
    is_idle = OAuthClient.granted_at.is_(None) & (OAuthClient.created_at <= now - NEVER_GRANTED)
    session.execute(
        delete(OAuthClient)
        .where(OAuthClient.id.not_in(in_use), is_old | is_idle)
        .execution_options(synchronize_session=False)
    )
