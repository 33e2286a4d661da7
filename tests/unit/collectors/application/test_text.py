"""Strings from outside come out printable, bounded and without people's names."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from collectors.application.source import available
from collectors.application.text import clean, decode, fingerprint, without_owner
from collectors.contract import TEXT_MAX


@given(st.text(), st.integers(1, 64))
def test_cleaned_text_is_short_and_printable(text: str, limit: int) -> None:
    cleaned = clean(text, limit)
    assert len(cleaned) <= limit
    assert all(unicodedata.category(char)[0] != "C" for char in cleaned)
    assert clean(cleaned, limit) == cleaned.strip()


def test_lone_surrogates_and_escapes_do_not_pass() -> None:
    assert clean("\ud800a\x1b[31mb\u202ec\n d") == "a [31mb c d"


@given(st.binary())
def test_any_bytes_are_text(data: bytes) -> None:
    clean(decode(data)).encode()


def test_a_value_is_bounded() -> None:
    assert available("k", "s", "x" * TEXT_MAX * 3).value == "x" * TEXT_MAX


def test_a_list_is_bounded() -> None:
    assert len(available("k", "s", ("x",) * 10_000).value) == 256


def test_a_path_loses_its_owner() -> None:
    assert without_owner("/home/anna/data") == "/home/*/data"
    assert without_owner("/media/anna/STICK") == "/media/*/STICK"
    assert without_owner("/run/media/anna/STICK") == "/run/media/*/STICK"
    assert without_owner("/Users/anna") == "/Users/*"
    assert without_owner("/srv/home/anna") == "/srv/home/anna"


def test_a_fingerprint_is_steady_and_hides_its_input() -> None:
    assert fingerprint("A1234 ") == fingerprint("A1234")
    assert fingerprint("A1234") != fingerprint("A1235")
    assert "A1234" not in fingerprint("A1234")
