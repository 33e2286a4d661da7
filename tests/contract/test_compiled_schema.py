"""A compiled schema accepts and refuses the same documents as jsonschema."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from tests.fakes.schemas.compiled import CompiledValidator
from tests.fakes.schemas.contract import ID, SAFE, UUID, violations
from tests.fakes.schemas.figures import DATE
from tests.fakes.support.schema import TIMESTAMP

SOME_UUID = "0b9f9a2e-6a0c-4c0e-8a57-3d0a1f0c9b11"


@pytest.mark.parametrize(
    ("schema", "document", "is_valid"),
    [
        (DATE, "2026-11-20", True),
        (DATE, "2026-11-31", False),
        (DATE, "20261120", False),
        (TIMESTAMP, "2026-11-20T12:00:00Z", True),
        (TIMESTAMP, "2026-11-20T12:00:00Z\n", False),
        (TIMESTAMP, "2026-11-20T12:00:00+00:00", False),
        (UUID, SOME_UUID, True),
        (UUID, SOME_UUID.upper(), False),
        ({"type": "integer", "maximum": SAFE}, SAFE, True),
        ({"type": "integer", "maximum": SAFE}, SAFE + 1, False),
        ({"type": "integer"}, True, False),
        ({"type": "integer"}, 1.0, True),
        ({"const": True}, 1, False),
        ({"type": "string"}, "\ud800", True),
        ({"type": "object"}, {1: 2}, True),
        ({"type": "array", "items": {"type": "null"}}, [None, None], True),
        ({"type": "array", "items": {"type": "null"}}, [None, 0], False),
    ],
)
def test_a_compiled_schema_accepts_and_refuses_the_same_documents_as_jsonschema(
    schema: Any, document: Any, is_valid: bool
) -> None:
    reference = Draft202012Validator(schema, format_checker=FormatChecker())
    assert (not list(reference.iter_errors(document))) is is_valid
    assert (not list(CompiledValidator(reference).iter_errors(document))) is is_valid


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [("a" * 1024, True), ("a" * 1025, False), ("😀" * 512, True), ("😀" * 513, False), ("", False)],
)
def test_the_length_of_a_text_is_counted_in_utf16_code_units(text: str, is_valid: bool) -> None:
    assert (not violations(ID, text)) is is_valid
