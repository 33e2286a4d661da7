"""``POST /api/auth/invitation`` and ``/api/auth/join``: join an organization by an invitation link.

The code in the link shows that the caller is the invited user. If an account with the invited
e-mail address already exists, its password is required as well.
"""

from datetime import datetime
from http import HTTPStatus
from typing import Final

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.wire.codec import encode
from controlplane.accounts import throttle, users
from controlplane.accounts.members import invitations, messages
from controlplane.accounts.names import names_of_organizations
from controlplane.operation import audit_entries as audit
from controlplane.operation.errors import Refusal, conflict
from controlplane.storage.account_tables import Invitation, Membership, User
from controlplane.web.accounts.sign_in import (
    admit_without_credential,
    begin_attempt,
    require_valid_password,
    wrong_password,
)
from controlplane.web.admission import Handler, read_small
from controlplane.web.core import Core

INVITATION: Final = "/api/auth/invitation"
JOIN: Final = "/api/auth/join"


def joining_routes(core: Core) -> list[Route]:
    return [Route(INVITATION, Handler(core, invitation)), Route(JOIN, Handler(core, join))]


async def invitation(core: Core, request: Request) -> Response:
    """Return the e-mail address, the organization and the role of an invitation, by its code."""
    admit_without_credential(core, request)
    body = await read_small(core, request, messages.InvitationRequest)
    now = core.clock()

    def work(session: Session) -> messages.InvitationReply:
        row = _find_invitation(session, body.code, now)
        names = names_of_organizations(session, (row.organization_id,))
        organization = names.get(row.organization_id, row.organization_id)
        return messages.InvitationReply(email=row.email, organization=organization, role=row.role)

    return Response(encode(await core.read(work)), media_type="application/json")


async def join(core: Core, request: Request) -> Response:
    """Make the invited user a member. Create an account if the e-mail address has none."""
    address = admit_without_credential(core, request)
    body = await read_small(core, request, messages.JoinRequest)
    now = core.clock()

    def find(session: Session) -> tuple[str, User | None]:
        row = _find_invitation(session, body.code, now)
        return row.email, users.find_user(session, row.email)

    email, user = await core.read(find)
    attempt, network = None, throttle.network_of(address)
    if user is None:
        require_valid_password(body.password, "password")
        password_hash = await core.passwords.hash(body.password, network, is_known=False)
    else:
        password_hash = user.password_hash
        attempt = await begin_attempt(core, email, address)
        if not await core.passwords.verify(password_hash, body.password, network, is_known=False):
            await core.write(lambda session: _note_refused(session, body.code, user, address, now))
            raise wrong_password(
                "the e-mail address has an account: enter its password. If you do not know"
                " the password, ask the operator of the service to set a new one"
            )

    def work(session: Session) -> messages.JoinReply:
        row = _find_invitation(session, body.code, now, lock=True)
        invited_user = users.find_user(session, row.email)
        if invited_user is None:
            name = body.name.strip() or row.email
            invited_user = users.add_user(
                session, email=row.email, name=name, password_hash=password_hash, now=now
            )
        elif invited_user.password_hash != password_hash:
            raise conflict("account_changed", "the account has changed: try again")
        if attempt is not None:
            throttle.succeed(session, attempt)
        _join(session, row, invited_user, address, now)
        return messages.JoinReply(email=invited_user.email, organization_id=row.organization_id)

    return Response(encode(await core.write(work)), media_type="application/json")


def _note_refused(session: Session, code: str, user: User, address: str, now: datetime) -> None:
    row = _find_invitation(session, code, now)
    actor = audit.Actor("unknown", None, "", audit.Credential("invitation", row.id), address)
    event = audit.Event("member.join", audit.user_subject(user), "the password is wrong", "refused")
    audit.note(session, actor, event, organization_id=row.organization_id, now=now)


def _find_invitation(
    session: Session, code: str, now: datetime, *, lock: bool = False
) -> Invitation:
    row = invitations.find(session, code, now, lock=lock)
    if row is None:
        raise Refusal(
            HTTPStatus.NOT_FOUND,
            "invitation_not_found",
            "the link was used or revoked, or is older than a day: ask for a new one",
        )
    return row


def _join(session: Session, row: Invitation, user: User, address: str, now: datetime) -> None:
    """Make the user a member, and delete the invitation, so that its link cannot be used again."""
    organization_id = row.organization_id
    if session.get(Membership, (user.id, organization_id)) is not None:
        raise conflict("already_member", f"{user.email} is already a member")
    users.set_membership(
        session, user.id, organization_id, role=row.role, locations=row.locations, now=now
    )
    actor = audit.user_actor(user, audit.Credential("invitation", row.id), address)
    event = audit.Event(
        "member.join", audit.user_subject(user), audit.describe_role(row.role, row.locations)
    )
    audit.note(session, actor, event, organization_id=organization_id, now=now)
    session.delete(row)
