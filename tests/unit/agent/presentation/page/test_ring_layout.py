"""Tests of the positions of boxes and dots on the network map."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.presentation.page.ring_layout import (
    BOX_HEIGHT,
    BOX_WIDTH,
    DOT_DIAMETER,
    Layout,
    Point,
    lay_out,
)
from tests.sizes import examples

CENTRE = Point(0.0, 0.0)
SLACK = 1e-6


@pytest.mark.parametrize("dots", [0, 1])
def test_boxes_do_not_overlap_for_any_number_of_labels_on_a_map(dots: int) -> None:
    for boxes in range(61):
        _assert_boxes_are_apart(lay_out(boxes, dots), boxes)


@given(st.integers(0, 150), st.integers(0, 40))
@settings(max_examples=examples(60))
def test_no_two_boxes_overlap(boxes: int, dots: int) -> None:
    _assert_boxes_are_apart(lay_out(boxes, dots), boxes)


def _assert_boxes_are_apart(layout: Layout, boxes: int) -> None:
    assert len(layout.boxes) == boxes
    points = (CENTRE, *layout.boxes)
    for index, a in enumerate(points):
        for b in points[:index]:
            is_apart = abs(a.x - b.x) >= BOX_WIDTH - SLACK or abs(a.y - b.y) >= BOX_HEIGHT - SLACK
            assert is_apart, (a, b)


@given(st.integers(0, 60), st.integers(1, 600))
@settings(max_examples=examples(40))
def test_dots_overlap_neither_dots_nor_boxes(boxes: int, dots: int) -> None:
    layout = lay_out(boxes, dots)
    assert len(layout.dots) == dots
    assert _nearest_pair(layout.dots) >= DOT_DIAMETER
    for dot in layout.dots:
        for box in (CENTRE, *layout.boxes):
            aside = abs(dot.x - box.x) - BOX_WIDTH / 2
            above = abs(dot.y - box.y) - BOX_HEIGHT / 2
            assert max(aside, above) >= DOT_DIAMETER / 2


@given(st.integers(0, 120), st.integers(0, 2000))
@settings(max_examples=examples(40))
def test_the_layout_fits_its_page(boxes: int, dots: int) -> None:
    layout = lay_out(boxes, dots)
    for point in (CENTRE, *layout.boxes):
        assert abs(point.x) + BOX_WIDTH / 2 <= layout.width / 2
        assert abs(point.y) + BOX_HEIGHT / 2 <= layout.height / 2
    for point in layout.dots:
        assert abs(point.x) + DOT_DIAMETER / 2 <= layout.width / 2
        assert abs(point.y) + DOT_DIAMETER / 2 <= layout.height / 2


def test_sixty_labels_stay_readable_at_the_width_of_a_page() -> None:
    assert lay_out(60, 0).width <= 1300


def test_a_thousand_hosts_fit_a_page() -> None:
    layout = lay_out(40, 1000)
    assert layout.width <= 1600
    assert layout.height < layout.width


def test_the_layout_is_the_same_every_time() -> None:
    assert lay_out(17, 90) == lay_out(17, 90)


def test_rings_are_filled_evenly_from_the_inside() -> None:
    layout = lay_out(12, 0)
    assert len(layout.rings) == 2
    is_inner = [max(abs(p.x) / BOX_WIDTH, abs(p.y) / BOX_HEIGHT) < 2 for p in layout.boxes]
    assert is_inner == sorted(is_inner, reverse=True)
    assert 3 <= sum(is_inner) <= 5


def _nearest_pair(points: tuple[Point, ...]) -> float:
    """Return the least distance between two points. Only points in neighbouring cells of a grid are
    compared. A cell is two dot diameters wide.
    """
    size = 2 * DOT_DIAMETER
    cells: dict[tuple[int, int], list[Point]] = {}
    nearest = math.inf
    for point in points:
        column, row = math.floor(point.x / size), math.floor(point.y / size)
        for x in (column - 1, column, column + 1):
            for y in (row - 1, row, row + 1):
                for other in cells.get((x, y), ()):
                    nearest = min(nearest, math.hypot(point.x - other.x, point.y - other.y))
        cells.setdefault((column, row), []).append(point)
    return nearest
