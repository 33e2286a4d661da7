"""The pages of OAuth: sign-in, consent, and errors. They have no scripts.

Other sites cannot frame these pages, and caches do not store them. The address of a page contains
the request of the client. Therefore browsers are instructed not to send this address to other sites
as a referrer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from controlplane.accounts.oauth.metadata import AUTHORIZE, SIGN_IN

if TYPE_CHECKING:
    from jinja2 import Template

POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src data:; form-action {forms}; "
    "base-uri 'none'; frame-ancestors 'none'"
)


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
        form_source: target of the reply, as a source of the Content Security Policy.
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
) -> Response:
    page = _template("oauth_sign_in.html").render(
        action=SIGN_IN, query=query, client=client, email=email, problem=problem
    )
    return _reply(page, "'self'", status, headers)


def consent_page(consent: Consent) -> Response:
    page = _template("oauth_consent.html").render(action=AUTHORIZE, consent=consent)
    return _reply(page, f"'self' {consent.form_source}", HTTPStatus.OK, None)


def refused_page(detail: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    page = _template("oauth_refused.html").render(detail=detail)
    return _reply(page, "'none'", status, headers)


def _reply(page: str, forms: str, status: int, headers: Mapping[str, str] | None) -> Response:
    fixed_fields = {
        "Content-Security-Policy": POLICY.format(forms=forms),
        "X-Frame-Options": "DENY",
        # With the policy no-referrer, browsers would send our own form with ``Origin: null``.
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
    return Response(page, status, {**(headers or {}), **fixed_fields}, "text/html")


@cache
def _template(name: str) -> "Template":
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    def load(name: str) -> str:
        return (files("controlplane.console") / name).read_text(encoding="utf-8")

    environment = Environment(
        loader=FunctionLoader(load), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template(name)
