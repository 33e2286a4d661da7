"""What the two documents say, row by row, and the tests that saw it."""

from dataclasses import dataclass
from typing import Final

UNIT: Final = "tests/unit/controlplane/"
_PROOFS: Final = "tests/contract/service/test_service_document.py::"
EXAMPLE: Final = _PROOFS + "test_it_tells_what_the_service_says"
EVERY_FIELD: Final = _PROOFS + "test_every_field_was_seen"


@dataclass(frozen=True, slots=True)
class Row:
    """``says`` is what a document says; ``tests`` are node ids without parameters."""

    says: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    rows: tuple[Row, ...]


def row(says: str, *tests: str) -> Row:
    return Row(says, tests)
