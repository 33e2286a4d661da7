"""Plain text for people: widths, wrapping, colour."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.cli.screen import Screen, is_coloured, wrapped
from agent.presentation.moments import ago, duration


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


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (90000, "1 d")]
)
def test_durations(seconds: int, words: str) -> None:
    assert duration(seconds) == words


def test_moments_that_cannot_be() -> None:
    assert ago(None) == "never"
    assert ago("soon") == "at an unreadable time"
    assert ago("2999-01-01T00:00:00+00:00").endswith("ahead of this machine's clock")
    assert ago("2026-01-01") == "at an unreadable time"
