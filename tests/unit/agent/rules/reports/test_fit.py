"""Tests of texts and lists that are cut to the limits of the contract."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.rules.reports.fit import ELLIPSIS, clip, clip_id, truncate
from agent.wire.text import utf16_length
from tests.unit.agent.hostile import LONG, hostile_text

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@given(hostile_text, st.integers(1, 1100))
@example("🖨" * 2048, 1)
@example("🖨" * 2048, 2)
@example("\ud83d" + "x" * 2000, 1024)
def test_clipped_text_fits_and_contains_no_control_characters(text: str, maximum: int) -> None:
    clipped = clip(text, maximum)

    assert utf16_length(clipped) <= maximum
    assert clipped.encode("utf-8").decode("utf-8") == clipped  # fails for a lone surrogate
    assert not any(unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} for c in clipped)
    assert not set(BIDI) & set(clipped)
    assert clip(clipped, maximum) == clipped


@given(hostile_text)
def test_the_default_maximum_is_4096_utf_16_code_units(text: str) -> None:
    clipped = clip(text)

    assert clip(clipped, 4096) == clipped


@pytest.mark.parametrize("text", LONG)
def test_clipped_text_ends_with_an_ellipsis_and_has_almost_the_maximum_length(text: str) -> None:
    clipped = clip(text, 100)

    if clipped != " ":  # a text without permitted characters becomes one space
        assert clipped.endswith(ELLIPSIS)
        assert utf16_length(clipped) in {99, 100}  # 99 if a surrogate pair would be divided


@pytest.mark.parametrize(
    ("text", "clipped"),
    [
        ("abc", "abc"),
        ("abcd", "abcd"),
        ("abcde", "abc…"),
        ("a\x00\x1b[31mb", "a […"),
        ("🖨🖨", "🖨🖨"),
        ("🖨🖨🖨", "🖨…"),
        ("a🖨🖨", "a🖨…"),
        ("a\r\nb", "a b"),
        ("", ""),
    ],
)
def test_text_is_clipped_to_four_utf_16_code_units(text: str, clipped: str) -> None:
    assert clip(text, 4) == clipped


def test_an_empty_id_is_replaced_with_its_default() -> None:
    assert clip_id("", "unknown") == "unknown"
    assert clip_id("x", "unknown") == "x"
    assert clip_id("\x00", "unknown") != ""


@given(st.lists(st.integers(), max_size=20), st.integers(1, 10))
def test_cut_list_ends_with_the_number_of_missing_items(items: list[int], maximum: int) -> None:
    result = truncate(map(str, items), maximum, lambda n: f"{n} more")

    assert len(result) <= maximum
    if len(items) <= maximum:
        assert result == tuple(map(str, items))
    else:
        missing = len(items) - (maximum - 1)
        assert result == (*map(str, items[: maximum - 1]), f"{missing} more")
