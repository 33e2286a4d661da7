import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from collectors.shared.text import clean_text, decode_text


def test_drops_what_steers_a_terminal():
    assert clean_text("\x1b[31mred\x1b[0m\x07\x9b1m") == "[31mred[0m1m"
    assert clean_text("abc\u202edcba\u2066x\u200b") == "abcdcbax"


def test_keeps_markup_for_whoever_escapes_it():
    assert clean_text("<script>alert('x')</script> & more") == "<script>alert('x')</script> & more"


def test_joins_white_space():
    assert clean_text("  a\r\n\tb\u2028c  d ") == "a bc d"


def test_keeps_emoji_sequences():
    assert clean_text("👩\u200d🍳") == "👩\u200d🍳"


def test_bounds_before_it_looks():
    assert clean_text("x" * 10_000_000, 10) == "x" * 10


def test_decodes_what_is_no_utf8():
    assert decode_text(b"caf\xe9\xff") == "caf\ufffd\ufffd"


@given(st.text(max_size=300), st.integers(1, 64))
def test_any_text_is_clean_and_short(raw: str, limit: int):
    cleaned = clean_text(raw, limit)
    assert len(cleaned) <= limit
    assert clean_text(cleaned, limit) == cleaned
    kept = cleaned.replace("\u200d", "")
    assert not {unicodedata.category(c) for c in kept} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    cleaned.encode()
