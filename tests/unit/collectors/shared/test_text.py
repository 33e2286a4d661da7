import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.wire.controls import without_controls
from collectors.shared.text import clean_text, decode, decode_text
from tests.fixtures.payloads import HOSTILE_STRINGS
from tests.unit.agent.hostile import hostile_text


def test_control_characters_are_replaced():
    assert clean_text("\x1b[31mred\x1b[0m\x07\x9b1m") == "[31mred [0m 1m"
    assert clean_text("abc\u202edcba\u2066x\u200b") == "abc dcba x"
    assert clean_text("\ud800a\x1b[31mb\u202ec\n d") == "a [31mb c d"


@pytest.mark.parametrize("text", [*HOSTILE_STRINGS, "a\u200c\xad\u3000b\ue000\ufeff\ud800c\u200dd"])
def test_collectors_and_agent_clean_hostile_strings_in_the_same_way(text: str):
    assert clean_text(text) == " ".join(without_controls(text).split())


@given(hostile_text | st.text())
def test_collectors_and_agent_clean_any_text_in_the_same_way(text: str):
    assert clean_text(text, len(text) + 1) == " ".join(without_controls(text).split())


def test_markup_is_kept():
    assert clean_text("<script>alert('x')</script> & more") == "<script>alert('x')</script> & more"


def test_white_space_is_joined():
    assert clean_text("  a\r\n\tb\u2028c  d ") == "a b c d"


def test_emoji_sequences_are_kept():
    assert clean_text("👩\u200d🍳") == "👩\u200d🍳"


def test_text_is_bounded_before_it_is_cleaned():
    assert clean_text("x" * 10_000_000, 10) == "x" * 10


def test_text_that_is_not_utf8_is_decoded():
    assert decode_text(b"caf\xe9\xff") == "caf\ufffd\ufffd"


@given(st.text(max_size=300), st.integers(1, 64))
def test_any_text_is_clean_and_short(raw: str, limit: int):
    cleaned = clean_text(raw, limit)
    assert len(cleaned) <= limit
    assert clean_text(cleaned, limit) == cleaned
    kept = cleaned.replace("\u200d", "")
    assert all(unicodedata.category(c)[0] != "C" for c in kept)
    assert not {unicodedata.category(c) for c in kept} & {"Zl", "Zp"}
    cleaned.encode()


@given(st.binary())
def test_any_bytes_are_decoded_to_text(data: bytes):
    clean_text(decode(data)).encode()
