"""The request bodies and the replies of the support operations as JSON Schema.

The request bodies are transcribed from the contract. The replies are transcribed from
docs/support.md, because the contract does not show them. This module shares no code with the
service.
"""

import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final

import httpx2
from jsonschema import Draft202012Validator, FormatChecker

from tests.fakes.schemas.compiled import CompiledValidator
from tests.fakes.schemas.contract import UUID, NotFittingError, Schema, array, exact, null_or

PREFIX: Final = "/api/public/v1/support/"
NULL: Schema = {"type": "null"}
NONEMPTY_TEXT: Schema = {"type": "string", "minLength": 1}
# Python's `$` also matches before a newline at the end, and JSON Schema has no `\Z`. So a lookahead
# matches the end of the text.
TIMESTAMP: Schema = {"type": "string", "format": "date-time", "pattern": r"Z(?![\s\S])"}
TOKEN: Schema = {"type": "string", "pattern": "^[A-Za-z0-9_-]{43}$", "maxLength": 43}

TOKEN_BODY = exact({"token": TOKEN})
CONFIRM_BODY = exact({"token": TOKEN, "organizationId": NONEMPTY_TEXT})


def _link(state: str, organization: Schema, ended: Schema, more: Mapping[str, Schema]) -> Schema:
    """Return the schema of a link. ``organization`` is NULL if the link was never confirmed.

    ``ended`` is the schema of ``disconnectedAt``, and ``more`` has further fields.
    """
    is_confirmed = organization != NULL
    return exact(
        {
            "id": UUID,
            "channel": NONEMPTY_TEXT,
            "requestedBy": NONEMPTY_TEXT,
            "requestedAt": TIMESTAMP,
            "expiresAt": TIMESTAMP,
            "state": {"const": state},
            "organizationId": organization,
            "confirmedAt": TIMESTAMP if is_confirmed else NULL,
            "confirmedById": UUID if is_confirmed else NULL,
            "disconnectedAt": ended,
            **more,
        }
    )


def _link_in_any_state(more: Mapping[str, Schema]) -> Schema:
    return {
        "oneOf": [
            _link("waiting", NULL, NULL, more),
            _link("expired", NULL, NULL, more),
            _link("confirmed", NONEMPTY_TEXT, NULL, more),
            _link("disconnected", NULL, TIMESTAMP, more),
            _link("disconnected", NONEMPTY_TEXT, TIMESTAMP, more),
        ]
    }


LINK = _link_in_any_state({})
INSPECTION = _link_in_any_state(
    {"organizations": array(exact({"id": NONEMPTY_TEXT, "name": null_or(NONEMPTY_TEXT)}))}
)
CONTACT = exact(
    {
        "channels": array(
            exact(
                {
                    "kind": NONEMPTY_TEXT,
                    "address": NONEMPTY_TEXT,
                    "hours": null_or(NONEMPTY_TEXT),
                }
            ),
            20,
        ),
        "links": array(_link("confirmed", NONEMPTY_TEXT, NULL, {}), 100),
    }
)
OPERATIONS: Final[Mapping[str, tuple[Schema | None, Schema]]] = {
    "contact": (None, CONTACT),
    "inspect": (TOKEN_BODY, INSPECTION),
    "confirm": (CONFIRM_BODY, LINK),
    "disconnect": (TOKEN_BODY, LINK),
}
"""The schemas of the request body and of the reply body of each operation. None means that the
operation needs no request body."""
REFUSALS: Final[Mapping[str, int]] = {
    "manager_required": 403,
    "token_not_found": 404,
    "token_used": 409,
    "token_expired": 409,
}
"""The status of each refusal that docs/support.md describes, by code."""


def require_fitting(reply: httpx2.Response) -> None:
    """Raise NotFittingError if a reply of a support operation does not match its description."""
    request = reply.request
    name = request.url.path.removeprefix(PREFIX)
    if not request.url.path.startswith(PREFIX) or name not in OPERATIONS:
        return
    if reply.status_code >= 400:
        code = reply.json().get("code")
        if REFUSALS.get(code, reply.status_code) != reply.status_code:
            raise NotFittingError(f"{name} answered {code} with {reply.status_code}")
        return
    if (request.method, reply.status_code) != ("POST", 200):
        raise NotFittingError(f"{request.method} {name} answered {reply.status_code}")
    if reply.headers["content-type"] != "application/json":
        raise NotFittingError(f"{name} has the content type {reply.headers['content-type']}")
    for mistake in mistakes(name, reply.json()):
        raise NotFittingError(f"{name}: {mistake}")


def mistakes(name: str, body: Any, *, is_request: bool = False) -> Iterator[str]:
    """Yield each error in the body of a reply, or of a request if ``is_request``."""
    return _validator(name, is_request=is_request).mistakes(body)


@functools.cache
def _validator(name: str, *, is_request: bool) -> CompiledValidator:
    schema = OPERATIONS[name][0 if is_request else 1] or {}
    return CompiledValidator(Draft202012Validator(schema, format_checker=FormatChecker()))
