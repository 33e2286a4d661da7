"""The OpenAPI 3.1 document, made of the rows of every area.

The schemas are pydantic's own, of the models that read bodies and write replies; refusals are
`application/problem+json` (RFC 9457), with the codes that each operation can give.
"""

import functools
import json
import re
from collections.abc import Iterable
from typing import Any, Final, Literal

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from agent import __version__
from agent.wire.base import Absent, Array, Tolerant
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import NetworkPayload
from agent.wire.problem import MEDIA_TYPE
from controlplane.accounts.http.cookies import NAME, SECURE_PREFIX
from controlplane.openapi.areas import AREAS
from controlplane.openapi.operation import Area, Operation

Json = dict[str, Any]
PAGE_SIZE: Final = {
    "name": "Prefer",
    "in": "header",
    "description": "`maxpagesize=N`: how many records a page should have (OData 4.01, RFC 7240).",
    "schema": {"type": "string"},
}

VERSION: Final = "v1"
"""The contract's version of the interface."""
REFERENCES: Final = "#/components/schemas/{model}"
SCHEME: Final = "apiKey"
COOKIE_SCHEME: Final = "sessionCookie"
SECURE_COOKIE_SCHEME: Final = "secureSessionCookie"
MARKUP: Final = re.compile(r"``([^`]+)``")

_DESCRIPTION: Final = f"""\
The reference service of the venue agent, {__version__}.

Every operation is a `POST` with a JSON object and answers 200 with JSON, or refuses with a problem
(RFC 9457) whose `code` says why. Lengths of strings are counted in UTF-16 code units, as JavaScript
does: a character outside the Basic Multilingual Plane is two. A key that is not listed is refused;
one that is optional is left out, never null. An object must not name a key twice.
"""
_WORDS: Final = {
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
_HEADERS: Final[dict[int, Json]] = {
    401: {"WWW-Authenticate": {"required": True, "schema": {"type": "string"}}},
    415: {"Accept-Post": {"required": True, "schema": {"type": "string"}}},
    429: {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}},
    503: {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}},
}
_DEPRECATION: Final[Json] = {
    "Deprecation": {
        "description": "Since when, as `@` and seconds since 1970 (RFC 9745).",
        "required": True,
        "schema": {"type": "string", "pattern": "^@[0-9]+$"},
    },
    "Link": {
        "description": 'What replaced the operation, as `rel="successor-version"` (RFC 8288).',
        "required": True,
        "schema": {"type": "string"},
    },
}


class Problem(Tolerant):
    """Why a call was refused."""

    title: str
    type: str
    instance: str
    status: int
    code: str
    detail: str
    errors: Absent[dict[str, Array[str]]] = None


class _Schemas(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False  # it would be the name once more

    def field_is_required(self, field: Any, total: bool) -> bool:
        # By its constant one of several shapes is known: a default is for our own code only.
        default = field["schema"]
        is_constant = default["type"] == "default" and default["schema"]["type"] == "literal"
        return is_constant or super().field_is_required(field, total)


@functools.cache
def document_bytes() -> bytes:
    """Return the document of this service as JSON."""
    return json.dumps(document(AREAS), ensure_ascii=False, separators=(",", ":")).encode()


def document(areas: Iterable[Area]) -> Json:
    """Return the document of these areas."""
    areas = tuple(areas)
    schemas, components = _schemas([each for area in areas for each in area.operations])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Venue control",
            "version": VERSION,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": area.name, "description": area.description} for area in areas],
        "security": [{SCHEME: []}, {COOKIE_SCHEME: []}, {SECURE_COOKIE_SCHEME: []}],
        "paths": {
            each.path: {"post": _operation(area, each, schemas)}
            for area in areas
            for each in area.operations
        },
        "components": {
            "schemas": components,
            "headers": {
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
            },
            "securitySchemes": {
                SCHEME: {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key. It reads; some operations need one with a write"
                    " grant, and each sees its organization and locations only.",
                },
                COOKIE_SCHEME: _cookie(NAME, "in plain HTTP"),
                SECURE_COOKIE_SCHEME: _cookie(SECURE_PREFIX + NAME, "over TLS"),
            },
        },
    }


def _cookie(name: str, where: str) -> Json:
    return {
        "type": "apiKey",
        "in": "cookie",
        "name": name,
        "description": f"The session of who is signed in, {where}. Who changes anything with it"
        " has to say by `Origin` that the call comes from this service's own pages.",
    }


def _schemas(operations: list[Operation]) -> tuple[dict[tuple[str, str], Json], Json]:
    """Return the schemas of bodies and replies by path and mode, and what they refer to."""
    inputs: list[tuple[tuple[str, str], Literal["validation"], TypeAdapter[Any]]] = []
    outputs: list[tuple[tuple[str, str], Literal["serialization"], TypeAdapter[Any]]] = []
    for each in operations:
        inputs.append(((each.path, "body"), "validation", TypeAdapter(each.body)))
        outputs.append(((each.path, "reply"), "serialization", TypeAdapter(each.reply)))
    others: list[tuple[tuple[str, str], Literal["validation"], TypeAdapter[Any]]] = [
        (("", each.__name__), "validation", TypeAdapter(each))
        for each in (NetworkPayload, ApplicationPayload, Problem)
    ]
    found, extra = TypeAdapter.json_schemas(
        [*inputs, *outputs, *others],
        by_alias=True,
        ref_template=REFERENCES,
        schema_generator=_Schemas,
    )
    components: Json = extra["$defs"]
    schemas = {key: schema for (key, _), schema in found.items()}
    for each in operations:
        if each.body_schema is not None:
            name = schemas[each.path, "body"]["$ref"].rpartition("/")[2]
            components[name] = each.body_schema(components[name])
    return schemas, {name: _readable(schema) for name, schema in sorted(components.items())}


def _operation(area: Area, operation: Operation, schemas: dict[tuple[str, str], Json]) -> Json:
    description = MARKUP.sub(r"`\1`", " ".join(operation.description.split()))
    grant = "Needs a write grant." if operation.writes else "Reads only."
    content: Json = {"application/json": {"schema": schemas[operation.path, "reply"]}}
    if operation.events:
        content["text/event-stream"] = {
            "schema": {"type": "string", "description": operation.events}
        }
    headers = _headers(200) | (_DEPRECATION if operation.successor else {})
    return {
        "operationId": f"{area.name}.{operation.name}",
        **({"deprecated": True} if operation.successor else {}),
        "tags": [area.name],
        "summary": description.partition(". ")[0].rstrip("."),
        "description": f"{description} {grant}".strip(),
        "parameters": [PAGE_SIZE] if "cursor" in operation.body.model_fields else [],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": schemas[operation.path, "body"]}},
        },
        "responses": {
            "200": {"description": "Done.", "headers": headers, "content": content},
            **{
                str(status): _refusal(status, codes)
                for status, codes in sorted(operation.codes().items())
            },
        },
    }


def _refusal(status: int, codes: list[str]) -> Json:
    narrower = {"properties": {"status": {"const": status}, "code": {"enum": codes}}}
    schema = {"allOf": [{"$ref": REFERENCES.format(model="Problem")}, narrower]}
    return {
        "description": f"{_WORDS[status]} Codes: {', '.join(f'`{code}`' for code in codes)}.",
        "headers": _headers(status),
        "content": {MEDIA_TYPE: {"schema": schema}},
    }


def _headers(status: int) -> Json:
    return {"Trace-Id": {"$ref": "#/components/headers/TraceId"}, **_HEADERS.get(status, {})}


def _readable(value: Any) -> Any:
    """Return a schema whose descriptions are Markdown."""
    if isinstance(value, dict):
        return {
            key: MARKUP.sub(r"`\1`", each)
            if key == "description" and isinstance(each, str)
            else _readable(each)
            for key, each in value.items()
        }
    return [_readable(each) for each in value] if isinstance(value, list) else value
