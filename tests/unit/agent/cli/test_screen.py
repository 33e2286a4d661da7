"""Plain text for people: widths, wrapping, colour."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.cli.screen import Screen, is_coloured, wrapped


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_only_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
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


@given(st.text(max_size=200), st.integers(40, 100))
def test_no_text_breaks_the_screen(text: str, width: int) -> None:
    out = io.StringIO()
    screen = Screen(out, width)
    screen.fact("name", text)
    screen.paragraph(text, indent="  ")
    screen.table(("a", "b"), [((text, "none"), (text, "bad"))])
    assert all(c.isprintable() or c == "\n" for c in out.getvalue())
    assert all(len(line) <= width for line in wrapped(text, width))
