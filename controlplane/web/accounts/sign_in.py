"""Sign-in by e-mail address and password, sign-out, and the change of one's own password.

An unknown e-mail address and a wrong password get the same reply after the same amount of work, so
that a caller cannot find out which addresses have accounts.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from uuid import uuid4

from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.presentation.humanize import counted
from agent.wire.base import Message
from agent.wire.codec import encode
from agent.wire.device_operations import EmptyRequest
from controlplane.accounts import sessions, throttle
from controlplane.accounts.members.messages import PasswordChangeReply, PasswordChangeRequest
from controlplane.accounts.messages import SignInReply, SignInRequest, SignOutReply
from controlplane.accounts.passwords import require_valid_length
from controlplane.accounts.second_factor import pending
from controlplane.accounts.throttle import Attempt, network_of
from controlplane.accounts.users import end_grants, find_user, increment_permissions_version
from controlplane.operation import permissions
from controlplane.operation.audit_entries import Event, Subject, note_call, user_subject
from controlplane.operation.caller import Caller
from controlplane.operation.errors import Refusal, forbidden, validation_error
from controlplane.operation.fairness import spread
from controlplane.storage.account_tables import SignInSession, User
from controlplane.web.accounts import cookies
from controlplane.web.accounts.opening import Browser, note_refused, open_session
from controlplane.web.admission import Handler, address_of, admit, read_small, require_media_type
from controlplane.web.core import Core

SIGN_IN: Final = "/api/auth/sign-in/email"
SIGN_OUT: Final = "/api/auth/sign-out"
CHANGE_PASSWORD: Final = "/console/api/profile/change-password"  # noqa: S105 - a path
SECOND_FACTOR_REQUIRED: Final = "second_factor_required"


def sign_in_routes(core: Core) -> list[Route]:
    return [
        Route(SIGN_IN, Handler(core, sign_in_by_email)),
        Route(SIGN_OUT, Handler(core, sign_out)),
        Route(CHANGE_PASSWORD, Handler(core, change_password)),
    ]


async def sign_in_by_email(core: Core, request: Request) -> Response:
    """Create a session for an e-mail address and a password."""
    admit_without_credential(core, request)
    body = await read_small(core, request, SignInRequest)
    token, reply = await begin_session(core, request, body)
    return reply_with_cookie(core, request, reply, token)


async def sign_out(core: Core, request: Request) -> Response:
    """End the session of the browser. The reply is the same if the browser has no session."""
    require_media_type(request.headers)
    cookies.require_own_origin(core, request, requires_header=True)
    await read_small(core, request, EmptyRequest)
    await end_own_session(core, request)
    return reply_with_cookie(core, request, SignOutReply(signed_out=True), "")


async def end_own_session(core: Core, request: Request) -> None:
    """End the session of the browser, if it has one."""
    token, now = cookies.SESSION.token(core, request), core.clock()
    if token is not None:
        address = address_of(core, request)

        def work(session: Session) -> None:
            session_match = permissions.caller_of_session(
                session, permissions.hash_secret(token), now
            )
            if session_match is not None:
                caller, _ = session_match
                event = Event("session.sign_out", Subject("session", str(caller.key_id)))
                note_call(session, caller, event, address=address, now=now)
            sessions.end_by_token(session, token)

        await core.write(work)


async def change_password(core: Core, request: Request) -> Response:
    """Change the password of the signed-in user. End the user's other sessions and OAuth grants.

    As at sign-in, passwords are verified and hashed outside the database threads, and a wrong old
    password counts as a failed attempt.
    """
    caller = await admit(core, request, writes=True, requires_session=True)
    body = await read_small(core, request, PasswordChangeRequest)
    require_valid_password(body.new_password, "newPassword")
    user = await core.read(lambda session: session.get_one(User, caller.session_user_id))
    address, now = address_of(core, request), core.clock()
    attempt = await begin_attempt(core, user.email, address)
    network = network_of(address)
    if not await core.passwords.verify(
        user.password_hash, body.old_password, network, is_known=True
    ):
        refusal = wrong_password("the old password is wrong")
        event = Event("password.change", user_subject(user), refusal.detail, "refused")
        await core.write(
            lambda session: note_call(session, caller, event, address=address, now=now)
        )
        raise refusal
    password_hash = await core.passwords.hash(body.new_password, network, is_known=True)

    def work(session: Session) -> PasswordChangeReply:
        row = session.get_one(User, user.id, with_for_update=True)
        if row.password_hash != user.password_hash:
            raise wrong_password("the old password is wrong")  # the password was changed meanwhile
        row.password_hash = password_hash
        ended_count = _end_other_access(session, caller, attempt)
        detail = f"ended {counted(ended_count, 'other session')} and all OAuth grants"
        event = Event("password.change", user_subject(row), detail)
        note_call(session, caller, event, address=address, now=now)
        return PasswordChangeReply(ended_sessions=ended_count)

    return Response(encode(await core.write(work)), media_type="application/json")


def admit_without_credential(core: Core, request: Request) -> str:
    """Return the IP address of a caller without a credential.

    Raises a refusal if the call is not admitted.
    """
    require_media_type(request.headers)
    cookies.require_own_origin(core, request, requires_header=False)
    return count_attempt(core, request)


def count_attempt(core: Core, request: Request) -> str:
    """Count an attempt to sign in. Return the IP address of the caller.

    Raises a refusal if the limit of attempts is reached.
    """
    address = address_of(core, request)
    if wait_s := core.sign_ins.take(network_of(address)):
        raise too_many_attempts(spread(wait_s))
    return address


async def begin_attempt(core: Core, email: str, address: str) -> Attempt:
    """Record an attempt to enter a password or a code for the account of ``email``.

    Raises a refusal if the limit of failed attempts is reached.
    """
    now = core.clock()
    attempt = await core.write(lambda session: throttle.begin(session, email, address, now))
    if attempt.wait_s:
        raise too_many_attempts(attempt.wait_s)
    return attempt


def reply_with_cookie(core: Core, request: Request, reply: Message, token: str) -> Response:
    """Return a reply that sets the session cookie, or deletes it if ``token`` is empty."""
    headers = {"set-cookie": cookies.SESSION.header(core, request, token)}
    return Response(encode(reply), headers=headers, media_type="application/json")


async def begin_session(
    core: Core, request: Request, body: SignInRequest, return_query: str = ""
) -> tuple[str, SignInReply]:
    """Return the token of a new session, and the reply.

    ``return_query`` is the query of the OAuth page to which the user returns.

    Raises:
        Refusal: the sign-in fails, or needs a second factor (`second_factor_required`).
    """
    address = address_of(core, request)
    attempt = await begin_attempt(core, body.email, address)
    now = core.clock()

    def find(session: Session) -> tuple[User | None, bool]:
        user = find_user(session, body.email)
        # The queries are the same for known and unknown e-mail addresses.
        user_id = uuid4() if user is None else user.id
        return user, sessions.is_known_network(session, user_id, address, now)

    user, is_known = await core.read(find)
    is_right = await core.passwords.verify(
        None if user is None else user.password_hash,
        body.password,
        network_of(address),
        is_known=is_known,
    )
    try:
        if user is None or not is_right:
            raise sign_in_failed()
        return await _continue(
            core, request, user, body.password, attempt=attempt, return_query=return_query
        )
    except Refusal as refusal:
        if refusal.code != SECOND_FACTOR_REQUIRED:
            await note_refused(core, user, address, refusal.detail)
        raise


async def _continue(
    core: Core, request: Request, user: User, password: str, *, attempt: Attempt, return_query: str
) -> tuple[str, SignInReply]:
    """Open a session after a correct password, or begin the step of the second factor."""
    verified_hash, new_hash = user.password_hash, None
    if core.passwords.is_outdated(verified_hash):
        network = network_of(address_of(core, request))
        new_hash = await core.passwords.hash(password, network, is_known=True)
    browser, now = Browser.of(core, request), core.clock()

    def work(session: Session) -> tuple[str, SignInReply] | str:
        row = session.get(User, user.id, with_for_update=True)
        if row is None or row.password_hash != verified_hash:
            raise sign_in_failed()  # the password was changed meanwhile
        row.password_hash = new_hash or verified_hash
        if pending.is_needed(session, row.id):
            throttle.take_back(session, attempt)
            return pending.begin(session, row, return_query, now)
        throttle.succeed(session, attempt)
        return open_session(session, row, browser, now)

    result = await core.write(work)
    if isinstance(result, str):
        raise second_factor_required({"set-cookie": cookies.PENDING.header(core, request, result)})
    return result


def sign_in_failed() -> Refusal:
    """Return the refusal for an unknown e-mail address as well as for a wrong password."""
    return Refusal(
        HTTPStatus.UNAUTHORIZED,
        "sign_in_failed",
        "the e-mail address or the password is wrong",
        headers={"WWW-Authenticate": 'Bearer realm="remoteControl"'},
    )


def second_factor_required(headers: Mapping[str, str]) -> Refusal:
    """Return the refusal after a correct password. ``headers`` set the cookie of the next step."""
    return Refusal(
        HTTPStatus.FORBIDDEN,
        SECOND_FACTOR_REQUIRED,
        "the password is correct: continue with the second factor at /sign-in/code",
        headers=headers,
    )


def too_many_attempts(wait_s: int) -> Refusal:
    return Refusal(
        HTTPStatus.TOO_MANY_REQUESTS,
        "too_many_sign_ins",
        f"too many attempts to sign in: wait {wait_s} s",
        headers={"Retry-After": str(wait_s)},
    )


def _end_other_access(session: Session, caller: Caller, attempt: Attempt) -> int:
    """Count the attempt to change the password as successful, and end what the user's old password
    may have created: the user's other sessions and all OAuth grants.

    Returns the number of ended sessions.
    """
    throttle.succeed(session, attempt)
    user_id = caller.session_user_id
    other_sessions = select(SignInSession.id).where(
        SignInSession.user_id == user_id, SignInSession.id != caller.key_id
    )
    session_ids = session.scalars(other_sessions).all()
    for each in session_ids:
        sessions.end(session, each, user_id)
    end_grants(session, user_id)
    increment_permissions_version(session, user_id)
    return len(session_ids)


def require_valid_password(password: str, field: str) -> None:
    """Refuse a new password whose length is not valid. ``field`` is its field on the wire."""
    try:
        require_valid_length(password)
    except ValueError as error:
        reason = str(error)
        # The field's message follows the field's name, so it leaves out "a password".
        raise validation_error({field: (reason.removeprefix("a password "),)}, reason) from None


def wrong_password(detail: str) -> Refusal:
    """Return the refusal for a wrong password.

    Its status is 403 and not 401, because the user is signed in or has a valid invitation code.
    """
    return forbidden("wrong_password", detail)
