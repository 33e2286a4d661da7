"""A validator for JSON Schema that is fast for valid documents.

A compiled validator checks each document first. It is stricter than jsonschema: `$` matches only at
the end of the text, and formats are checked. If it refuses a document, jsonschema decides whether
the document is valid, and describes the errors. Most documents are valid, so this is rare.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
from jsonschema import Draft202012Validator, ValidationError


class CompiledValidator:
    """A jsonschema validator that is fast for valid documents.

    Args:
        validator: validates the documents that the compiled validator refuses.
        formats: functions for the formats of ``validator`` that JSON Schema does not define.
        counts_utf16: whether ``validator`` counts strings in UTF-16 code units.
    """

    def __init__(
        self,
        validator: Draft202012Validator,
        formats: Mapping[str, Any] | None = None,
        *,
        counts_utf16: bool = False,
    ) -> None:
        self._validator = validator
        self._counts_utf16 = counts_utf16
        schema: Any = validator.schema
        self._compiled = jsonschema_rs.Draft202012Validator(
            schema, validate_formats=True, formats=dict(formats or {})
        )

    def iter_errors(self, document: Any) -> Iterator[ValidationError]:
        """Yield each error in a document."""
        if not self._is_valid(document):
            yield from self._validator.iter_errors(document)

    def mistakes(self, document: Any) -> Iterator[str]:
        """Yield the place and the description of each error in a document."""
        for error in self.iter_errors(document):
            yield f"{error.json_path}: {error.message[:200]}"

    def validate(self, document: Any) -> None:
        """Raise ValidationError if a document is not valid."""
        for error in self.iter_errors(document):
            raise error

    def _is_valid(self, document: Any) -> bool:
        if self._counts_utf16 and "\\ud" in json.dumps(document):
            # There may be a character of two units, and the compiled validator counts characters.
            return False
        try:
            return self._compiled.is_valid(document)
        except ValueError:  # a lone surrogate, or a key that is no string
            return False
