"""Types for the tables that list the statements of the contract with the tests that cover them, and
test ids that several of these tables use.
"""

from dataclasses import dataclass
from typing import Final

UNIT: Final = "tests/unit/controlplane/"
DOCUMENT_TESTS: Final = "tests/contract/service/test_service_document.py::"
EXAMPLE: Final = DOCUMENT_TESTS + "test_the_document_matches_the_service"
EVERY_FIELD: Final = DOCUMENT_TESTS + "test_replies_contain_every_field_in_every_form"


@dataclass(frozen=True, slots=True)
class Row:
    """A statement of the contract, and the tests that cover it.

    Attributes:
        tests: node ids without parameters. Empty if no test can observe the statement.
        why: the reason if no test can observe the statement, otherwise empty.
    """

    statement: str
    tests: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Statements about one topic, from the contract or from its part about the retail API."""

    title: str
    rows: tuple[Row, ...]


def row(statement: str, *tests: str) -> Row:
    return Row(statement, tests)


def not_observable(statement: str, why: str) -> Row:
    """Return a row for a statement that no test can observe."""
    return Row(statement, (), why)
