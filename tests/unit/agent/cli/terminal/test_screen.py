"""Tests of plain text for terminals: column widths, line breaks and colours.

A cell of a table is a pair of text and style.
"""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.cli.terminal.screen import Screen, is_coloured, wrapped


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_only_output_to_a_terminal_is_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert is_coloured(Terminal())
    assert not is_coloured(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not is_coloured(Terminal())


def test_a_table_wraps_its_last_column() -> None:
    out = io.StringIO()
    Screen(out, 40).table(
        ("a", "b"), [(("one", "none"), ("word " * 12, "none")), (("three", "bad"), ("", "none"))]
    )
    lines = out.getvalue().splitlines()
    assert lines[0] == "a      b"
    assert lines[2].startswith("       word")
    assert lines[-1] == "three"
    assert all(len(line) <= 40 for line in lines)


def test_a_column_without_enough_space_is_printed_below_its_row() -> None:
    out = io.StringIO()
    start = ("2026-11-20 19:00 UTC", "none"), ("application", "none")
    rows = [(*start, ("word " * 12, "quiet")), (*start, ("short", "quiet"))]
    Screen(out, 50).table(("when", "kind", "why"), rows)
    lines = out.getvalue().splitlines()
    assert lines[0].split() == ["when", "kind", "why"]
    assert lines[1] == "2026-11-20 19:00 UTC  application"
    assert lines[-1] == "2026-11-20 19:00 UTC  application  short"
    assert lines[2].startswith("    word word")
    assert all(len(line) <= 50 for line in lines)


def test_parts_are_printed_below_each_other_on_a_narrow_screen() -> None:
    def rendered(width: int) -> list[str]:
        out = io.StringIO()
        Screen(out, width).beside(("2 problems", "bad"), ("word " * 11 + "word", "quiet"))
        return out.getvalue().splitlines()

    assert rendered(80) == ["2 problems  " + "word " * 11 + "word"]
    assert len(rendered(50)) == 3


@given(st.text(max_size=200), st.integers(40, 100))
def test_any_text_is_printable_and_fits_the_screen(text: str, width: int) -> None:
    out = io.StringIO()
    screen = Screen(out, width)
    screen.fact("name", text)
    screen.paragraph(text, indent="  ")
    screen.table(("a", "b"), [((text, "none"), (text, "bad"))])
    assert all(c.isprintable() or c == "\n" for c in out.getvalue())
    assert all(len(line) <= width for line in wrapped(text, width))
