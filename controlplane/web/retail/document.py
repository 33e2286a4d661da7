"""The retail API's own OpenAPI 3.1 document, made of its rows (contract: retail public API)."""

import functools
import json
from collections.abc import Iterator
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent import __version__
from agent.wire.base import Array
from controlplane.operation.operation import Procedure
from controlplane.operation.storable_text import PATTERN
from controlplane.retail import routes
from controlplane.retail.limits import EXTERNAL_DEPTH_MAX
from controlplane.retail.models import (
    GivenExternalData,
    GivenGood,
    PageQuery,
    RefreshRequest,
    Shown,
    TokenRequest,
    Tokens,
)
from controlplane.retail.registry import OPERATIONS
from controlplane.web.admission import require_method
from controlplane.web.openapi.replies import COMPONENT_HEADERS, headers_of, refusal
from controlplane.web.openapi.schemas import (
    REFERENCES,
    Json,
    Key,
    SchemaOf,
    json_schemas,
    markdown,
    readable,
)

VERSION: Final = "1.0"
"""The contract's version of the interface."""
SCHEME: Final = "accessToken"
REASON: Final = "duplicate_external_data_id"
FREE_VALUE: Final = "FreeValue"

_DESCRIPTION: Final = f"""\
The retail API of the reference service of the venue agent, {__version__}.

An API key is exchanged for an access token, which names the company and what may be done. Reading
is `GET`; a query parameter that is not listed is refused. Refusals are problems (RFC 9457), but for
401, 403 and 404, which have no body. Lengths of strings are counted in characters.
"""
_WORDS: Final = {
    400: "A parameter or the body is not what the operation takes.",
    401: "There is no valid access token. No body.",
    403: "The API key may not do this, or not in this company. No body.",
    404: "There is no such thing, or it is another company's. No body.",
    503: "The service cannot answer now.",
}
_TOKENS_UNKNOWN: Final = "The secret is not valid. No body."
_FREE_VALUE_SCHEMA: Final[Json] = {
    "description": f"Any JSON, at most {EXTERNAL_DEPTH_MAX} lists and objects deep; its texts and"
    " names hold no control characters.",
    "anyOf": [
        {"type": "string", "pattern": PATTERN},
        {"type": ["number", "boolean", "null"]},
        {"type": "array", "items": {"$ref": REFERENCES.format(model=FREE_VALUE)}},
        {
            "type": "object",
            "propertyNames": {"pattern": PATTERN},
            "additionalProperties": {"$ref": REFERENCES.format(model=FREE_VALUE)},
        },
    ],
}


class Problem(Shown):
    """Why a call was refused. ``errors`` names fields, ``reason`` says more of a conflict."""

    title: str
    type: str
    instance: str
    trace_id: str
    status: int
    code: str
    detail: str
    reason: str
    errors: dict[str, Array[str]]


class DocumentEndpoint:
    """Serves the document, to anybody: it holds nothing but the interface."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        require_method(Request(scope, receive), "GET", "HEAD")
        headers = {"Cache-Control": "public, max-age=300"}
        response = Response(document_bytes(), media_type="application/json", headers=headers)
        await response(scope, receive, send)


@functools.cache
def document_bytes() -> bytes:
    """Return the document as JSON."""
    return json.dumps(document(), ensure_ascii=False, separators=(",", ":")).encode()


def document() -> Json:
    schemas, components = _schemas()
    paths: Json = {
        routes.TOKENS: {"post": _exchange("tokens.create", TokenRequest, schemas)},
        routes.REFRESH: {"post": _exchange("tokens.refresh", RefreshRequest, schemas)},
    }
    for each in OPERATIONS:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Venue control: retail API",
            "version": VERSION,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{SCHEME: []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "headers": COMPONENT_HEADERS,
            "securitySchemes": {
                SCHEME: {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": f"An access token, of `POST {routes.TOKENS}`.",
                }
            },
        },
    }


# ---------------------------------------------------------------------------- schemas


def _schemas() -> tuple[dict[Key, Json], Json]:
    """Return the schemas by path and method or mode, and the models that they refer to."""
    kinds: list[SchemaOf] = [
        SchemaOf(("", "Problem"), Problem),
        SchemaOf((routes.TOKENS, "asked"), TokenRequest),
        SchemaOf((routes.REFRESH, "asked"), RefreshRequest),
        SchemaOf(("", "Tokens"), Tokens, is_reply=True),
    ]
    for each in OPERATIONS:
        kinds.append(SchemaOf((each.path, f"{each.method} asked"), each.body))
        kinds.append(SchemaOf((each.path, f"{each.method} answered"), each.reply, is_reply=True))
    schemas, components = json_schemas(kinds)
    _narrow(components)
    # Parameters stand in the operations themselves.
    for each in OPERATIONS:
        if each.method == "GET":
            asked = schemas[each.path, "GET asked"]
            name = asked.get("$ref", "").rpartition("/")[2]
            schemas[each.path, "GET asked"] = components.get(name, asked)
    for name in {each.body.__name__ for each in OPERATIONS if each.body and not each.has_body}:
        components.pop(name, None)
    return schemas, {name: readable(schema) for name, schema in sorted(components.items())}


def _narrow(components: Json) -> None:
    """Say what the service refuses and the models' own schemas do not."""
    components["Problem"]["required"] = ["title", "type", "instance", "trace_id", "status"]
    components[FREE_VALUE] = _FREE_VALUE_SCHEMA
    components[GivenExternalData.__name__] |= {
        "propertyNames": {"pattern": PATTERN},
        "additionalProperties": {"$ref": REFERENCES.format(model=FREE_VALUE)},
    }
    # The only variation has no name, each of several has one.
    variations = components[GivenGood.__name__]["properties"]["variations"]
    variations["minItems"] = 1
    variations["anyOf"] = [
        {"maxItems": 1, "items": {"properties": {"name": False}}},
        {"minItems": 2, "items": {"required": ["name"]}},
    ]


# ---------------------------------------------------------------------------- operations


def _operation(operation: Procedure, schemas: dict[Key, Json]) -> Json:
    description = markdown(" ".join(operation.description.split()))
    asked = schemas[operation.path, f"{operation.method} asked"]
    answered = schemas[operation.path, f"{operation.method} answered"]
    described: Json = {
        "operationId": operation.name,
        "summary": description.partition(". ")[0].rstrip("."),
        "description": description,
        "responses": {
            str(operation.status.value): _success(answered),
            **_refusals(
                has_body=operation.writes,
                has_cursor=operation.body is not None and issubclass(operation.body, PageQuery),
                has_id=operation.writes or "{" in operation.path,
            ),
        },
    }
    if operation.writes:
        described["requestBody"] = _body(asked)
        reason = {"reason": {"const": REASON}}
        described["responses"]["409"] = refusal(409, ["existing_entity_conflict"], "", reason)
    else:
        described["parameters"] = list(_parameters(operation.path, asked))
    return described


def _exchange(
    name: str, body: type[TokenRequest] | type[RefreshRequest], schemas: dict[Key, Json]
) -> Json:
    path = routes.TOKENS if body is TokenRequest else routes.REFRESH
    secret = "an API key" if body is TokenRequest else "a refresh token, which is used once"
    refused = _refusals(has_body=True)
    del refused["403"]
    refused["401"]["description"] = _TOKENS_UNKNOWN
    return {
        "operationId": name,
        "summary": f"Return an access token for {secret}",
        "security": [],
        "requestBody": _body(schemas[path, "asked"]),
        "responses": {"200": _success(schemas["", "Tokens"]), **refused},
    }


def _parameters(path: str, asked: Json) -> Iterator[Json]:
    for name, schema in asked["properties"].items():
        is_in_path = f"{{{name}}}" in path
        yield {
            "name": name,
            "in": "path" if is_in_path else "query",
            "required": is_in_path or name in asked.get("required", ()),
            "schema": schema,
        }


def _body(schema: Json) -> Json:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _success(schema: Json) -> Json:
    content: Json = {"application/json": {"schema": schema}}
    return {"description": "Done.", "headers": headers_of(200), "content": content}


def _refusals(*, has_body: bool, has_cursor: bool = False, has_id: bool = False) -> Json:
    empty = [401, 403, *([404] if has_id else [])]
    cursor = ["invalid_cursor"] if has_cursor else []
    problems: dict[int, list[str]] = {
        400: [*cursor, *(["invalid_request"] if has_body else []), "validation_error"],
        429: ["unexpected_error"],
        500: ["internal_server_error"],
        503: [],
    }
    if has_body:
        problems |= {status: ["invalid_request"] for status in (408, 413, 415)}
    found = {
        status: {"description": _WORDS[status], "headers": headers_of(status)} for status in empty
    }
    for status, codes in problems.items():
        found[status] = refusal(status, codes, _WORDS.get(status, ""))
    return {str(status): said for status, said in sorted(found.items())}
