"""Tests that `surface.json`, the recorded description of the public surface of 1.x, has the same
lines as the description that `surface` creates from the code. Also tests that
`docs/compatibility.md` lists the parts of the surface.
"""

import re

import pytest

from tests.contract.compatibility.surface import (
    Surface,
    problems,
    recorded,
    surface,
    with_additions,
)
from tests.paths import ROOT

DOCUMENT = (ROOT / "docs/compatibility.md").read_text("utf-8")


@pytest.fixture(scope="module")
def current() -> Surface:
    return surface()


def test_no_recorded_line_is_gone_and_every_addition_is_recorded(current: Surface) -> None:
    assert problems(recorded(), current) == []


def test_a_removed_line_is_reported_with_what_to_do() -> None:
    (line,) = problems({"command line": ["venue-agent status"]}, {"command line": []})
    assert line == (
        "command line: `venue-agent status` is gone. Users of 1.x depend on it"
        " (docs/compatibility.md). Keep it, or in a major version delete its line in"
        " tests/contract/compatibility/surface.json"
    )


def test_a_renamed_line_is_reported_twice() -> None:
    lines = problems({"metrics": ["old"]}, {"metrics": ["new"]})
    assert [line.partition(". ")[0] for line in lines] == [
        "metrics: `old` is gone",
        "metrics: `new` is new",
    ]


def test_recording_removes_nothing() -> None:
    before = {"metrics": ["old"], "exit codes": ["0"]}
    assert with_additions(before, {"metrics": ["new"]}) == before | {"metrics": ["new", "old"]}


def listed(heading: str) -> list[str]:
    """Return the words marked as code in the lists and tables of a section of the document."""
    section = DOCUMENT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"`([^`]+)`", "\n".join(re.findall(r"^[-|] .*$", section, re.MULTILINE)))


def test_the_document_lists_every_command(current: Surface) -> None:
    commands = {tuple(line.split()[:2]) for line in current["command line"]}
    names = {" ".join(words) for words in commands if len(words) > 1 and words[1][0] != "-"}
    assert sorted(listed("Commands")) == sorted(names)


def test_the_document_lists_every_section_of_the_configuration(current: Surface) -> None:
    sections = {f"[{line.partition('.')[0]}]" for line in current["configuration keys"]}
    assert sorted(listed("Configuration")) == sorted(sections)


def test_the_document_lists_every_exit_code(current: Surface) -> None:
    codes = {line.split()[1] for line in current["exit codes"]}
    assert sorted(listed("Exit codes")) == sorted(codes)


def test_the_document_lists_every_file_of_the_state_directory(current: Surface) -> None:
    assert sorted(listed("State on disk")) == sorted(current["state directory"])


def test_the_document_names_every_part_of_the_surface(current: Surface) -> None:
    table = DOCUMENT.partition("| part |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)) == sorted(current)
