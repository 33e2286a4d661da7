"""Cursors come back as they were given, and nothing else passes for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.wire.limits import CURSOR_MAX
from controlplane.operation.cursors import POSITION_MAX, read_cursor, write_cursor
from controlplane.operation.errors import Refusal

positions = st.integers(min_value=0, max_value=POSITION_MAX)


@given(positions, positions)
def test_a_cursor_is_read_as_it_was_written(first: int, second: int) -> None:
    cursor = write_cursor("history", first, second)
    assert len(cursor) <= CURSOR_MAX
    assert read_cursor("history", cursor) == (first, second)


@given(positions)
def test_a_cursor_is_of_one_listing_only(position: int) -> None:
    with pytest.raises(Refusal) as refused:
        read_cursor("history", write_cursor("devices", position))
    assert refused.value.code == "invalid_cursor"


@given(st.text(max_size=CURSOR_MAX))
def test_any_text_is_positions_or_an_invalid_cursor(text: str) -> None:
    try:
        found = read_cursor("devices", text)
    except Refusal as refused:
        code = refused.code
    else:
        code = "invalid_cursor" if min(found) >= 0 else ""
    assert code == "invalid_cursor"
