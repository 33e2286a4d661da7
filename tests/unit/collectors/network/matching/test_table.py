"""Tests that the table of verdicts has exactly one row for each situation that can occur."""

from collections.abc import Iterator
from itertools import product
from typing import get_args

import pytest

from collectors.network.matching.causes import CAUSES
from collectors.network.matching.table import (
    ROWS,
    IdentityAt,
    Occupant,
    Outcome,
    PortStatus,
    Resolution,
    Row,
    Situation,
    decide,
)
from tests.paths import ROOT

SEEN: tuple[IdentityAt, ...] = get_args(IdentityAt)


def situations() -> Iterator[Situation]:
    """Yield every situation that can occur."""
    without_address: tuple[Resolution, ...] = ("fails", "several")
    for resolution, seen in product(without_address, SEEN):
        if seen != "at the address":
            yield Situation(resolution, None, None, seen)
    for occupant, port, seen in product(get_args(Occupant), get_args(PortStatus), SEEN):
        is_this_printer, is_at_address = occupant == "this printer", seen == "at the address"
        has_answer_without_occupant = occupant == "nobody" and port in ("open", "refused")
        if is_this_printer == is_at_address and not has_answer_without_occupant:
            yield Situation("address", occupant, port, seen)


SITUATIONS = tuple(situations())
CAUSES_BY_OUTCOME: dict[Outcome, tuple[str, ...]] = {
    "renamed": ("renamed", "name-lost", "service-changed"),
    "unresolved": ("name-servers-silent", "name-unresolved", "service-changed", "off"),
    "several": (),
    "prints": (),
    "closed": ("asleep-or-off", "port-held", "port-closed"),
    "not tried": (),
    "moved": ("already-set-up", "address-changed"),
    "taken": ("address-taken",),
    "off": ("off",),
}
"""The codes of the possible causes of each outcome."""
CODES = {cause.code for cause in CAUSES}


@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
def test_each_situation_is_in_one_row(situation: Situation):
    (row,) = (row for row in ROWS if row.covers(situation))
    assert decide(situation) is row
    assert set(CAUSES_BY_OUTCOME[row.outcome]) <= CODES


def test_each_row_covers_a_situation_and_only_an_open_port_is_reachable():
    for row in ROWS:
        covered = [situation for situation in SITUATIONS if row.covers(situation)]
        assert covered, row
        if row.status == "reachable":
            assert {(situation.resolution, situation.port) for situation in covered} == {
                ("address", "open")
            }
            assert {situation.occupant for situation in covered} <= {"this printer", "unknown"}
        if row.outcome == "moved":
            assert {situation.identity_seen for situation in covered} == {"elsewhere"}
            assert {situation.port for situation in covered} <= {"open", "refused", "silent"}


def test_a_situation_that_cannot_occur_has_no_verdict():
    with pytest.raises(LookupError):
        decide(Situation("address", "nobody", "open", "nowhere"))


def test_the_document_contains_the_table():
    lines = (ROOT / "docs/printer-verdicts.md").read_text().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("| destination |"))
    table = [line for line in lines[start + 2 :] if line.startswith("| ")]
    assert table[: len(ROWS)] == [_document_row(row) for row in ROWS]


def _document_row(row: Row) -> str:
    def any_of(values: tuple[str | None, ...]) -> str:
        return ", ".join(value or "–" for value in values)

    causes = ", ".join(code.replace("-", " ") for code in CAUSES_BY_OUTCOME[row.outcome]) or "–"
    cells = (any_of(row.occupants), any_of(row.ports), any_of(row.identity_seen))
    return f"| {row.resolution} | {' | '.join(cells)} | {row.status}: {row.outcome} | {causes} |"
