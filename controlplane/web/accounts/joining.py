"""``POST /api/auth/invitation`` and ``/api/auth/join``: by a link, into an organization.

Who has the code is who was invited; for an address that has an account its password is needed, too.
"""

from datetime import datetime
from http import HTTPStatus
from typing import Final

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agent.wire.base import Message
from agent.wire.codec import encode
from controlplane.accounts import throttle, users
from controlplane.accounts.members import invitations
from controlplane.accounts.members.messages import (
    InvitationReply,
    InvitationRequest,
    JoinReply,
    JoinRequest,
)
from controlplane.accounts.names import names_of_organizations
from controlplane.operation.audit_entries import (
    Actor,
    Credential,
    Event,
    granted,
    note,
    person,
    user_subject,
)
from controlplane.operation.bodies import parse_body
from controlplane.operation.errors import Refusal, conflict
from controlplane.operation.fairness import spread
from controlplane.storage.account_tables import Invitation, Membership, User
from controlplane.web.accounts import cookies
from controlplane.web.accounts.own_password import require_new, wrong_password
from controlplane.web.accounts.sign_in import BODY_MAX_BYTES, too_many_tries
from controlplane.web.admission import require_json, require_method
from controlplane.web.bodies import read_body
from controlplane.web.core import Core

INVITATION: Final = "/api/auth/invitation"
JOIN: Final = "/api/auth/join"


def joining_routes(core: Core) -> list[Route]:
    return [Route(INVITATION, InvitationEndpoint(core)), Route(JOIN, JoinEndpoint(core))]


class InvitationEndpoint:
    """Says what an invitation is for, to who has its code."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        core, request = self._core, Request(scope, receive)
        admit_stranger(core, request)
        asked = parse_body(InvitationRequest, await read_body(core, request, BODY_MAX_BYTES))
        now = core.clock()

        def work(session: Session) -> InvitationReply:
            row = _found(session, asked.code, now)
            names = names_of_organizations(session, (row.organization_id,))
            organization = names.get(row.organization_id, row.organization_id)
            return InvitationReply(email=row.email, organization=organization, role=row.role)

        await answer(await core.read(work))(scope, receive, send)


class JoinEndpoint:
    """Makes who was invited a member, and an account where there is none."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        core, request = self._core, Request(scope, receive)
        address = admit_stranger(core, request)
        asked = parse_body(JoinRequest, await read_body(core, request, BODY_MAX_BYTES))
        now = core.clock()

        def look(session: Session) -> tuple[str, User | None]:
            row = _found(session, asked.code, now)
            return row.email, users.find_user(session, row.email)

        email, user = await core.read(look)
        tried = None
        if user is None:
            require_new(asked.password, "password")
            password_hash = await core.passwords.hash(asked.password)
        else:
            password_hash = user.password_hash
            tried = await core.write(lambda session: throttle.begin(session, email, address, now))
            if tried.wait_s:
                raise too_many_tries(tried.wait_s)
            if not await core.passwords.verify(password_hash, asked.password):
                await self._note_refused(asked.code, user, address)
                raise wrong_password("the address has an account: its own password is needed")

        def work(session: Session) -> JoinReply:
            row = _found(session, asked.code, now, lock=True)
            member = users.find_user(session, row.email)
            if member is None:
                name = asked.name.strip() or row.email
                member = users.add_user(
                    session, email=row.email, name=name, password_hash=password_hash, now=now
                )
            elif member.password_hash != password_hash:
                raise conflict("account_changed", "the account is another now: try again")
            if tried is not None:
                throttle.succeed(session, tried)
            _join(session, row, member, address, now)
            return JoinReply(email=member.email, organization_id=row.organization_id)

        await answer(await core.write(work))(scope, receive, send)

    async def _note_refused(self, code: str, user: User, address: str) -> None:
        now = self._core.clock()

        def work(session: Session) -> None:
            row = _found(session, code, now)
            actor = Actor("unknown", None, "", Credential("invitation", row.id), address)
            event = Event("member.join", user_subject(user), "the password is wrong", "refused")
            note(session, actor, event, organization_id=row.organization_id, now=now)

        await self._core.write(work)


def admit_stranger(core: Core, request: Request) -> str:
    """Return the address of who shows no credential yet, or raise the refusal."""
    require_method(request, "POST")
    require_json(request.headers)
    cookies.require_own_origin(core, request, is_needed=False)
    address = cookies.address_of(core, request)
    if wait_s := core.sign_ins.take(address):
        raise too_many_tries(spread(wait_s))
    return address


def answer(reply: Message) -> Response:
    return Response(encode(reply), media_type="application/json")


def _found(session: Session, code: str, now: datetime, *, lock: bool = False) -> Invitation:
    row = invitations.find(session, code, now, lock=lock)
    if row is None:
        raise Refusal(
            HTTPStatus.NOT_FOUND,
            "invitation_not_found",
            "the link was used, taken back or is older than a day: ask for another",
        )
    return row


def _join(session: Session, row: Invitation, user: User, address: str, now: datetime) -> None:
    """Make the user a member; the link is worth nothing any more."""
    organization_id = row.organization_id
    if session.get(Membership, (user.id, organization_id)) is not None:
        raise conflict("already_member", f"{user.email} is a member already")
    users.set_membership(
        session, user.id, organization_id, role=row.role, locations=row.locations, now=now
    )
    actor = person(user, Credential("invitation", row.id), address)
    event = Event("member.join", user_subject(user), granted(row.role, row.locations))
    note(session, actor, event, organization_id=organization_id, now=now)
    session.delete(row)
