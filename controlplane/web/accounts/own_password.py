"""``POST /console/api/profile/change-password``: change the own password."""

from http import HTTPStatus
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

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
from controlplane.web.accounts.sign_in import BODY_MAX_BYTES, begin_attempt
from controlplane.web.admission import Handler, address_of, admit, read_body
from controlplane.web.core import Core

PATH: Final = "/console/api/profile/change-password"


def own_password_routes(core: Core) -> list[Route]:
    return [Route(PATH, Handler(core, change_password))]


async def change_password(core: Core, request: Request) -> Response:
    """Change the password of the signed-in user, and end the user's other sessions.

    As at sign-in, passwords are verified and hashed outside the database threads, and a wrong old
    password counts as a failed attempt.
    """
    caller = await admit(core, request, writes=True, of_person=True)
    body = parse_body(PasswordChangeRequest, await read_body(core, request, BODY_MAX_BYTES))
    require_new(body.new_password, "newPassword")
    user = await core.read(lambda session: session.get_one(User, caller.owner_id))
    address, now = address_of(core, request), core.clock()
    attempt = await begin_attempt(core, user.email, address)
    if not await core.passwords.verify(user.password_hash, body.old_password):
        refusal = wrong_password("the old password is wrong")
        event = Event("password.change", user_subject(user), refusal.detail, "refused")
        await core.write(
            lambda session: note_call(session, caller, event, address=address, now=now)
        )
        raise refusal
    password_hash = await core.passwords.hash(body.new_password)

    def work(session: Session) -> PasswordChangeReply:
        row = session.get_one(User, user.id, with_for_update=True)
        if row.password_hash != user.password_hash:
            raise wrong_password("the old password is wrong")  # it was changed in the meantime
        row.password_hash = password_hash
        ended = _finish(session, caller, attempt)
        event = Event("password.change", user_subject(row), f"ended {ended} other sessions")
        note_call(session, caller, event, address=address, now=now)
        return PasswordChangeReply(ended_sessions=ended)

    return Response(encode(await core.write(work)), media_type="application/json")


def _finish(session: Session, caller: Caller, attempt: Try) -> int:
    """End the other sessions of the user. Return their number."""
    throttle.succeed(session, attempt)
    assert caller.owner_id is not None  # noqa: S101 - a session has a user
    others = select(SignInSession.id).where(
        SignInSession.user_id == caller.owner_id, SignInSession.id != caller.key_id
    )
    found = session.scalars(others).all()
    for each in found:
        sessions.end(session, each, caller.owner_id)
    note_change(session, caller.owner_id)
    return len(found)


def require_new(password: str, field: str) -> None:
    """Refuse a weak new password."""
    try:
        require_good(password)
    except ValueError as error:
        raise invalid_field(field, str(error).removeprefix("a password ")) from None


def wrong_password(detail: str) -> Refusal:
    """Return a refusal. It is not 401, because the user is signed in or has a valid code."""
    return Refusal(HTTPStatus.FORBIDDEN, "wrong_password", detail)
