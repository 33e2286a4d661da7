"""The pages on which a person lets a program read: sign in, then decide.

The decision comes from our own page, which the Origin says, and from the page that this session was
shown for this very request, which a proof says that only the session's token makes. So a decision
that another site prepared, or that was shown to somebody else, counts nothing.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from controlplane.accounts import sessions
from controlplane.accounts.messages import SignInRequest
from controlplane.accounts.names import organization_records
from controlplane.accounts.oauth import grants
from controlplane.accounts.oauth.metadata import AUTHORIZE
from controlplane.accounts.oauth.oauth_request import OAuthReply, OAuthRequest, read_parameters
from controlplane.accounts.oauth.redirects import form_source, host_of
from controlplane.accounts.throttle import network_of
from controlplane.accounts.users import memberships
from controlplane.operation import permissions
from controlplane.operation.audit_entries import Event, Subject, note_call
from controlplane.operation.bodies import parse_part
from controlplane.operation.caller import Caller
from controlplane.operation.errors import Refusal, invalid_request, rate_limited
from controlplane.operation.fairness import spread
from controlplane.operation.rate_limit import RateLimit
from controlplane.storage.account_tables import User
from controlplane.storage.oauth_tables import OAuthClient
from controlplane.web.accounts import cookies
from controlplane.web.accounts.sign_in import SignInEndpoint
from controlplane.web.admission import require_method
from controlplane.web.core import Core
from controlplane.web.oauth.forms import fields_of, read_form
from controlplane.web.oauth.issuer import issuer_of
from controlplane.web.oauth.pages import (
    Consent,
    Organization,
    consent_page,
    sign_in_page,
)

PAGES_PER_S: Final = 2.0
PAGES_BURST: Final = 60
"""Of one address."""
_SAY_AGAIN: Final = {
    "sign_in_failed": "The e-mail address or the password is wrong.",
    "no_membership": "This account is a member of no organization.",
}

_ASKED_WRONGLY: Final = {
    "invalid_client": "The program is not registered here, or not any more.",
    "invalid_request": "The program wants its answer at an address that it has not registered.",
}
_UNKNOWN: Final = "The program asks for something that is not served here."


@dataclass(frozen=True, slots=True)
class Shown:
    """Who asks, and who is signed in, if anybody is."""

    client: str
    consent: Consent | None


class AuthorizeEndpoint:
    """``GET`` shows the page, ``POST`` takes what was decided on it."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._limit = RateLimit(PAGES_PER_S, PAGES_BURST, core.monotonic)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        core, request = self._core, Request(scope, receive)
        require_method(request, "GET", "POST")
        issuer = issuer_of(core, request)
        if wait_s := self._limit.take(network_of(cookies.address_of(core, request))):
            raise rate_limited(spread(wait_s))
        answer = self._show if request.method == "GET" else self._decide
        response = await answer(request, issuer)
        await response(scope, receive, send)

    async def _show(self, request: Request, issuer: str) -> Response:
        asked = _asked("GET", issuer, request.url.query)
        found = await look(self._core, asked, cookies.token_of(self._core, request))
        if isinstance(found, OAuthReply):
            return to_client(found)
        if found.consent is None:
            return sign_in_page(asked.query, client=found.client)
        return consent_page(found.consent)

    async def _decide(self, request: Request, issuer: str) -> Response:
        core = self._core
        cookies.require_own_origin(core, request, is_needed=True)
        fields = fields_of(await read_form(core, request))
        asked = _asked("POST", issuer, fields.get("query", ""))
        token = cookies.token_of(core, request)
        caller = None if token is None else await _signed_in(core, token)
        if token is None or caller is None:
            return _again(asked)
        if not hmac.compare_digest(proof(token, asked.query), fields.get("proof", "").encode()):
            raise Refusal(
                HTTPStatus.FORBIDDEN,
                "foreign_origin",
                "this decision is not of the page that you were shown",
            )
        decision = fields.get("decision")
        if decision == "switch":
            await core.write(lambda session: sessions.end_by_token(session, token))
            response = _again(asked)
            response.headers["set-cookie"] = cookies.cookie(core, request, "")
            return response
        organization_id = fields.get("organization", "") if decision == "allow" else None
        address = cookies.address_of(core, request)
        return to_client(await _answer(core, asked, caller, organization_id, address))


class SignInFormEndpoint:
    """Takes the form of the sign-in page, and leads back to the page of consent."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._sign_in = SignInEndpoint(core)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        core, request = self._core, Request(scope, receive)
        require_method(request, "POST")
        issuer = issuer_of(core, request)
        cookies.require_own_origin(core, request, is_needed=True)
        self._sign_in.count(request)
        fields = fields_of(await read_form(core, request))
        asked = _asked("GET", issuer, fields.get("query", ""))
        response = await self._try(request, asked, fields.get("email", ""), fields)
        await response(scope, receive, send)

    async def _try(
        self, request: Request, asked: OAuthRequest, email: str, fields: dict[str, str]
    ) -> Response:
        core = self._core
        try:
            body = {"email": email, "password": fields.get("password", "")}
            told = parse_part(SignInRequest, body)
            token, _ = await self._sign_in.sign_in(request, told)
        except Refusal as refusal:
            found = await look(core, asked, None)
            if isinstance(found, OAuthReply):
                return to_client(found)
            return sign_in_page(
                asked.query,
                client=found.client,
                email=email,
                problem=_SAY_AGAIN.get(refusal.code, refusal.detail),
                status=refusal.status,
                headers=refusal.headers,
            )
        response = _again(asked)
        response.headers["set-cookie"] = cookies.cookie(core, request, token)
        return response


async def look(core: Core, asked: OAuthRequest, token: str | None) -> Shown | OAuthReply:
    """Return what the page is to show, or the reply that refuses what the program asks for."""
    now = core.clock()

    def work(session: Session) -> Shown | OAuthReply:
        from controlplane.accounts.oauth.authorization_server import Server

        client = Server(session, now, asked.issuer).check(asked)
        if isinstance(client, OAuthReply):
            return client
        found = token and permissions.of_session(session, sessions.hash_token(token), now)
        if not token or not found:
            return Shown(client.name, None)
        return Shown(client.name, _consent(session, asked, client, found[0], token))

    return await core.read(work)


def to_client(reply: OAuthReply) -> Response:
    """Send the browser back with the answer; without an address that is the client's, say it.

    303: a browser that sent a form must not send it on (RFC 9700, 4.12).
    """
    if reply.location is None:
        # In our words only: who makes up the address must not write on our page.
        raise invalid_request(_ASKED_WRONGLY.get(str(reply.body.get("error")), _UNKNOWN))
    return Response(status_code=HTTPStatus.SEE_OTHER, headers={"location": reply.location})


def proof(token: str, query: str) -> bytes:
    """Return what only who has the session's token makes of a request."""
    return hmac.new(token.encode(), query.encode(), hashlib.sha256).hexdigest().encode()


async def _signed_in(core: Core, token: str) -> Caller | None:
    now, token_hash = core.clock(), sessions.hash_token(token)
    found = await core.read(lambda session: permissions.of_session(session, token_hash, now))
    return None if found is None else found[0]


async def _answer(
    core: Core, asked: OAuthRequest, caller: Caller, organization_id: str | None, address: str
) -> OAuthReply:
    """Return the answer to the program; ``organization_id`` None: nobody lets it read."""
    now = core.clock()

    def work(session: Session) -> OAuthReply:
        from controlplane.accounts.oauth.authorization_server import ConsentingUser, Server

        assert caller.owner_id is not None  # noqa: S101 - it is a session's
        server = Server(session, now, asked.issuer)
        checked = server.check(asked)
        if isinstance(checked, OAuthReply):
            return checked
        person = None
        if organization_id is not None:
            grants.lock_user(session, caller.owner_id)
            of = {each.organization_id for each in memberships(session, caller.owner_id)}
            if organization_id not in of:
                raise invalid_request("you are no member of the organization")
            person = ConsentingUser(caller.owner_id, organization_id)
            event = Event("grant.create", Subject("client", checked.id, checked.name))
            note_call(
                session, caller, event,
                address=address, now=now, organization_id=organization_id,
            )  # fmt: skip
        return server.decide(asked, person)

    return await core.write(work)


def _consent(
    session: Session, asked: OAuthRequest, client: OAuthClient, caller: Caller, token: str
) -> Consent:
    user = session.get_one(User, caller.owner_id)
    redirect_uri = asked.parameters["redirect_uri"]
    records = organization_records(session, memberships(session, user.id))
    return Consent(
        client=client.name,
        host=host_of(redirect_uri),
        form_source=form_source(redirect_uri),
        email=user.email,
        organizations=tuple(
            Organization(each.id, each.name or each.id, _places(each.locations)) for each in records
        ),
        chosen=caller.organization_id,
        query=asked.query,
        proof=proof(token, asked.query).decode(),
    )


def _places(locations: Sequence[str]) -> str:
    if not locations:
        return "every location"
    return f"{len(locations)} location{'s' if len(locations) > 1 else ''}"


def _asked(method: str, issuer: str, query: str) -> OAuthRequest:
    return OAuthRequest(method, issuer, AUTHORIZE, *read_parameters(query))


def _again(asked: OAuthRequest) -> Response:
    """Show the page anew. The address is made of what was read, so it can lead nowhere else."""
    location = f"{AUTHORIZE}?{asked.query}"
    return Response(status_code=HTTPStatus.SEE_OTHER, headers={"location": location})
