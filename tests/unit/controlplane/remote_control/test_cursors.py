"""Tests of cursors: a cursor continues its own list, and any other text is refused."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.wire.limits import CURSOR_MAX
from controlplane.operation.cursors import LIFETIME, POSITION_MAX, Cursors, SortKey
from controlplane.operation.errors import Refusal

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
CURSORS = Cursors(b"k" * 32, NOW)
LISTING = ("default", "history", "till-1")
positions = st.integers(min_value=0, max_value=POSITION_MAX)


def code_of(cursors: Cursors, listing: tuple[str, ...], cursor: str) -> str:
    with pytest.raises(Refusal) as refused:
        cursors.read(listing, cursor)
    return refused.value.code


@given(positions, positions)
def test_a_written_cursor_can_be_read(value: int, position: int) -> None:
    cursor = CURSORS.write(LISTING, SortKey(value, position))
    assert len(cursor) <= CURSOR_MAX
    assert CURSORS.read(LISTING, cursor) == (value, position)


@given(positions)
def test_a_cursor_belongs_to_one_listing(position: int) -> None:
    cursor = CURSORS.write(LISTING, SortKey(0, position))
    for other in (("default", "devices"), ("other", *LISTING[1:]), (*LISTING[:2], "till-2")):
        assert code_of(CURSORS, other, cursor) == "invalid_cursor"


def test_an_expired_cursor_and_a_cursor_signed_with_another_key_are_refused() -> None:
    cursor = CURSORS.write(LISTING, SortKey(1, 2))
    assert code_of(Cursors(b"x" * 32, NOW), LISTING, cursor) == "invalid_cursor"
    assert code_of(Cursors(CURSORS.key, NOW + LIFETIME), LISTING, cursor) == "invalid_cursor"
    last = Cursors(CURSORS.key, NOW + LIFETIME - timedelta(seconds=1))
    assert last.read(LISTING, cursor) == (1, 2)


@given(st.text(max_size=CURSOR_MAX + 8))
def test_random_text_is_an_invalid_cursor(text: str) -> None:
    assert code_of(CURSORS, LISTING, text) == "invalid_cursor"
