"""A tool of the agent protocol: a function whose arguments and result are Pydantic models."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import BaseModel, Field, TypeAdapter

from agent.wire.base import Absent, Exact, MaxItems, Tolerant
from agent.wire.text import Cursor, NonEmptyText
from controlplane.analytics.query import query_location, visible_locations
from controlplane.figures.financial import QueryLocation
from controlplane.operation.context import RequestContext

Json = dict[str, Any]
ToolContext = RequestContext
LOCATIONS_MAX = 100
"""Maximum number of locations in one call."""
LocationIds = Annotated[
    Absent[Annotated[tuple[NonEmptyText, ...], MaxItems(LOCATIONS_MAX)]],
    Field(description="ids of locations; default: all that you have access to"),
]
NextCursor = Annotated[
    Absent[Cursor], Field(description="nextCursor of the previous call, with the same arguments")
]


class ToolError(Exception):
    """An error that the language model gets instead of a result. Its text names what to change."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that AI assistants can call.

    ``run`` returns a short text and the result, within one transaction. ``writes`` and ``is_long``
    have the same meaning as in `controlplane.operation.operation.Procedure`.
    """

    name: str
    title: str
    description: str
    arguments: type[Exact]
    run: Callable[[ToolContext, Any], tuple[str, Tolerant]]
    input_schema: Json
    output_schema: Json
    writes: bool = False
    is_long: bool = False


def tool(
    run: Callable[[ToolContext, Any], tuple[str, Tolerant]],
    title: str,
    description: str,
    *,
    writes: bool = False,
    is_long: bool = False,
) -> Tool:
    """Return the tool that runs a function.

    The function's annotations are the models of its arguments and of its result.
    """
    hints = get_type_hints(run)
    _, result = get_args(hints.pop("return"))
    _context, arguments = hints.values()
    return Tool(
        run.__name__,
        title,
        description,
        arguments,
        run,
        schema_of(arguments, "validation"),
        schema_of(result, "serialization"),
        writes,
        is_long,
    )


def named_locations(
    context: ToolContext, location_ids: Sequence[str] | None
) -> list[QueryLocation]:
    """Return the named locations, each once.

    If ``location_ids`` is None, return all locations that the caller has access to.

    Raises a refusal if a named location has no figures, or if the caller has no access to it.
    """
    if location_ids is None:
        return visible_locations(context)
    return [query_location(context, location_id) for location_id in dict.fromkeys(location_ids)]


def schema_of(model: type[BaseModel], mode: Any) -> Json:
    """Return the JSON Schema of a model, with the names that its fields have in JSON."""
    schema: Json = TypeAdapter(model).json_schema(by_alias=True, mode=mode)
    return schema
