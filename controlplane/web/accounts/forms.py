"""Sign-in by a form, without scripts, and signing out."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.wire.base import Array, Tolerant
from agent.wire.codec import encode
from agent.wire.device_operations import EmptyRequest
from controlplane.accounts.messages import SignInRequest
from controlplane.accounts.names import names_of_organizations
from controlplane.operation.bodies import parse_part
from controlplane.operation.errors import Refusal
from controlplane.operation.permissions import caller_of_session, hash_secret
from controlplane.storage.account_tables import User
from controlplane.web.accounts import cookies
from controlplane.web.accounts.oidc.links import ProviderRecord, provider_links
from controlplane.web.accounts.plain_pages import render
from controlplane.web.accounts.sign_in import (
    SECOND_FACTOR_REQUIRED,
    admit_without_credential,
    begin_session,
    count_attempt,
    end_own_session,
)
from controlplane.web.admission import FORM, Handler, read_small
from controlplane.web.core import Core
from controlplane.web.oauth.requests import fields_of, read_form

SIGN_IN_PAGE: Final = "/sign-in"
CODE_PAGE: Final = "/sign-in/code"
SIGN_OUT: Final = "/sign-in/end"
PROVIDERS: Final = "/api/auth/providers"
CONSOLE: Final = "/"


@dataclass(frozen=True, slots=True)
class Profile:
    """The signed-in user that the sign-in page shows.

    ``organization`` is the name of the organization, or its id if it has no name.
    """

    email: str
    role: str
    organization: str


class ProvidersReply(Tolerant):
    providers: Array[ProviderRecord]


def form_routes(core: Core) -> list[Route]:
    return [
        Route(SIGN_IN_PAGE, Handler(core, sign_in, FORM)),
        Route(SIGN_OUT, Handler(core, sign_out)),
        Route(PROVIDERS, Handler(core, providers)),
    ]


async def providers(core: Core, request: Request) -> Response:
    """Return the identity providers, for the sign-in form of the console."""
    admit_without_credential(core, request)
    await read_small(core, request, EmptyRequest)
    reply = ProvidersReply(providers=provider_links(core.identity_providers))
    return Response(encode(reply), media_type="application/json")


async def sign_in(core: Core, request: Request) -> Response:
    """Show the form for ``GET``. Sign in with a password for ``POST``."""
    if request.method != "POST":
        return _sign_in_page(core, await _profile(core, request))
    cookies.require_own_origin(core, request, requires_header=True)
    count_attempt(core, request)
    fields = fields_of(await read_form(core, request))
    try:
        token = await sign_in_with_fields(core, request, fields)
    except Refusal as refusal:
        if refusal.code == SECOND_FACTOR_REQUIRED:
            return redirect_to_code_page(refusal)
        return _sign_in_page(core, None, email=fields.get("email", ""), refusal=refusal)
    return redirect(CONSOLE, cookies.SESSION.header(core, request, token))


async def sign_out(core: Core, request: Request) -> Response:
    """End the session of the browser, and show the form."""
    cookies.require_own_origin(core, request, requires_header=True)
    await end_own_session(core, request)
    return redirect(SIGN_IN_PAGE, cookies.SESSION.header(core, request, ""))


async def sign_in_with_fields(
    core: Core, request: Request, fields: Mapping[str, str], return_query: str = ""
) -> str:
    """Begin a session with the e-mail address and the password in a form. Return its token.

    Raises the refusals of `begin_session`.
    """
    body = {"email": fields.get("email", ""), "password": fields.get("password", "")}
    sign_in_request = parse_part(SignInRequest, body)
    token, _ = await begin_session(core, request, sign_in_request, return_query)
    return token


def redirect_to_code_page(refusal: Refusal) -> Response:
    """Redirect to the form of the second factor, after a correct password."""
    return redirect(CODE_PAGE, refusal.headers["set-cookie"])


def redirect(location: str, *set_cookies: str) -> Response:
    """Return a redirect with status 303.

    With this status, browsers do not send the form again to ``location`` (RFC 9700, 4.12).
    """
    response = Response(status_code=HTTPStatus.SEE_OTHER, headers={"location": location})
    return with_cookies(response, *set_cookies)


def with_cookies(response: Response, *set_cookies: str) -> Response:
    """Return the response with these ``Set-Cookie`` headers."""
    for each in set_cookies:
        response.headers.append("set-cookie", each)
    return response


def _sign_in_page(
    core: Core, profile: Profile | None, *, email: str = "", refusal: Refusal | None = None
) -> Response:
    """Return the form, or the page of a signed-in user."""
    return render(
        "sign_in.html",
        refusal=refusal,
        action=SIGN_IN_PAGE,
        end_action=SIGN_OUT,
        profile=profile,
        email=email,
        problem=problem_text(refusal),
        providers=provider_links(core.identity_providers),
    )


def problem_text(refusal: Refusal | None) -> str:
    """Return the detail of a refusal as a sentence for a form, or "" without a refusal."""
    return "" if refusal is None else refusal.detail[:1].upper() + refusal.detail[1:]


async def _profile(core: Core, request: Request) -> Profile | None:
    """Return the user of the session in the cookie, or None if no session is valid."""
    token, now = cookies.SESSION.token(core, request), core.clock()
    if token is None:
        return None

    def work(session: Session) -> Profile | None:
        match = caller_of_session(session, hash_secret(token), now)
        if match is None:
            return None
        caller = match[0]
        organization_id = caller.organization_id
        names = names_of_organizations(session, (organization_id,))
        email = session.get_one(User, caller.session_user_id).email
        return Profile(email, caller.role or "", names.get(organization_id, organization_id))

    return await core.read(work)
