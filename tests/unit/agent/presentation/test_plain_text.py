import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.presentation.plain_text import MARKS_IN_A_ROW_MAX, REPLACEMENT, plain, shorten
from tests.fixtures.payloads import HOSTILE_STRINGS

ANY_TEXT = st.text(st.characters(), max_size=200)
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
UNSAFE_TEXT = st.text(st.sampled_from(f"a \x1b\u200d\ufe0f\u0301{BIDI}"))


@pytest.mark.parametrize(
    ("given_text", "displayed"),
    [
        ("Kitchen printer", "Kitchen printer"),
        ("\x1b[31mred\x1b[0m", f"{REPLACEMENT}[31mred{REPLACEMENT}[0m"),
        ("one\r\n\ttwo\u2028three", "one two three"),
        ("abc\u202egnp.exe", f"abc{REPLACEMENT}gnp.exe"),
        ("\x00\x01\x02", REPLACEMENT),
        ("\x9b2J", f"{REPLACEMENT}2J"),
        ("厨房 🖨", "厨房 🖨"),
        ("👨\u200d👩", "👨👩"),
        ("\ud800", REPLACEMENT),
        ("e\u0301", "e\u0301"),
        ("  padded  ", "padded"),
        ("", ""),
    ],
)
def test_text_is_made_plain_for_display(given_text: str, displayed: str) -> None:
    assert plain(given_text) == displayed


@given(ANY_TEXT | st.sampled_from(HOSTILE_STRINGS) | UNSAFE_TEXT)
def test_plain_text_contains_no_control_characters(text: str) -> None:
    displayed = plain(text)
    assert not {unicodedata.category(c) for c in displayed} & {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    assert not set(displayed) & set(BIDI)
    assert displayed == displayed.strip()
    assert plain(displayed) == displayed


@given(st.integers(0, 50))
def test_stacked_marks_are_bounded(count: int) -> None:
    assert len(plain("Z" + "\u0351" * count)) == 1 + min(count, MARKS_IN_A_ROW_MAX)


def test_a_joiner_does_not_reset_the_limit_of_combining_marks() -> None:
    assert len(plain("Z" + "\u0351\u200d" * 20)) == 1 + MARKS_IN_A_ROW_MAX


def test_shortened_text_has_the_number_of_omitted_characters() -> None:
    assert shorten("N" * 130, 120) == "N" * 120 + "… (+10 characters)"
    assert shorten("N" * 120, 120) == "N" * 120
