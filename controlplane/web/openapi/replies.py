"""How every OpenAPI document of the service describes refusals and headers."""

from collections.abc import Sequence
from typing import Final

from agent.wire.problem import MEDIA_TYPE
from controlplane.web.openapi.schemas import REFERENCES, Json

WORDS: Final = {
    400: "The body is not what the operation takes.",
    401: "There is no valid API key, nor a session.",
    403: "The API key or session may not do this.",
    404: "There is no such thing, or it is another organization's.",
    408: "The body came too slowly.",
    409: "It cannot be done as things are now.",
    413: "The body is too large.",
    415: "The body is not `application/json`.",
    429: "Too many calls.",
    500: "The service failed; its log knows more under the trace id.",
    503: "The database is busy, or too many streams are open.",
}
COMPONENT_HEADERS: Final[Json] = {
    "TraceId": {
        "description": "Names the call in the service's log.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    },
    "RetryAfter": {
        "description": "Seconds to wait.",
        "required": True,
        "schema": {"type": "integer", "minimum": 1},
    },
}
_HEADERS: Final[dict[int, Json]] = {
    401: {"WWW-Authenticate": {"required": True, "schema": {"type": "string"}}},
    415: {"Accept-Post": {"required": True, "schema": {"type": "string"}}},
    429: {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}},
    503: {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}},
}


def refusal(
    status: int, codes: Sequence[str], said: str = "", narrower: Json | None = None
) -> Json:
    """Return the description of a problem with one of ``codes``, or without a code.

    ``narrower`` are further schemas of its fields.
    """
    properties: Json = {"status": {"const": status}, **(narrower or {})}
    properties["code"] = {"enum": list(codes)} if codes else False
    schema = {
        "allOf": [{"$ref": REFERENCES.format(model="Problem")}, {"properties": properties}],
    }
    named = f" Codes: {', '.join(f'`{code}`' for code in codes)}." if codes else " No code."
    return {
        "description": (said or WORDS[status]) + named,
        "headers": headers_of(status),
        "content": {MEDIA_TYPE: {"schema": schema}},
    }


def headers_of(status: int) -> Json:
    """Return the headers of every reply with this status."""
    return {"Trace-Id": {"$ref": "#/components/headers/TraceId"}, **_HEADERS.get(status, {})}
