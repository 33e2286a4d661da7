"""Requests of OAuth clients and of our pages: the issuer, the limits and the forms.

The issuer is the configured origin (``--origin``), or the origin of the request if none is
configured. Without TLS, OAuth is only available on the machine of the service.
"""

import ipaddress
import re
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request

from controlplane.accounts.oauth.oauth_request import PARAMETERS_MAX
from controlplane.operation.errors import Refusal, invalid_request, rate_limited
from controlplane.operation.fairness import RateLimit, spread
from controlplane.web.admission import client_network, read_body, require_media_type
from controlplane.web.core import Core

FORM_MAX_BYTES: Final = 16_384
"""Maximum size of a form. The forms of our pages contain all parameters of a request as one escaped
field."""
_HOST: Final = re.compile(r"[a-z0-9.-]{1,253}(:[0-9]{1,5})?|\[[0-9a-f:.]{2,45}\](:[0-9]{1,5})?")


def issuer_of(core: Core, request: Request) -> str:
    """Return the issuer (RFC 8414, section 2).

    Raises:
        Refusal: the connection is neither encrypted nor local.
    """
    origin = core.settings.origin or f"{request.url.scheme}://{request.headers.get('host', '')}"
    origin = origin.lower()
    if not _is_encrypted_or_local(origin):
        raise Refusal(
            HTTPStatus.BAD_REQUEST,
            "insecure_transport",
            "OAuth needs https: start the service with --origin https://...",
        )
    return origin


def count_call(
    core: Core, request: Request, limit: RateLimit, problem: str = "too many requests"
) -> None:
    """Count a call from the network of the client. Raises a refusal if the limit is reached.

    ``problem`` is the beginning of the refusal's text.
    """
    if wait_s := limit.take(client_network(core, request)):
        raise rate_limited(spread(wait_s), f"{problem} from your network")


async def read_form(core: Core, request: Request) -> str:
    """Return the form in a body. Raises a refusal if the body is not a form in UTF-8."""
    require_media_type(request.headers, "application/x-www-form-urlencoded")
    body = await read_body(core, request, FORM_MAX_BYTES)
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise invalid_request("the body is not UTF-8") from None


def fields_of(form: str) -> dict[str, str]:
    """Return the fields of a form of our pages. If a field is repeated, its last value is used."""
    try:
        return dict(parse_qsl(form, max_num_fields=PARAMETERS_MAX, errors="strict"))
    except ValueError:
        raise invalid_request("the form has too many fields, or is not UTF-8") from None


def _is_encrypted_or_local(origin: str) -> bool:
    parts = urlsplit(origin) if _HOST.fullmatch(origin.partition("://")[2]) else None
    if parts is None or not parts.hostname:
        return False
    if parts.scheme == "https" or parts.hostname == "localhost":
        return True
    try:
        return ipaddress.ip_address(parts.hostname).is_loopback
    except ValueError:
        return False
