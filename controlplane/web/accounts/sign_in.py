"""``POST /api/auth/sign-in/email`` and ``/api/auth/sign-out``.

An unknown address and a wrong password are answered alike, after the same work. Each sign-in makes
a session of its own and ends the one that the browser had, so that nobody can be given a session
beforehand.
"""

from http import HTTPStatus
from typing import Final
from uuid import UUID, uuid4

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agent.wire.codec import encode
from controlplane.accounts import sessions, throttle
from controlplane.accounts.messages import (
    SignedOut,
    SignInReply,
    SignInRequest,
    SignOutRequest,
    UserRecord,
)
from controlplane.accounts.names import organization_records
from controlplane.accounts.throttle import Try
from controlplane.accounts.users import find_user, memberships
from controlplane.operation import permissions
from controlplane.operation.audit_entries import (
    Actor,
    Credential,
    Event,
    Subject,
    note,
    note_call,
    person,
)
from controlplane.operation.bodies import parse_body
from controlplane.operation.errors import Refusal
from controlplane.operation.fairness import spread
from controlplane.storage.account_tables import User
from controlplane.web.accounts import cookies
from controlplane.web.admission import require_json, require_method
from controlplane.web.bodies import read_body
from controlplane.web.core import Core

SIGN_IN: Final = "/api/auth/sign-in/email"
SIGN_OUT: Final = "/api/auth/sign-out"
BODY_MAX_BYTES: Final = 4096


def sign_in_routes(core: Core) -> list[Route]:
    return [Route(SIGN_IN, SignInEndpoint(core)), Route(SIGN_OUT, SignOutEndpoint(core))]


class SignInEndpoint:
    def __init__(self, core: Core) -> None:
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        core, request = self._core, Request(scope, receive)
        require_method(request, "POST")
        require_json(request.headers)
        cookies.require_own_origin(core, request, is_needed=False)
        self.count(request)
        asked = parse_body(SignInRequest, await read_body(core, request, BODY_MAX_BYTES))
        token, reply = await self.sign_in(request, asked)
        response = Response(encode(reply), media_type="application/json")
        response.headers["set-cookie"] = cookies.cookie(core, request, token)
        await response(scope, receive, send)

    def count(self, request: Request) -> None:
        """Count a try of this address. Raises the refusal of one too many."""
        if wait_s := self._core.sign_ins.take(cookies.address_of(self._core, request)):
            raise too_many_tries(spread(wait_s))

    async def sign_in(self, request: Request, asked: SignInRequest) -> tuple[str, SignInReply]:
        """Return the token of a new session, and what is told of it. Raises the refusal."""
        address = cookies.address_of(self._core, request)
        tried = await self._begin(asked.email, address)
        user = await self._identify(asked.email, asked.password)
        try:
            if user is None:
                raise sign_in_failed()
            return await self._open(request, user, asked.password, tried)
        except Refusal as refusal:
            await self._note_refused(asked.email, address, refusal.detail)
            raise

    async def _begin(self, email: str, address: str) -> Try:
        now = self._core.clock()
        tried = await self._core.write(lambda session: throttle.begin(session, email, address, now))
        if tried.wait_s:
            raise too_many_tries(tried.wait_s)
        return tried

    async def _identify(self, email: str, password: str) -> User | None:
        user = await self._core.read(lambda session: find_user(session, email))
        known = None if user is None else user.password_hash
        is_right = await self._core.passwords.verify(known, password)
        return user if is_right else None

    async def _note_refused(self, email: str, address: str, reason: str) -> None:
        """Who is nobody costs the same questions, and is not named: people type passwords where an
        address is asked for. One too many is not noted: strangers would fill the log.
        """
        now = self._core.clock()

        def work(session: Session) -> None:
            user = find_user(session, email)
            nobody = Actor("unknown", None, "", address=address)
            actor = nobody if user is None else person(user, address=address)
            found = memberships(session, uuid4() if user is None else user.id)
            event = Event("session.sign_in", Subject("session", ""), reason, "refused")
            organization_id = found[0].organization_id if found else None
            note(session, actor, event, organization_id=organization_id, now=now)

        await self._core.write(work)

    async def _open(
        self, request: Request, user: User, password: str, tried: Try
    ) -> tuple[str, SignInReply]:
        core, now = self._core, self._core.clock()
        old = cookies.token_of(core, request)
        agent = request.headers.get("user-agent", "")
        address = cookies.address_of(core, request)
        verified = user.password_hash
        better = (
            await core.passwords.hash(password) if core.passwords.is_outdated(verified) else None
        )

        def work(session: Session) -> tuple[str, SignInReply]:
            row = session.get(User, user.id, with_for_update=True)
            if row is None or row.password_hash != verified:
                raise sign_in_failed()  # it is another one since
            throttle.succeed(session, tried)
            row.password_hash = better or verified
            if old is not None:
                sessions.end_by_token(session, old)
            organization_id = _first_organization(session, row.id)
            session_id, token = sessions.create(
                session,
                user_id=row.id,
                organization_id=organization_id,
                user_agent=agent,
                address=address,
                now=now,
            )
            actor = person(row, Credential("session", session_id), address)
            event = Event("session.sign_in", Subject("session", str(session_id)))
            note(session, actor, event, organization_id=organization_id, now=now)
            return token, _reply(session, row, session_id, organization_id)

        return await core.write(work)


class SignOutEndpoint:
    """Ends the session, if there is one; the reply is the same."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        core, request = self._core, Request(scope, receive)
        require_method(request, "POST")
        require_json(request.headers)
        cookies.require_own_origin(core, request, is_needed=True)
        parse_body(SignOutRequest, await read_body(core, request, BODY_MAX_BYTES))
        token = cookies.token_of(core, request)
        if token is not None:
            address = cookies.address_of(core, request)
            await core.write(lambda session: self._end(session, token, address))
        response = Response(encode(SignedOut(signed_out=True)), media_type="application/json")
        response.headers["set-cookie"] = cookies.cookie(core, request, "")
        await response(scope, receive, send)

    def _end(self, session: Session, token: str, address: str) -> None:
        now = self._core.clock()
        found = permissions.of_session(session, sessions.hash_token(token), now)
        if found is not None:
            event = Event("session.sign_out", Subject("session", str(found[0].key_id)))
            note_call(session, found[0], event, address=address, now=now)
        sessions.end_by_token(session, token)


def sign_in_failed() -> Refusal:
    """The same for an unknown address and a wrong password."""
    return Refusal(
        HTTPStatus.UNAUTHORIZED,
        "sign_in_failed",
        "the e-mail address or the password is wrong",
        headers={"WWW-Authenticate": 'Bearer realm="remoteControl"'},
    )


def too_many_tries(wait_s: int) -> Refusal:
    return Refusal(
        HTTPStatus.TOO_MANY_REQUESTS,
        "too_many_sign_ins",
        f"too many failed tries to sign in, wait {wait_s} s",
        headers={"Retry-After": str(wait_s)},
    )


def _first_organization(session: Session, user_id: UUID) -> str:
    """A session is of one organization at a time: the oldest, until another is chosen."""
    for each in memberships(session, user_id):
        return each.organization_id
    raise Refusal(
        HTTPStatus.FORBIDDEN, "no_membership", "the account is a member of no organization"
    )


def _reply(session: Session, user: User, session_id: UUID, organization_id: str) -> SignInReply:
    return SignInReply(
        session_id=session_id,
        user=UserRecord(id=user.id, email=user.email, name=user.name),
        organization_id=organization_id,
        organizations=organization_records(session, memberships(session, user.id)),
    )
