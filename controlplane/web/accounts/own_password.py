"""``POST /console/api/profile/change-password``: by the old one, which ends the other sessions."""

from http import HTTPStatus
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agent.wire.codec import encode
from controlplane.accounts import sessions, throttle
from controlplane.accounts.members.messages import PasswordChangeReply, PasswordChangeRequest
from controlplane.accounts.passwords import require_good
from controlplane.accounts.throttle import Try
from controlplane.accounts.users import note_change
from controlplane.operation.audit_entries import Event, note_call, user_subject
from controlplane.operation.bodies import parse_body
from controlplane.operation.caller import Caller
from controlplane.operation.errors import Refusal, invalid_field
from controlplane.storage.account_tables import SignInSession, User
from controlplane.web.accounts.cookies import address_of
from controlplane.web.accounts.sign_in import BODY_MAX_BYTES, too_many_tries
from controlplane.web.admission import admit
from controlplane.web.bodies import read_body
from controlplane.web.core import Core

PATH: Final = "/console/api/profile/change-password"


def own_password_routes(core: Core) -> list[Route]:
    return [Route(PATH, ChangePasswordEndpoint(core))]


class ChangePasswordEndpoint:
    """Passwords are verified and hashed beside the database's threads, as at sign-in; a wrong old
    one counts as a failure to sign in."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        core, request = self._core, Request(scope, receive)
        caller = await admit(core, request, writes=True, of_person=True)
        asked = parse_body(PasswordChangeRequest, await read_body(core, request, BODY_MAX_BYTES))
        require_new(asked.new_password, "newPassword")
        user = await core.read(lambda session: session.get_one(User, caller.owner_id))
        address, now = address_of(core, request), core.clock()
        tried = await core.write(lambda session: throttle.begin(session, user.email, address, now))
        if tried.wait_s:
            raise too_many_tries(tried.wait_s)
        if not await core.passwords.verify(user.password_hash, asked.old_password):
            refusal = wrong_password("the old password is wrong")
            event = Event("password.change", user_subject(user), refusal.detail, "refused")
            await core.write(
                lambda session: note_call(session, caller, event, address=address, now=now)
            )
            raise refusal
        password_hash = await core.passwords.hash(asked.new_password)

        def work(session: Session) -> PasswordChangeReply:
            row = session.get_one(User, user.id, with_for_update=True)
            if row.password_hash != user.password_hash:
                raise wrong_password("the old password is wrong")  # it is another one since
            row.password_hash = password_hash
            ended = _finish(session, caller, tried)
            event = Event("password.change", user_subject(row), f"ended {ended} other sessions")
            note_call(session, caller, event, address=address, now=now)
            return PasswordChangeReply(ended_sessions=ended)

        reply = await core.write(work)
        await Response(encode(reply), media_type="application/json")(scope, receive, send)


def _finish(session: Session, caller: Caller, tried: Try) -> int:
    """End the person's other sessions. Returns how many there were."""
    throttle.succeed(session, tried)
    assert caller.owner_id is not None  # noqa: S101 - a session is somebody's
    others = select(SignInSession.id).where(
        SignInSession.user_id == caller.owner_id, SignInSession.id != caller.key_id
    )
    found = session.scalars(others).all()
    for each in found:
        sessions.end(session, each, caller.owner_id)
    note_change(session, caller.owner_id)
    return len(found)


def require_new(password: str, field: str) -> None:
    """Refuse a new password that nobody should have."""
    try:
        require_good(password)
    except ValueError as error:
        raise invalid_field(field, str(error).removeprefix("a password ")) from None


def wrong_password(detail: str) -> Refusal:
    """Not 401: who is told so is signed in, or has the right code."""
    return Refusal(HTTPStatus.FORBIDDEN, "wrong_password", detail)
