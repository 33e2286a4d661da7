"""Operations with which signed-in owners manage the members of an organization.

After each operation, the organization still has at least one owner with access to all locations,
because only such an owner can add another owner.
"""

from functools import partial
from typing import Final
from uuid import UUID

from sqlalchemy import select

from agent.wire.device_operations import EmptyRequest
from controlplane.accounts import users
from controlplane.accounts.members import invitations, messages
from controlplane.accounts.members.rules import require_owner
from controlplane.accounts.messages import RevokeReply
from controlplane.accounts.names import require_known
from controlplane.accounts.users import Member
from controlplane.operation.audit_entries import Event, Subject, describe_role, user_subject
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import conflict, invalid_field, not_found
from controlplane.operation.operation import Procedure, procedure
from controlplane.operation.records import record_of
from controlplane.storage.account_tables import Invitation, Membership, User

PREFIX: Final = "/console/api/members"
JOIN_PATH: Final = "/#/join/"
"""The path of an invitation's link, without the secret code at its end. Browsers do not send what
follows ``#``, so servers do not log the code."""
_writing_procedure = partial(procedure, writes=True, requires_session=True)


def member_operations() -> tuple[Procedure, ...]:
    return (
        procedure(PREFIX, members, requires_session=True),
        _writing_procedure(f"{PREFIX}/change", change),
        _writing_procedure(f"{PREFIX}/remove", remove),
        _writing_procedure(f"{PREFIX}/invite", invite),
        _writing_procedure(f"{PREFIX}/revoke-invitation", revoke_invitation),
    )


def members(context: RequestContext, _body: EmptyRequest) -> messages.MembersReply:
    """Return the members, ordered by e-mail address, and the open invitations."""
    require_owner(context)
    session, organization_id = context.session, context.caller.organization_id
    open_invitations = invitations.open_invitations(session, organization_id, context.now)
    return messages.MembersReply(
        members=tuple(_record(context, each) for each in users.members(session, organization_id)),
        invitations=tuple(record_of(messages.InvitationRecord, row) for row in open_invitations),
    )


def change(
    context: RequestContext, body: messages.MemberChangeRequest
) -> messages.MemberChangeReply:
    """Change the role and the locations of a member."""
    require_owner(context)
    member = _member(context, body.user_id)
    if member.membership.managed_by is not None:
        raise conflict(
            "managed_by_provider",
            "the groups of the identity provider decide this role: change them there",
        )
    # Locations that the member already has are accepted, even if they no longer exist.
    require_known(context, set(body.locations).difference(member.membership.locations))
    before = describe_role(member.membership.role, member.membership.locations)
    if body.role != "owner" or body.locations:
        _require_another_owner(context, body.user_id)
    users.set_membership(
        context.session,
        body.user_id,
        context.caller.organization_id,
        role=body.role,
        locations=body.locations,
        now=context.now,
    )
    # `set_membership` has changed the row.
    after = describe_role(member.membership.role, member.membership.locations)
    context.note(Event("member.change", user_subject(member.user), f"{before} → {after}"))
    return messages.MemberChangeReply(member=_record(context, member))


def remove(
    context: RequestContext, body: messages.MemberRemoveRequest
) -> messages.MemberRemoveReply:
    """Remove a member. Revoke the keys of the membership, and end its sessions and grants."""
    require_owner(context)
    member = _member(context, body.user_id)
    _require_another_owner(context, body.user_id)
    context.note(Event("member.remove", user_subject(member.user)))
    users.remove_membership(
        context.session, body.user_id, context.caller.organization_id, context.now
    )
    return messages.MemberRemoveReply(removed=True)


def invite(context: RequestContext, body: messages.InviteRequest) -> messages.InviteReply:
    """Create a link with which one user can become a member. The link is valid for 24 hours."""
    require_owner(context)
    session, organization_id = context.session, context.caller.organization_id
    try:
        email = users.require_email(body.email)
    except ValueError:
        raise invalid_field("email", "is not an e-mail address") from None
    require_known(context, body.locations)
    user = users.find_user(session, email)
    if user is not None and session.get(Membership, (user.id, organization_id)) is not None:
        raise conflict("already_member", f"{user.email} is already a member")
    invitations.delete_expired(session, context.now)
    open_max = invitations.INVITATIONS_MAX
    if len(invitations.open_invitations(session, organization_id, context.now)) >= open_max:
        raise conflict(
            "too_many_invitations", f"at most {open_max} invitations can be open. Revoke one first"
        )
    row = Invitation(
        organization_id=organization_id,
        email=email,
        role=body.role,
        locations=sorted(set(body.locations)),
        invited_by=context.caller.session_user_id,
    )
    code = invitations.invite(session, row, context.now)
    context.note(
        Event("member.invite", _invitation_subject(row), describe_role(row.role, row.locations))
    )
    return messages.InviteReply(
        invitation=record_of(messages.InvitationRecord, row), path=f"{JOIN_PATH}{code}"
    )


def revoke_invitation(
    context: RequestContext, body: messages.InvitationRevokeRequest
) -> RevokeReply:
    """Revoke an invitation. Its link becomes invalid."""
    require_owner(context)
    row = context.session.get(Invitation, body.invitation_id)
    if row is None or row.organization_id != context.caller.organization_id:
        raise not_found("invitation")
    context.note(Event("invitation.revoke", _invitation_subject(row)))
    context.session.delete(row)
    return RevokeReply(revoked=True)


def _member(context: RequestContext, user_id: UUID) -> Member:
    membership = context.session.get(Membership, (user_id, context.caller.organization_id))
    if membership is None:
        raise not_found("member")
    return Member(context.session.get_one(User, user_id), membership)


def _require_another_owner(context: RequestContext, user_id: UUID) -> None:
    """Refuse a change after which no owner would have access to all locations.

    ``user_id`` is the user whom the change removes, or whose role or locations it reduces.

    The rows of all owners are locked, so that two concurrent changes cannot both succeed.
    """
    query = select(Membership).where(
        Membership.organization_id == context.caller.organization_id, Membership.role == "owner"
    )
    query = query.order_by(Membership.user_id).with_for_update()
    owners = context.session.scalars(query.execution_options(populate_existing=True)).all()
    if not any(each.user_id != user_id and not each.locations for each in owners):
        raise conflict(
            "last_owner",
            "an organization needs an owner with access to all locations. Add another owner first",
        )


def _record(context: RequestContext, member: Member) -> messages.MemberRecord:
    user, membership = member.user, member.membership
    return record_of(
        messages.MemberRecord,
        membership,
        email=user.email,
        name=user.name,
        is_this=user.id == context.caller.session_user_id,
    )


def _invitation_subject(row: Invitation) -> Subject:
    return Subject("invitation", str(row.id), row.email)
