"""The OpenAPI 3.1 document, made of the rows of every area.

The schemas are pydantic's own, of the models that read bodies and write replies; refusals are
`application/problem+json` (RFC 9457), with the codes that each operation can give.
"""

import functools
import json
from collections.abc import Iterable
from typing import Final

from agent import __version__
from agent.wire.base import Absent, Array, Tolerant
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import NetworkPayload
from controlplane.operation.operation import Area, Operation
from controlplane.web.accounts.cookies import NAME, SECURE_PREFIX
from controlplane.web.openapi.areas import AREAS
from controlplane.web.openapi.replies import COMPONENT_HEADERS, headers_of, refusal
from controlplane.web.openapi.schemas import Json, SchemaOf, json_schemas, markdown, readable

PAGE_SIZE: Final = {
    "name": "Prefer",
    "in": "header",
    "description": "`maxpagesize=N`: how many records a page should have (OData 4.01, RFC 7240).",
    "schema": {"type": "string"},
}

VERSION: Final = "v1"
"""The contract's version of the interface."""
SCHEME: Final = "apiKey"
COOKIE_SCHEME: Final = "sessionCookie"
SECURE_COOKIE_SCHEME: Final = "secureSessionCookie"

_DESCRIPTION: Final = f"""\
The reference service of the venue agent, {__version__}.

Every operation is a `POST` with a JSON object, `support.contact` with nothing, and answers 200 with
JSON, or refuses with a problem (RFC 9457) whose `code` says why. Lengths of strings are counted in
UTF-16 code units, as JavaScript does: a character outside the Basic Multilingual Plane is two. A
key that is not listed is refused; one that is optional is left out, never null. An object must not
name a key twice.
"""
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
            "headers": COMPONENT_HEADERS,
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
    wanted = [
        *(SchemaOf((each.path, "body"), each.body) for each in operations if each.body),
        *(SchemaOf((each.path, "reply"), each.reply, is_reply=True) for each in operations),
        *(
            SchemaOf(("", each.__name__), each)
            for each in (NetworkPayload, ApplicationPayload, Problem)
        ),
    ]
    schemas, components = json_schemas(wanted)
    for each in operations:
        if each.body_schema is not None:
            name = schemas[each.path, "body"]["$ref"].rpartition("/")[2]
            components[name] = each.body_schema(components[name])
    return schemas, {name: readable(schema) for name, schema in sorted(components.items())}


def _operation(area: Area, operation: Operation, schemas: dict[tuple[str, str], Json]) -> Json:
    description = markdown(" ".join(operation.description.split()))
    grant = "Needs a write grant." if operation.writes else "Reads only."
    content: Json = {"application/json": {"schema": schemas[operation.path, "reply"]}}
    if operation.events:
        content["text/event-stream"] = {
            "schema": {"type": "string", "description": operation.events}
        }
    headers = headers_of(200) | (_DEPRECATION if operation.successor else {})
    return {
        "operationId": f"{area.name}.{operation.name}",
        **({"deprecated": True} if operation.successor else {}),
        "tags": [area.name],
        "summary": description.partition(". ")[0].rstrip("."),
        "description": f"{description} {grant}".strip(),
        "parameters": [PAGE_SIZE] if _is_paged(operation) else [],
        **({"requestBody": _body(schemas[operation.path, "body"])} if operation.body else {}),
        "responses": {
            "200": {"description": "Done.", "headers": headers, "content": content},
            **{
                str(status): refusal(status, codes)
                for status, codes in sorted(operation.codes().items())
            },
        },
    }


def _is_paged(operation: Operation) -> bool:
    return operation.body is not None and "cursor" in operation.body.model_fields


def _body(schema: Json) -> Json:
    return {"required": True, "content": {"application/json": {"schema": schema}}}
