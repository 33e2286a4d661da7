"""The pages of OAuth: sign-in, consent, and errors. They have no scripts.

The address of a page contains the request of the client. Therefore browsers are instructed not to
send this address to other sites as a referrer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from starlette.responses import Response

from controlplane.accounts.oauth.metadata import AUTHORIZE, SIGN_IN
from controlplane.web.accounts.oidc.links import ProviderLink
from controlplane.web.accounts.plain_pages import render


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


def sign_in_page(
    query: str,
    *,
    client: str,
    email: str = "",
    problem: str = "",
    status: int = HTTPStatus.OK,
    headers: Mapping[str, str] | None = None,
    providers: Sequence[ProviderLink] = (),
) -> Response:
    return render(
        "oauth_sign_in.html",
        status=status,
        headers=headers,
        action=SIGN_IN,
        query=query,
        client=client,
        email=email,
        problem=problem,
        providers=providers,
    )


def consent_page(consent: Consent) -> Response:
    forms = f"'self' {consent.form_source}"
    return render("oauth_consent.html", forms=forms, action=AUTHORIZE, consent=consent)


def refused_page(detail: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return render(
        "oauth_refused.html", forms="'none'", status=status, headers=headers, detail=detail
    )
