"""Tests that docs/capabilities.md has a row for each field of a reply, each class of statuses and
each header.
"""

import ast
import inspect
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from agent.adapters.service_client import ServiceClient
from agent.rules.command_frames import parse_frame
from agent.wire import device_operations, routes
from agent.wire.base import Tolerant
from agent.wire.codec import encode, validate
from agent.wire.problem import Problem
from agent.wire.validation import ValidationError
from tests.paths import ROOT
from tests.unit.trust import capabilities
from tests.unit.trust.replies import REPLIES, fields_of

NO_CALLS = {"skew", "close"}
"""The public names of `ServiceClient` that call no operation."""
DEVICE_ROUTES = "CHALLENGE ENROLL CURRENT HEARTBEAT ACKNOWLEDGE SUBMIT_RESULT ON_COMMANDS".split()
TIME = "2026-11-20T12:00:00Z"
VALUES: dict[str, Any] = {
    "null": None,
    "true": True,
    "number": 7,
    "fraction": 0.5,
    "empty text": "",
    "text": "shell",
    "path": "../../etc/passwd",
    "long text": "x" * 129,
    "list": ["network"],
    "long list": ["x"] * 33,
    "object": {"network": 1},
}
"""The values that a test sends in each field."""
FREE_TEXT = {"nonce", "organizationId", "appVersion"}
"""Fields whose length is limited only by the size of the reply."""


def test_the_document_is_generated_from_the_present_code() -> None:
    assert capabilities.PATH.read_text() == capabilities.document(), "run `make capabilities`"


def test_each_reply_model_of_the_device_operations_has_a_table() -> None:
    models = {
        model
        for _, model in inspect.getmembers(device_operations, inspect.isclass)
        if issubclass(model, Tolerant) and model is not Tolerant
    }
    # The agent validates each command of the list separately, without the model of the list.
    models.remove(device_operations.CommandList)
    assert {row.model for row in REPLIES} == models
    for row in REPLIES:
        assert set(row.effects) == set(fields_of(row.model)), row.operation


def test_each_operation_that_the_client_calls_has_a_table() -> None:
    documented = {name for row in REPLIES for name in row.operation.split(", ")}
    assert documented == {getattr(routes, n).removeprefix(routes.PREFIX) for n in DEVICE_ROUTES}
    used = set(_names_in("agent/adapters/service_client.py", "routes"))
    assert used == set(DEVICE_ROUTES)
    calls = {n for n in vars(ServiceClient) if not n.startswith("_")} - NO_CALLS
    assert len(calls) == len(documented)


def _names_in(path: str, module: str) -> Iterator[str]:
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == module:
            yield node.attr


def test_each_header_that_the_agent_reads_has_a_row() -> None:
    headers = set()
    for path in (ROOT / "agent").rglob("*.py"):
        if path.is_relative_to(ROOT / "agent" / "doctor"):
            continue  # doctor makes calls of its own, when a user runs it
        if "headers" not in (text := path.read_text(encoding="utf-8")):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Subscript):
                assert not _is_headers(node.value), f"{path} reads a header without get()"
            if isinstance(node, ast.Call) and _is_headers(getattr(node.func, "value", None)):
                assert isinstance(node.func, ast.Attribute)
                if node.func.attr == "get":
                    headers.add(ast.literal_eval(node.args[0]))
    assert headers == capabilities.HEADERS.keys()


def _is_headers(node: ast.expr | None) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name == "headers"


def test_each_class_of_statuses_has_a_row() -> None:
    assert capabilities.statuses_by_class().keys() == capabilities.EFFECTS_BY_STATUS_CLASS.keys()


def test_only_the_documented_keys_of_an_error_are_used() -> None:
    keys = set(_names_in("agent/rules/replies.py", "problem"))
    assert keys == {"detail", "title", "errors", "code"}
    assert keys < set(fields_of(Problem))


# ------------------------------------------------------------------ values


def valid_body(model: type[Tolerant]) -> dict[str, Any]:
    return {name: _valid_value(schema) for name, schema in fields_of(model).items()}


def _valid_value(schema: dict[str, Any]) -> Any:
    if "anyOf" in schema:
        return _valid_value(schema["anyOf"][0])
    for key in ("const", "enum"):
        if key in schema:
            return schema[key] if key == "const" else schema[key][0]
    formats = {"uuid": str(uuid.UUID(int=7)), "date-time": TIME}
    return [] if schema["type"] == "array" else formats.get(schema.get("format", ""), "x")


def is_accepted(schema: dict[str, Any], value: Any) -> bool:
    """Return whether the row of a field in the document accepts ``value``."""
    match schema:
        case {"anyOf": choices}:
            fits = any(is_accepted(choice, value) for choice in choices)
        case {"const": constant}:
            fits = value is constant
        case {"enum": words}:
            fits = value in words
        case {"type": "string"}:
            least, most = schema.get("minLength", 0), schema.get("maxLength", 10**9)
            is_text = isinstance(value, str) and "format" not in schema
            fits = is_text and least <= len(value) <= most
        case {"type": "array", "items": items}:
            is_short = isinstance(value, list) and len(value) <= schema["maxItems"]
            fits = is_short and all(is_accepted(items, item) for item in value)
        case _:
            fits = value is None
    return fits


@pytest.mark.parametrize(
    ("model", "field"),
    [(row.model, field) for row in REPLIES for field in row.effects],
    ids=[f"{row.model.__name__}-{field}" for row in REPLIES for field in row.effects],
)
def test_the_agent_accepts_only_the_documented_values(model: type[Tolerant], field: str) -> None:
    schema, body = fields_of(model)[field], valid_body(model)
    validate(body, model)
    for name, value in VALUES.items():
        try:
            validate({**body, field: value}, model)
        except ValidationError:
            assert not is_accepted(schema, value), name
        else:
            assert is_accepted(schema, value), name
    if model is device_operations.Command and field != "status":
        frame = parse_frame(json.dumps({**body, field: {"run": "shell"}}))
        assert (frame.commands, len(frame.rejected)) == ((), 1)


@pytest.mark.parametrize("row", REPLIES, ids=lambda row: row.operation)
def test_unknown_keys_are_dropped(row: Any) -> None:
    unknown_keys = {"command": "reboot", "url": "http://x", "__class__": "os", "args": ["-c"]}
    model = validate({**unknown_keys, **valid_body(row.model)}, row.model)
    assert model == validate(valid_body(row.model), row.model)
    assert b"reboot" not in encode(model)


def test_only_the_listed_texts_have_no_limit_of_their_own() -> None:
    unlimited = {
        name
        for row in REPLIES
        for name, schema in fields_of(row.model).items()
        for alternative in schema.get("anyOf", [schema])
        if alternative.get("type") == "string"
        and not {"format", "enum", "maxLength"} & alternative.keys()
    }
    assert unlimited == FREE_TEXT
