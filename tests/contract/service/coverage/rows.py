"""What the two documents say, row by row, and the tests that saw it."""

from dataclasses import dataclass
from typing import Final

UNIT: Final = "tests/unit/controlplane/"
DOCUMENT_TESTS: Final = "tests/contract/service/test_service_document.py::"
EXAMPLE: Final = DOCUMENT_TESTS + "test_it_tells_what_the_service_says"
EVERY_FIELD: Final = DOCUMENT_TESTS + "test_every_field_was_seen"


@dataclass(frozen=True, slots=True)
class Row:
    """``says`` is what a document says; ``tests`` are node ids without parameters. A row that no
    test can see says ``why``."""

    statement: str
    tests: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    rows: tuple[Row, ...]


def row(statement: str, *tests: str) -> Row:
    return Row(statement, tests)


def not_observable(statement: str, why: str) -> Row:
    """Return a row of which there is nothing to see."""
    return Row(statement, (), why)
