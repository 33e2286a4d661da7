"""What a person let programs read, and how they end it: operations beside the profile's."""

from datetime import datetime
from typing import Final

from agent.wire.base import Array, Exact, Tolerant, Uuid
from controlplane.accounts.oauth import grants
from controlplane.accounts.oauth.redirects import host_of
from controlplane.operation.audit_entries import Event, Subject
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import not_found
from controlplane.operation.operation import Procedure, procedure
from controlplane.storage.oauth_tables import OAuthClient, OAuthGrant

UNKNOWN: Final = "A program that is not registered any more"


class GrantsRequest(Exact):
    """The body of a call that has nothing to say."""


class GrantRecord(Tolerant):
    """``client_name`` is what the program calls itself, ``client_hosts`` where its answers may go:
    none of them is a program on the person's own machine."""

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


class GrantEndReply(Tolerant):
    ended: bool


def grant_operations(prefix: str) -> tuple[Procedure, ...]:
    return (
        procedure(f"{prefix}/grants", list_grants, of_person=True),
        procedure(f"{prefix}/end-grant", end_grant, writes=True, of_person=True),
    )


def list_grants(context: RequestContext, _body: GrantsRequest) -> GrantsReply:
    """Return what the person let programs read, in whichever organization."""
    owner_id = context.caller.owner_id
    assert owner_id is not None  # noqa: S101 - it is a session's
    found = grants.of_user(context.session, owner_id, context.now)
    return GrantsReply(grants=tuple(_record(*each) for each in found))


def end_grant(context: RequestContext, body: GrantEndRequest) -> GrantEndReply:
    """End one of one's own grants; its tokens are good at no call from now on."""
    owner_id = context.caller.owner_id
    assert owner_id is not None  # noqa: S101 - it is a session's
    grant = grants.end_by_id(context.session, body.grant_id, owner_id)
    if grant is None:
        raise not_found("grant")
    client = context.session.get(OAuthClient, grant.client_id)
    name = UNKNOWN if client is None else client.name
    subject = Subject("grant", str(body.grant_id), name)
    context.note(Event("grant.end", subject), grant.organization_id)
    return GrantEndReply(ended=True)


def _record(grant: OAuthGrant, client: OAuthClient | None) -> GrantRecord:
    hosts = {host_of(each) for each in client.redirect_uris} if client is not None else set()
    return GrantRecord(
        id=grant.id,
        organization_id=grant.organization_id,
        client_name=UNKNOWN if client is None else client.name,
        client_hosts=tuple(sorted(each for each in hosts if each is not None)),
        created_at=grant.created_at,
        last_used_at=grant.last_used_at,
        expires_at=grant.expires_at,
    )
