"""Tests of texts that are shortened or wrapped to fit into the network map."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.presentation.page.text_width import estimated_width, fit, wrap

TEXTS = st.text(st.sampled_from("aW厨 .i1"), min_size=1, max_size=60)


@given(TEXTS, st.floats(60, 200), st.integers(0, 5))
def test_a_shortened_text_fits_and_contains_an_ellipsis(
    text: str, width: float, keep_end: int
) -> None:
    shortened = fit(text, width, 10, keep_end=keep_end)
    assert estimated_width(shortened, 10) <= width + 0.01 or shortened == "…"
    assert shortened == text or "…" in shortened


@given(TEXTS, st.floats(60, 200))
@example("1W厨厨厨厨", 60.0)
def test_wrapped_lines_fit_and_mark_omitted_text_with_an_ellipsis(text: str, width: float) -> None:
    lines = wrap(text, width, 10)
    assert 1 <= len(lines) <= 2
    assert all(estimated_width(line, 10) <= width + 0.01 for line in lines)
    assert " ".join(lines) == text or any("…" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("till-1", ("till-1",)),
        ("Printer of table zone 38", ("Printer of table", "zone 38")),
        ("192.168.100.100", ("192.168.100.100",)),
    ],
)
def test_labels_of_the_map_are_wrapped(text: str, lines: tuple[str, ...]) -> None:
    # the width of the text in a box of the map, and the font size of a name
    assert wrap(text, 109, 12.5) == lines


def test_a_shortened_address_keeps_its_end() -> None:
    assert fit("fe80::1c4a:7dff:fe11:9a2f", 106, 11, keep_end=6).endswith("1:9a2f")
