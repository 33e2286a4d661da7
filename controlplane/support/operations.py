"""The four operations of support.

A link connects a whole organization with a chat with support. A caller with access to only some
locations cannot link the organization. An API key can link only its own organization.

Support creates a token for each link and sends it in the chat. Every caller who knows the token can
see the link until it is confirmed. After that, a caller of a different organization gets the same
reply as for an unknown token. The exception is `confirm`, which replies that the token was used.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from sqlalchemy.orm import Session

from controlplane.accounts.names import names_of_organizations
from controlplane.accounts.sign_in_policy import memberships_of_caller
from controlplane.operation.audit_entries import Event, Subject
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal, conflict, manager_required, not_found
from controlplane.operation.operation import Area, procedure
from controlplane.operation.permissions import WRITING_ROLES
from controlplane.operation.records import record_of
from controlplane.storage.support_tables import SupportLink
from controlplane.support import messages, routes
from controlplane.support.channels import channels
from controlplane.support.links import confirmed_links, find_link, link_record, state_of


@dataclass(frozen=True, slots=True)
class Access:
    """The organizations whose links a caller may see, and those that the caller may link."""

    visible: Collection[str]
    linkable: Collection[str]


def contact(context: RequestContext, _body: None) -> messages.Contact:
    """Return the channels of support, and the confirmed links of the caller's organizations. A link
    connects an organization with a chat with support. The request needs no body, and permits only
    an empty object."""
    access = _access_of(context.session, context.caller)
    links = confirmed_links(context.session, access.visible)
    return messages.Contact(
        channels=tuple(
            record_of(messages.SupportChannel, each) for each in channels(context.session)
        ),
        links=tuple(link_record(link, context.now) for link in links),
    )


def inspect(context: RequestContext, body: messages.TokenRequest) -> messages.Inspection:
    """Return the link of a token, and the organizations for which the caller may confirm it."""
    access = _access_of(context.session, context.caller)
    link = find_link(context.session, body.token)
    if link is None or not _may_see(link, access):
        raise not_found("token")
    record = link_record(link, context.now)
    choices = access.linkable if record.state == "waiting" else ()
    names = names_of_organizations(context.session, choices)
    return messages.Inspection(
        **dict(record),
        organizations=tuple(
            messages.Choice(id=organization_id, name=names.get(organization_id))
            for organization_id in choices
        ),
    )


def confirm(context: RequestContext, body: messages.ConfirmRequest) -> messages.Link:
    """Confirm the link of a token for an organization. A repeated call for the same
    organization gets the same reply. A call for a different organization is refused after that."""
    access = _access_of(context.session, context.caller)
    if body.organization_id not in access.linkable:
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
        raise conflict("token_used", "the token was already used: ask support for a new one")
    return link_record(link, context.now)


def disconnect(context: RequestContext, body: messages.TokenRequest) -> messages.Link:
    """End or decline the link of a token. A repeated call gets the same reply."""
    access = _access_of(context.session, context.caller)
    link = find_link(context.session, body.token, lock=True)
    if link is None or not _may_see(link, access):
        raise not_found("token")
    if not _may_end(link, access):
        raise manager_required()
    if state_of(link, context.now) == "expired":
        raise _expired()
    if link.disconnected_at is None:
        link.disconnected_at = context.now
        context.note(Event("support.disconnect", _subject(link)), link.organization_id)
    return link_record(link, context.now)


def _subject(link: SupportLink) -> Subject:
    return Subject("support_link", str(link.id), link.channel)


def _may_see(link: SupportLink, access: Access) -> bool:
    return link.organization_id is None or link.organization_id in access.visible


def _may_end(link: SupportLink, access: Access) -> bool:
    if link.organization_id is None:
        return bool(access.linkable)
    return link.organization_id in access.linkable


def _expired() -> Refusal:
    return conflict("token_expired", "the token has expired: ask support for a new one")


def _access_of(session: Session, caller: Caller) -> Access:
    """Return the access of a caller.

    A signed-in user has access to every organization that the session may use, and not only to the
    selected one. This is safe, because `confirm` names the organization in its body.
    """
    if caller.kind == "session" and caller.owner_id is not None:
        memberships = memberships_of_caller(session, caller)
        linkable = (
            each for each in memberships if each.role in WRITING_ROLES and not each.locations
        )
        return Access(
            visible=tuple(each.organization_id for each in memberships),
            linkable=tuple(each.organization_id for each in linkable),
        )
    may_link = caller.can_write and not caller.locations
    organizations = (caller.organization_id,)
    return Access(visible=organizations, linkable=organizations if may_link else ())


_TOKEN_REFUSALS: Final = frozenset({"manager_required", "token_not_found", "token_expired"})

SUPPORT: Final = Area(
    "support",
    "Channels of support, and links between organizations and chats with support.",
    (
        procedure(routes.CONTACT, contact),
        procedure(routes.INSPECT, inspect, refusals={"token_not_found"}),
        procedure(
            routes.CONFIRM,
            confirm,
            writes=True,
            checks_role=True,
            refusals=_TOKEN_REFUSALS | {"token_used"},
        ),
        procedure(
            routes.DISCONNECT,
            disconnect,
            writes=True,
            checks_role=True,
            refusals=_TOKEN_REFUSALS,
        ),
    ),
)
