"""OpenAPI 3.1 documents, generated from the operations of an interface.

The schemas are generated from the models that parse bodies and encode replies. Their descriptions
are Markdown. Refusals are `application/problem+json` (RFC 9457), and each operation lists the codes
of its refusals.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from agent.wire.base import Absent, Array, Tolerant
from agent.wire.problem import MEDIA_TYPE
from controlplane.operation.operation import Area, Operation

Json = dict[str, Any]
Schemas = dict[tuple[Any, JsonSchemaMode], Json]
"""JSON Schemas by type and mode."""
REFERENCES: Final = "#/components/schemas/{model}"
_MARKUP: Final = re.compile(r"``([^`]+)``")
_DESCRIPTIONS: Final = {
    400: "A parameter or the body is invalid.",
    401: "The API key or session is missing or invalid.",
    403: "The API key or session lacks the required permission.",
    404: "The object does not exist, or belongs to another organization.",
    408: "The body arrived too slowly.",
    409: "The request conflicts with the current state.",
    413: "The body is too large.",
    415: "The body is not `application/json`.",
    429: "Too many calls.",
    500: "The service failed. The trace id names the entry in its log.",
    503: "The database is busy, or too many streams are open.",
}
_PAGE_SIZE: Final = {
    "name": "Prefer",
    "in": "header",
    "description": "`maxpagesize=N`: preferred number of records in a page (OData 4.01, RFC 7240).",
    "schema": {"type": "string"},
}
_COMPONENT_HEADERS: Final[Json] = {
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
_DEPRECATION: Final[Json] = {
    "Deprecation": {
        "description": "Time of the deprecation, as `@` and seconds since 1970 (RFC 9745).",
        "required": True,
        "schema": {"type": "string", "pattern": "^@[0-9]+$"},
    },
    "Link": {
        "description": "The operation that replaces this one, as"
        ' `rel="successor-version"` (RFC 8288).',
        "required": True,
        "schema": {"type": "string"},
    },
}
_HEADERS: Final[dict[int, Json]] = {
    401: {"WWW-Authenticate": {"required": True, "schema": {"type": "string"}}},
    415: {"Accept-Post": {"required": True, "schema": {"type": "string"}}},
    429: {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}},
    503: {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}},
}


class Problem(Tolerant):
    """A refusal. ``errors`` lists messages by field. ``reason`` explains a conflict."""

    title: str
    type: str
    instance: str
    trace_id: str = Field(alias="trace_id")
    status: int
    detail: str
    code: Absent[str] = None
    reason: Absent[str] = None
    errors: Absent[dict[str, Array[str]]] = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Interface:
    """An interface with its own OpenAPI document.

    Attributes:
        security: the security schemes by name. Each of them is sufficient for a call.
        models: further models whose schemas are components of the document.
        components: further components of the document: schemas by name.
        descriptions: descriptions of statuses that replace the usual descriptions.
        statuses_without_body: statuses whose replies have no body.
        code_of: takes the status and the code of a refusal, and returns the code that is sent.
        reasons: values of ``reason`` by code.
    """

    title: str
    version: str
    description: str
    areas: Sequence[Area]
    security: Json
    models: Collection[type[Any]] = ()
    components: Json = field(default_factory=dict)
    descriptions: Mapping[int, str] = field(default_factory=dict)
    statuses_without_body: Collection[int] = ()
    code_of: Callable[[int, str], str | None] = lambda _status, code: code
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def operations(self) -> Iterator[Operation]:
        return (operation for area in self.areas for operation in area.operations)


def document(interface: Interface) -> Json:
    """Return the document of an interface."""
    schemas, components = _schemas(interface)
    paths: Json = {}
    for area in interface.areas:
        for operation in area.operations:
            operation_object = _operation(interface, area, operation, schemas)
            paths.setdefault(operation.path, {})[operation.method.lower()] = operation_object
    tags = [{"name": area.name, "description": area.description} for area in interface.areas]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": interface.title,
            "version": interface.version,
            "description": interface.description,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [tag for tag in tags if tag["name"]],
        "security": [{scheme: []} for scheme in interface.security],
        "paths": paths,
        "components": {
            "schemas": components,
            "headers": _COMPONENT_HEADERS,
            "securitySchemes": interface.security,
        },
    }


def _schemas(interface: Interface) -> tuple[Schemas, Json]:
    """Return the schemas of bodies and replies, and the components by name.

    The mode of a schema is ``validation`` for values that the service accepts, and
    ``serialization`` for values that it sends.
    """
    operations = list(interface.operations)
    bodies = [operation.body for operation in operations if operation.body is not None]
    kinds: list[tuple[Any, JsonSchemaMode]] = [
        *((model, "validation") for model in (Problem, *interface.models, *bodies)),
        *((operation.reply, "serialization") for operation in operations),
    ]
    adapters = [(kind, mode, TypeAdapter(kind)) for kind, mode in dict.fromkeys(kinds)]
    schemas, extra = TypeAdapter.json_schemas(
        adapters, by_alias=True, ref_template=REFERENCES, schema_generator=_Schemas
    )
    components: Json = extra["$defs"] | interface.components
    names = {body: schemas[body, "validation"]["$ref"].rpartition("/")[2] for body in bodies}
    for operation in operations:
        if operation.body is not None and operation.body_schema is not None:
            name = names[operation.body]
            components[name] = operation.body_schema(components[name])
    for body in {operation.body for operation in operations if operation.method == "GET"}:
        if body is not None:  # The fields of this body are parameters, so it is no component.
            schemas[body, "validation"] = components.pop(names[body])
    return schemas, {name: with_markdown(schema) for name, schema in sorted(components.items())}


def _operation(interface: Interface, area: Area, operation: Operation, schemas: Schemas) -> Json:
    description = markdown(" ".join(operation.description.split()))
    grant = "Needs a write grant." if operation.writes else "Reads only."
    if operation.is_public:
        grant = "Needs no credential."
    reply = schemas[operation.reply, "serialization"]
    content: Json = {"application/json": {"schema": reply}}
    if operation.events:
        content["text/event-stream"] = {
            "schema": {"type": "string", "description": operation.events}
        }
    headers = _headers_of(200) | (_DEPRECATION if operation.successor else {})
    operation_object: Json = {
        "operationId": f"{area.name}.{operation.name}".lstrip("."),
        "summary": description.partition(". ")[0].rstrip("."),
        "description": f"{description} {grant}",
        "parameters": [_PAGE_SIZE] if operation.is_paged else [],
        "responses": {
            str(operation.status.value): {
                "description": "The operation succeeded.",
                "headers": headers,
                "content": content,
            },
            **{
                str(status): _refusal(interface, status, codes)
                for status, codes in operation.codes().items()
            },
        },
    }
    if area.name:
        operation_object["tags"] = [area.name]
    if operation.successor:
        operation_object["deprecated"] = True
    if operation.is_public:
        operation_object["security"] = []
    if operation.body is not None:
        body = schemas[operation.body, "validation"]
        if operation.has_body:
            body_content = {"application/json": {"schema": body}}
            operation_object["requestBody"] = {"required": True, "content": body_content}
        else:
            operation_object["parameters"] = list(_parameters(operation.path, body))
    return operation_object


def _parameters(path: str, model: Json) -> Iterator[Json]:
    """Yield the parameters of a GET operation, from the schema of its model."""
    for name, schema in model["properties"].items():
        is_in_path = f"{{{name}}}" in path
        yield {
            "name": name,
            "in": "path" if is_in_path else "query",
            "required": is_in_path or name in model.get("required", ()),
            "schema": schema,
        }


def _refusal(interface: Interface, status: int, codes: Iterable[str]) -> Json:
    """Return the description of the refusals with this status and one of ``codes``.

    If the interface sends no code with this status, the schema permits no ``code``.
    """
    description = interface.descriptions.get(status, _DESCRIPTIONS[status])
    if status in interface.statuses_without_body:
        return {"description": description, "headers": _headers_of(status)}
    sent_codes = sorted(set(filter(None, (interface.code_of(status, code) for code in codes))))
    properties: Json = {"status": {"const": status}, "code": False}
    for code in interface.reasons.keys() & set(sent_codes):
        properties["reason"] = {"const": interface.reasons[code]}
    narrowed_schema: Json = {"properties": properties}
    codes_text = "No code."
    if sent_codes:
        properties["code"] = {"enum": sent_codes}
        narrowed_schema["required"] = ["code"]
        codes_text = f"Codes: {', '.join(f'`{code}`' for code in sent_codes)}."
    schema = {"allOf": [{"$ref": REFERENCES.format(model=Problem.__name__)}, narrowed_schema]}
    return {
        "description": f"{description} {codes_text}",
        "headers": _headers_of(status),
        "content": {MEDIA_TYPE: {"schema": schema}},
    }


def _headers_of(status: int) -> Json:
    """Return the headers of every reply with this status."""
    return {"Trace-Id": {"$ref": "#/components/headers/TraceId"}, **_HEADERS.get(status, {})}


# ---------------------------------------------------------------------------- JSON Schemas


def with_markdown(value: Any) -> Any:
    """Return a schema whose descriptions are Markdown."""
    if isinstance(value, dict):
        return {
            key: markdown(item)
            if key == "description" and isinstance(item, str)
            else with_markdown(item)
            for key, item in value.items()
        }
    return [with_markdown(item) for item in value] if isinstance(value, list) else value


def markdown(text: str) -> str:
    """Return a docstring's text as Markdown."""
    return _MARKUP.sub(r"`\1`", text)


class _Schemas(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False  # the title would repeat the name

    def field_is_required(self, field: Any, total: bool) -> bool:
        # `values` are the permitted values of a field with a `Literal` type and a default. The
        # service always sends such a field. In a body, a field with only one permitted value
        # identifies the model of the body, so callers must send the field. Its default is only for
        # our own code.
        default = field["schema"]
        values = default["schema"].get("expected", ()) if default["type"] == "default" else ()
        is_sent = self.mode == "serialization" and len(values) > 0
        return is_sent or len(values) == 1 or super().field_is_required(field, total)
