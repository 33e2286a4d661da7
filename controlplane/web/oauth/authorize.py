"""The pages on which a user gives a client access: the user signs in and then decides.

A decision is accepted only from our own page: the ``Origin`` header must name this service. The
page must also have been served to this session and for this request. This is checked with a proof
(a CSRF token) in the form. The proof is an HMAC of the request, with the token of the session as
the key. Therefore decisions from a page of a different site, or from a page that was served to a
different user, are refused.

The pages have no scripts. The address of a page contains the request of the client. Therefore
browsers are instructed not to send this address to other sites as a referrer.
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

from agent.presentation.humanize import counted
from controlplane.accounts import sessions
from controlplane.accounts.names import organization_records
from controlplane.accounts.oauth.metadata import AUTHORIZE, SIGN_IN
from controlplane.accounts.oauth.oauth_request import OAuthReply, OAuthRequest, read_parameters
from controlplane.accounts.oauth.redirects import form_source, host_of
from controlplane.accounts.sign_in_policy import memberships_of_caller
from controlplane.accounts.users import lock_user
from controlplane.operation import permissions
from controlplane.operation.audit_entries import Event, Subject, note_call
from controlplane.operation.caller import Caller
from controlplane.operation.errors import Refusal, foreign_origin, invalid_request
from controlplane.operation.fairness import RateLimit
from controlplane.storage.account_tables import User
from controlplane.storage.oauth_tables import OAuthClient
from controlplane.web.accounts import cookies, forms
from controlplane.web.accounts.oidc.links import provider_links
from controlplane.web.accounts.plain_pages import render
from controlplane.web.accounts.sign_in import SECOND_FACTOR_REQUIRED, count_attempt
from controlplane.web.admission import address_of
from controlplane.web.core import Core
from controlplane.web.oauth.requests import count_call, fields_of, issuer_of, read_form

_PROBLEMS: Final = {
    "sign_in_failed": "The e-mail address or the password is wrong.",
    "no_membership": "This account is a member of no organization.",
}


@dataclass(frozen=True, slots=True)
class Organization:
    """An organization on the consent page. ``locations`` is text about the accessible locations."""

    id: str
    name: str
    locations: str


@dataclass(frozen=True, slots=True)
class Consent:
    """The content of the consent page.

    Attributes:
        host: host to which the reply is sent, or None for a program on the user's machine.
        form_source: expression with which the Content Security Policy of the page permits the
            browser to send the reply to the client.
        chosen: id of the organization that is selected when the page opens.
        query: parameters of the client's request.
        proof: binds the form to the session and to ``query``.
    """

    client: str
    host: str | None
    form_source: str
    email: str
    organizations: Sequence[Organization]
    chosen: str
    query: str
    proof: str


async def authorize(limit: RateLimit, core: Core, request: Request) -> Response:
    """Show the page for ``GET``. Handle the decision of the user for ``POST``."""
    issuer = issuer_of(core, request)
    count_call(core, request, limit, "too many pages were opened")
    if request.method == "GET":
        return await _show(core, request, issuer)
    return await _decide(core, request, issuer)


async def _show(core: Core, request: Request, issuer: str) -> Response:
    oauth_request = _oauth_request("GET", issuer, request.url.query)
    token = cookies.SESSION.token(core, request)
    client, consent = await _find_client(core, oauth_request, token)
    if consent is None:
        return _sign_in_page(core, oauth_request, client)
    form_targets = f"'self' {consent.form_source}"
    return render("oauth_consent.html", forms=form_targets, action=AUTHORIZE, consent=consent)


async def _decide(core: Core, request: Request, issuer: str) -> Response:
    cookies.require_own_origin(core, request, requires_header=True)
    fields = fields_of(await read_form(core, request))
    oauth_request = _oauth_request("POST", issuer, fields.get("query", ""))
    token = cookies.SESSION.token(core, request)
    session_match = None if token is None else await cookies.find_session(core, token)
    if token is None or session_match is None:
        return _redirect_to_page(oauth_request)
    caller, _ = session_match
    if not hmac.compare_digest(proof(token, oauth_request.query), fields.get("proof", "").encode()):
        raise foreign_origin(
            "this decision does not belong to the page that you were shown: open the page again"
        )
    decision = fields.get("decision")
    if decision == "switch":  # the user wants to sign in with a different account
        await core.write(lambda session: sessions.end_by_token(session, token))
        return _redirect_to_page(oauth_request, cookies.SESSION.header(core, request, ""))
    organization_id = fields.get("organization", "") if decision == "allow" else None
    address = address_of(core, request)
    reply = await _answer(core, oauth_request, caller, organization_id, address)
    assert reply.location is not None  # noqa: S101 - replies to valid requests are redirects
    return forms.redirect(reply.location)


async def sign_in(core: Core, request: Request) -> Response:
    """Handle the form of the sign-in page, and redirect to the consent page."""
    issuer = issuer_of(core, request)
    cookies.require_own_origin(core, request, requires_header=True)
    count_attempt(core, request)
    fields = fields_of(await read_form(core, request))
    oauth_request = _oauth_request("GET", issuer, fields.get("query", ""))
    try:
        token = await forms.sign_in_with_fields(core, request, fields, oauth_request.query)
    except Refusal as refusal:
        if refusal.code == SECOND_FACTOR_REQUIRED:
            return forms.redirect_to_code_page(refusal)
        client, _ = await _find_client(core, oauth_request, None)
        email = fields.get("email", "")
        return _sign_in_page(core, oauth_request, client, email=email, refusal=refusal)
    return _redirect_to_page(oauth_request, cookies.SESSION.header(core, request, token))


async def _find_client(
    core: Core, oauth_request: OAuthRequest, token: str | None
) -> tuple[str, Consent | None]:
    """Return the name of the client, and the content of the consent page if a user is signed in.

    Raises a refusal if the request of the client is invalid.
    """
    now = core.clock()

    def work(session: Session) -> tuple[str, Consent | None]:
        from controlplane.accounts.oauth.authorization_server import Server

        client = Server(session, now, oauth_request.issuer).require_valid(oauth_request)
        if token is None:
            return client.name, None
        match = permissions.caller_of_session(session, permissions.hash_secret(token), now)
        if match is None:
            return client.name, None
        return client.name, _consent(session, oauth_request, client, match[0], token)

    return await core.read(work)


def _sign_in_page(
    core: Core,
    oauth_request: OAuthRequest,
    client: str,
    *,
    email: str = "",
    refusal: Refusal | None = None,
) -> Response:
    return render(
        "oauth_sign_in.html",
        refusal=refusal,
        action=SIGN_IN,
        query=oauth_request.query,
        client=client,
        email=email,
        problem="" if refusal is None else _PROBLEMS.get(refusal.code, refusal.detail),
        providers=provider_links(core.identity_providers, oauth_request.query),
    )


def proof(token: str, query: str) -> bytes:
    """Return the proof that binds a decision to a session and to the request in ``query``.

    It can be computed only with the token of the session.
    """
    return hmac.new(token.encode(), query.encode(), hashlib.sha256).hexdigest().encode()


async def _answer(
    core: Core,
    oauth_request: OAuthRequest,
    caller: Caller,
    organization_id: str | None,
    address: str,
) -> OAuthReply:
    """Return the reply for the client. ``organization_id`` is None if the user denied access."""
    now = core.clock()

    def work(session: Session) -> OAuthReply:
        from controlplane.accounts.oauth.authorization_server import ConsentingUser, Server

        server = Server(session, now, oauth_request.issuer)
        client = server.require_valid(oauth_request)
        user = None
        if organization_id is not None:
            lock_user(session, caller.session_user_id)
            memberships = memberships_of_caller(session, caller)
            if organization_id not in {each.organization_id for each in memberships}:
                raise invalid_request("you are not a member of the organization")
            user = ConsentingUser(caller.session_user_id, organization_id)
            event = Event("grant.create", Subject("client", client.id, client.name))
            note_call(
                session, caller, event,
                address=address, now=now, organization_id=organization_id,
            )  # fmt: skip
        return server.decide(oauth_request, user)

    return await core.write(work)


def _consent(
    session: Session, oauth_request: OAuthRequest, client: OAuthClient, caller: Caller, token: str
) -> Consent:
    user = session.get_one(User, caller.session_user_id)
    redirect_uri = oauth_request.parameters["redirect_uri"]
    records = organization_records(session, memberships_of_caller(session, caller))
    return Consent(
        client=client.name,
        host=host_of(redirect_uri),
        form_source=form_source(redirect_uri),
        email=user.email,
        organizations=tuple(
            Organization(record.id, record.name or record.id, _describe_locations(record.locations))
            for record in records
        ),
        chosen=caller.organization_id,
        query=oauth_request.query,
        proof=proof(token, oauth_request.query).decode(),
    )


def _describe_locations(locations: Sequence[str]) -> str:
    return counted(len(locations), "location") if locations else "every location"


def _oauth_request(method: str, issuer: str, query: str) -> OAuthRequest:
    return OAuthRequest(method, issuer, AUTHORIZE, *read_parameters(query))


def _redirect_to_page(oauth_request: OAuthRequest, cookie: str | None = None) -> Response:
    """Redirect to the authorization page. Its path is fixed: only the parameters vary."""
    headers = {"location": f"{AUTHORIZE}?{oauth_request.query}"}
    if cookie is not None:
        headers["set-cookie"] = cookie
    return Response(status_code=HTTPStatus.SEE_OTHER, headers=headers)
