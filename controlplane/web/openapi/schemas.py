"""JSON Schemas of models for an OpenAPI document: pydantic's schemas with Markdown descriptions."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

Json = dict[str, Any]
Key = tuple[str, str]
REFERENCES: Final = "#/components/schemas/{model}"
_MARKUP: Final = re.compile(r"``([^`]+)``")


@dataclass(frozen=True, slots=True)
class SchemaOf:
    """A schema to generate for the type ``kind``.

    With ``is_reply``, the schema describes values that the service sends. Otherwise it describes
    values that the service accepts.
    """

    key: Key
    kind: Any
    is_reply: bool = False


def json_schemas(schemas_of: Iterable[SchemaOf]) -> tuple[dict[Key, Json], Json]:
    """Return the schemas by key, and the schemas of the models to which they refer, by name."""
    inputs: list[tuple[Key, JsonSchemaMode, TypeAdapter[Any]]] = [
        (schema.key, "serialization" if schema.is_reply else "validation", TypeAdapter(schema.kind))
        for schema in schemas_of
    ]
    result, extra = TypeAdapter.json_schemas(
        inputs, by_alias=True, ref_template=REFERENCES, schema_generator=_Schemas
    )
    components: Json = extra["$defs"]
    return {key: schema for (key, _), schema in result.items()}, components


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
