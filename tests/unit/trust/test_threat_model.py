"""Tests that pytest collects, and does not skip, the tests named in docs/threat-model.md and
docs/capabilities.md.
"""

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from tests.paths import ROOT

pytestmark = pytest.mark.medium  # it imports the named tests

THREATS: Final = ROOT / "docs/threat-model.md"
CAPABILITIES: Final = ROOT / "docs/capabilities.md"
ATTACKERS: Final = {"N": 12, "S": 15, "T": 12, "L": 8, "D": 6, "B": 6, "A": 8}
"""The letter of each attacker's rows, and the minimum number of these rows."""
ROWS_MIN: Final = 40
ROW: Final = re.compile(r"^\| ([A-Z])(\d+) \|(.+)\|$", re.MULTILINE)
TEST: Final = re.compile(r"`([\w/]+\.py)::(\w+)`")


def rows() -> list[tuple[str, int, list[str]]]:
    """Return the letter, number and further cells of each row."""
    lines = ROW.findall(THREATS.read_text())
    return [(letter, int(n), [c.strip() for c in rest.split("|")]) for letter, n, rest in lines]


def test_each_attacker_has_rows_with_consecutive_numbers() -> None:
    assert len(rows()) >= ROWS_MIN
    for letter, minimum in ATTACKERS.items():
        numbers = [number for row_letter, number, _ in rows() if row_letter == letter]
        assert numbers == list(range(1, len(numbers) + 1)), letter
        assert len(numbers) >= minimum, letter
    assert {letter for letter, _, _ in rows()} == ATTACKERS.keys()


def test_a_row_has_a_test_or_is_marked_as_not_prevented() -> None:
    for letter, number, cells in rows():
        attempt, defence, remaining_risk, tests = cells
        assert attempt, (letter, number)
        assert defence, (letter, number)
        is_prevented = not defence.startswith("**not prevented**")
        assert is_prevented is bool(TEST.findall(tests)), (letter, number)
        assert is_prevented or remaining_risk, (letter, number)
        assert TEST.sub("", tests).strip(" ,") == "", (letter, number)


NAMED_TESTS: Final = sorted(
    {pair for d in (THREATS, CAPABILITIES) for pair in TEST.findall(d.read_text())}
)


@pytest.mark.parametrize("path", sorted({path for path, _ in NAMED_TESTS}))
def test_each_named_test_is_collected_and_not_skipped(
    path: str, request: pytest.FixtureRequest
) -> None:
    file = ROOT / "tests" / path
    collected = collect(pytest.Module.from_parent(request.session, path=file))
    for name in (test for test_path, test in NAMED_TESTS if test_path == path):
        assert name in collected, f"{name} is not collected"
        assert not is_skipped(collected[name]), f"{name} is skipped"
        assert not skips_itself(file, name), f"{name} is skipped in its body"


def collect(collector: pytest.Module | pytest.Class) -> dict[str, list[pytest.Mark]]:
    """Return the tests that pytest collects in a module or class, with their marks."""
    collected: dict[str, list[pytest.Mark]] = {}
    for name, value in vars(collector.obj).items():
        if collector.istestclass(value, name):
            collected |= collect(pytest.Class.from_parent(collector, name=name, obj=value))
        elif collector.istestfunction(value, name):
            collected[name] = [*marks_of(collector.obj), *marks_of(value)]
    return collected


def marks_of(value: object) -> list[pytest.Mark]:
    marks = getattr(value, "pytestmark", [])
    marks = marks if isinstance(marks, list) else [marks]
    return [getattr(mark, "mark", mark) for mark in marks]


def is_skipped(marks: list[pytest.Mark]) -> bool:
    """Return whether a test with these marks is skipped on every machine."""
    return any(m.name == "skip" or (m.name == "skipif" and True in m.args) for m in marks)


def skips_itself(file: Path, name: str) -> bool:
    """Return whether a test skips itself without a condition, at the top level of its body."""
    tree = ast.parse(file.read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    (test,) = (n for n in ast.walk(tree) if isinstance(n, functions) and n.name == name)
    return any(
        isinstance(statement, ast.Expr)
        and ast.unparse(statement).startswith(("pytest.skip(", "pytest.xfail("))
        for statement in test.body
    )


def test_a_skipped_or_missing_test_is_detected(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    file = tmp_path / "test_sample.py"
    file.write_text(
        "import pytest, sys\n"
        "@pytest.mark.skip\ndef test_a(): pass\n"
        "@pytest.mark.skipif(True, reason='x')\ndef test_b(): pass\n"
        "@pytest.mark.skipif(sys.platform == 'nothing', reason='x')\ndef test_c(): pass\n"
        "def test_d():\n    pytest.skip('x')\n"
        "def no_test(): pass\n"
    )
    collected = collect(pytest.Module.from_parent(request.session, path=file))
    assert list(collected) == ["test_a", "test_b", "test_c", "test_d"]
    assert [is_skipped(marks) for marks in collected.values()] == [True, True, False, False]
    assert [skips_itself(file, name) for name in ("test_c", "test_d")] == [False, True]
