"""Forms as browsers and programs send them: ``application/x-www-form-urlencoded``, and small."""

from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from controlplane.accounts.oauth.oauth_request import PARAMETERS_MAX
from controlplane.operation.errors import Refusal, invalid_request
from controlplane.web.bodies import read_body
from controlplane.web.core import Core

FORM: Final = "application/x-www-form-urlencoded"
FORM_MAX_BYTES: Final = 16_384
"""A page's own form holds the parameters once more, escaped."""


async def read_form(core: Core, request: Request) -> str:
    """Return the body of a form. Raises the refusal."""
    media_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if media_type != FORM:
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "invalid_request",
            f"the body must be {FORM}",
            headers={"Accept-Post": FORM},
        )
    body = await read_body(core, request, FORM_MAX_BYTES)
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise invalid_request("the body is not UTF-8") from None


def fields_of(form: str) -> dict[str, str]:
    """Return the fields of one of our own pages' forms; of a name that comes twice the last."""
    try:
        return dict(parse_qsl(form, max_num_fields=PARAMETERS_MAX, errors="strict"))
    except ValueError:
        raise invalid_request("the form has too many fields, or is not UTF-8") from None
