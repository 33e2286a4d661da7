"""What a tool is: its arguments, its result, and the function between the two."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter

from agent.wire.base import Exact, Tolerant
from controlplane.operation.context import RequestContext

Arguments = TypeVar("Arguments", bound=Exact)
Json = dict[str, Any]
ToolContext = RequestContext


class ToolError(Exception):
    """What a model gets to read instead of a result: it says what to change."""


@dataclass(frozen=True, slots=True)
class Tool(Generic[Arguments]):
    """``run`` returns a short text and the result, within one transaction."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    result: type[Tolerant]
    run: Callable[[ToolContext, Arguments], tuple[str, Tolerant]]
    writes: bool = False
    input_schema: Json = field(init=False)
    output_schema: Json = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_schema", schema_of(self.arguments, "validation"))
        object.__setattr__(self, "output_schema", schema_of(self.result, "serialization"))


def schema_of(model: type[BaseModel], mode: Any) -> Json:
    """Return the JSON Schema of an object, by its names on the wire."""
    schema: Json = TypeAdapter(model).json_schema(by_alias=True, mode=mode)
    return schema
