"""The four operations of support.

Who holds a token may see what it would link. Once an organization used it, it is that
organization's: to others there is no such token, but to who tries to use it, too, it is used.
"""

from controlplane.accounts.names import names_of_organizations
from controlplane.operation.audit_entries import Event, Subject
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal, conflict, manager_required, not_found
from controlplane.storage.support_tables import SupportLink
from controlplane.support.access import Standing, standing_of
from controlplane.support.channels import channels
from controlplane.support.links import confirmed_links, find_link, record_of, state_of
from controlplane.support.messages import (
    Choice,
    ConfirmRequest,
    Contact,
    Inspection,
    Link,
    SupportChannel,
    TokenRequest,
)


def contact(context: RequestContext, _body: None) -> Contact:
    """Return how support is reached, and which of its channels the caller's organizations have
    linked. A call has no body."""
    standing = standing_of(context.session, context.caller)
    links = confirmed_links(context.session, standing.sees)
    return Contact(
        channels=tuple(
            SupportChannel(kind=each.kind, address=each.address, hours=each.hours)
            for each in channels(context.session)
        ),
        links=tuple(record_of(each, context.now) for each in links),
    )


def inspect(context: RequestContext, body: TokenRequest) -> Inspection:
    """Return what a token would link or has linked, and for which organizations the caller may
    confirm it."""
    standing = standing_of(context.session, context.caller)
    link = find_link(context.session, body.token)
    if link is None or not _may_see(link, standing):
        raise not_found("token")
    record = record_of(link, context.now)
    choices = standing.speaks_for if record.state == "waiting" else ()
    names = names_of_organizations(context.session, choices)
    return Inspection(
        **dict(record),
        organizations=tuple(Choice(id=each, name=names.get(each)) for each in choices),
    )


def confirm(context: RequestContext, body: ConfirmRequest) -> Link:
    """Link an organization with what support asked for. The same again gets the same reply;
    another organization is refused."""
    standing = standing_of(context.session, context.caller)
    if body.organization_id not in standing.speaks_for:
        raise manager_required()
    link = find_link(context.session, body.token, lock=True)
    if link is None:
        raise not_found("token")
    state = state_of(link, context.now)
    if state == "waiting":
        link.organization_id = body.organization_id
        link.confirmed_at = context.now
        link.confirmed_by = context.caller.user_id
        context.note(Event("support.confirm", _subject(link)), link.organization_id)
    elif state == "expired":
        raise _expired()
    elif state == "disconnected" or link.organization_id != body.organization_id:
        raise conflict("token_used", "the token was used: ask support for another one")
    return record_of(link, context.now)


def disconnect(context: RequestContext, body: TokenRequest) -> Link:
    """End what a token linked, or decline what it would link. The same again gets the same
    reply."""
    standing = standing_of(context.session, context.caller)
    link = find_link(context.session, body.token, lock=True)
    if link is None or not _may_see(link, standing):
        raise not_found("token")
    if not _may_end(link, standing):
        raise manager_required()
    if state_of(link, context.now) == "expired":
        raise _expired()
    if link.disconnected_at is None:
        link.disconnected_at = context.now
        context.note(Event("support.disconnect", _subject(link)), link.organization_id)
    return record_of(link, context.now)


def _subject(link: SupportLink) -> Subject:
    return Subject("support_link", str(link.id), link.channel)


def _may_see(link: SupportLink, standing: Standing) -> bool:
    return link.organization_id is None or link.organization_id in standing.sees


def _may_end(link: SupportLink, standing: Standing) -> bool:
    if link.organization_id is None:
        return bool(standing.speaks_for)
    return link.organization_id in standing.speaks_for


def _expired() -> Refusal:
    return conflict("token_expired", "the token ran out: ask support for another one")
