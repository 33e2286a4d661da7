"""Tests of every limit on the content of a report.

For each limit, the service accepts the last permitted value and refuses the first value beyond it.
Payloads and limits come from the schemas in `tests/fakes/schemas`.
"""

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

from agent.wire import routes
from tests.fakes.remote_control.random_documents import random_document
from tests.fakes.schemas.contract import (
    APPLICATION_PAYLOAD,
    NETWORK_PAYLOAD,
    Schema,
    violations,
)
from tests.unit.controlplane.running_service import RunningService

KINDS = {"network": NETWORK_PAYLOAD, "application": APPLICATION_PAYLOAD}
PAYLOADS_MAX = 300
"""Maximum number of random payloads that are generated to find every limited value."""
LIMITS = ("const", "enum", "maxItems", "maxLength", "minLength", "minimum", "maximum")
Path = tuple[str | int, ...]
Edge = tuple[Any, Any]
"""The last permitted value, and the first value that is refused. ``...`` means that the field is
missing."""


def edges(schema: Schema, value: Any, path: Path = ()) -> Iterator[tuple[Path, str, Edge]]:
    """Yield the path of each limited value of a payload, the name of the limit, and its edge.

    The limits of the schema keep their names. There are two more: ``required`` for a required
    field, and ``closed`` for an object that permits no unknown field.
    """
    if value is None:
        return
    shapes = [
        alternative
        for alternative in schema.get("anyOf", [schema])
        if alternative != {"type": "null"}
    ]
    fitting = (shape for shape in shapes if len(shapes) == 1 or not violations(shape, value))
    yield from _edges(next(fitting), value, path)


def _edges(schema: Schema, value: Any, path: Path) -> Iterator[tuple[Path, str, Edge]]:
    if "const" in schema:
        yield path, "const", (schema["const"], 7)
    elif "enum" in schema:
        yield path, "enum", (schema["enum"][-1], "other")
    elif isinstance(value, dict):
        yield from _edges_of_object(schema, value, path)
    elif isinstance(value, list) and value:
        if "maxItems" in schema:
            highest = schema["maxItems"]
            yield path, "maxItems", (value[:1] * highest, value[:1] * (highest + 1))
        yield from edges(schema["items"], value[0], (*path, 0))
    elif isinstance(value, str):
        yield from _edges_of_text(schema, path)
    elif schema["type"] == "integer":
        yield path, "minimum", (schema["minimum"], schema["minimum"] - 1)
        yield path, "maximum", (schema["maximum"], schema["maximum"] + 1)


def _edges_of_object(
    schema: Schema, value: dict[str, Any], path: Path
) -> Iterator[tuple[Path, str, Edge]]:
    for field, part in value.items():
        yield from edges(schema["properties"][field], part, (*path, field))
    for field in schema["required"]:
        yield (*path, field), "required", (value[field], ...)
    yield (*path, "colour"), "closed", (..., 1)


def _edges_of_text(schema: Schema, path: Path) -> Iterator[tuple[Path, str, Edge]]:
    highest, lowest = schema["maxLength"], schema.get("minLength", 0)
    # The service counts UTF-16 code units, so each of these characters counts as two.
    yield path, "maxLength", ("🖨" * (highest // 2), "🖨" * (highest // 2) + "x")
    if lowest:
        yield path, "minLength", ("x" * lowest, "x" * (lowest - 1))


def limits_in(schema: Schema, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield the path and the name of each limit in a schema."""
    for part in schema.get("anyOf", [schema]):
        yield from ((path, limit) for limit in LIMITS if limit in part)
        for field, inner in part.get("properties", {}).items():
            yield from limits_in(inner, (*path, field))
        yield from (((*path, field), "required") for field in part.get("required", ()))
        if "properties" in part:
            yield (*path, "colour"), "closed"
        if "items" in part:
            yield from limits_in(part["items"], (*path, 0))


def edges_of(kind: str) -> dict[tuple[Path, str], tuple[Any, Edge]]:
    """Return each limit once, with its edge and a payload that contains the limited value."""
    results: dict[tuple[Path, str], tuple[Any, Edge]] = {}
    limit_count = len(set(limits_in(KINDS[kind])))
    for seed in range(PAYLOADS_MAX):
        if len(results) == limit_count:
            break
        payload = random_document(KINDS[kind], random.Random(seed))
        for path, limit, edge in edges(KINDS[kind], payload):
            results.setdefault((path, limit), (payload, edge))
    return results


def with_value(payload: Any, path: Path, value: Any) -> Any:
    """Return a copy of the payload with ``value`` at ``path``. ``...`` removes the field."""
    result = copy.deepcopy(payload)
    parent = result
    for step in path[:-1]:
        parent = parent[step]
    if value is ...:
        parent.pop(path[-1], None)
    else:
        parent[path[-1]] = value
    return result


@pytest.mark.medium
@pytest.mark.parametrize("kind", KINDS)
async def test_a_payload_is_accepted_at_each_limit_and_refused_beyond_it(
    service: RunningService, kind: str
) -> None:
    edges_by_limit = edges_of(kind)
    assert set(edges_by_limit) == set(limits_in(KINDS[kind]))
    device = await service.device().enrolled()
    for (path, limit), (payload, (inside, outside)) in edges_by_limit.items():
        accepted = await device.submit(with_value(payload, path, inside), kind=kind)
        assert accepted.status_code == 200, (path, limit, accepted.text)
        refused = await device.submit(with_value(payload, path, outside), kind=kind)
        assert refused.status_code == 400, (path, limit)
        field_path = "report." + ".".join(map(str, path))
        # If a schema has ``anyOf``, the refusal names the parent of the field.
        parent_path = field_path.rpartition(".")[0]
        errors = refused.json()["errors"]
        assert any(error == parent_path or error.startswith(field_path) for error in errors), (
            path,
            limit,
        )


@pytest.mark.parametrize("kind", KINDS)
async def test_any_payload_that_the_schema_permits_is_accepted(
    service: RunningService, kind: str
) -> None:
    device = await service.device().enrolled()
    for seed in range(PAYLOADS_MAX, PAYLOADS_MAX + 20):  # seeds that edges_of() does not use
        payload = random_document(KINDS[kind], random.Random(seed))
        submitted = (await device.submit(payload, kind=kind)).json()
        reply = await device.call(routes.REPORT_DETAIL, reportId=submitted["reportId"])
        assert reply.json()["payload"] == payload
