"""Operations for the OAuth grants of a signed-in user: list and end."""

from datetime import datetime
from typing import Final

from agent.wire.base import Array, Exact, Tolerant, Uuid
from controlplane.accounts.messages import EmptyRequest, EndReply
from controlplane.accounts.oauth import grants
from controlplane.accounts.oauth.redirects import host_of
from controlplane.operation.audit_entries import Event, Subject
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import not_found
from controlplane.operation.operation import Procedure, procedure
from controlplane.operation.records import record_of
from controlplane.storage.oauth_tables import OAuthClient, OAuthGrant

UNREGISTERED: Final = "A client that is no longer registered"


class GrantRecord(Tolerant):
    """A grant.

    Attributes:
        client_name: the name that the client registered.
        client_hosts: hosts of the client's redirect URIs. Empty for a program on the user's
            computer, and for a client that is no longer registered.
    """

    id: Uuid
    organization_id: str
    client_name: str
    client_hosts: Array[str]
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime


class GrantsReply(Tolerant):
    grants: Array[GrantRecord]


class GrantEndRequest(Exact):
    grant_id: Uuid


def grant_operations(prefix: str) -> tuple[Procedure, ...]:
    return (
        procedure(f"{prefix}/grants", list_grants, requires_session=True),
        procedure(f"{prefix}/end-grant", end_grant, writes=True, requires_session=True),
    )


def list_grants(context: RequestContext, _body: EmptyRequest) -> GrantsReply:
    """Return the grants of the user, in all organizations."""
    result = grants.of_user(context.session, context.caller.session_user_id, context.now)
    return GrantsReply(grants=tuple(_record(*each) for each in result))


def end_grant(context: RequestContext, body: GrantEndRequest) -> EndReply:
    """End a grant of the user and its tokens."""
    grant = grants.end_by_id(context.session, body.grant_id, context.caller.session_user_id)
    if grant is None:
        raise not_found("grant")
    client = context.session.get(OAuthClient, grant.client_id)
    name = UNREGISTERED if client is None else client.name
    subject = Subject("grant", str(body.grant_id), name)
    context.note(Event("grant.end", subject), grant.organization_id)
    return EndReply(ended=True)


def _record(grant: OAuthGrant, client: OAuthClient | None) -> GrantRecord:
    hosts = {host_of(each) for each in client.redirect_uris} if client is not None else set()
    return record_of(
        GrantRecord,
        grant,
        client_name=UNREGISTERED if client is None else client.name,
        client_hosts=tuple(sorted(each for each in hosts if each is not None)),
    )
