"""Positions around a centre: labelled boxes on inner rings, dots on outer ones.

A ring is a superellipse |x|⁴ + |y|⁴ = r⁴, a form between circle and rectangle. On such rings, boxes
that are wider than high are packed closely in a landscape format. The centre is (0, 0).

Boxes are first laid out in a plane in which each has the size 1 by 1. Then the plane is scaled, so
that all lengths of a `Layout` are in pixels. In the plane, two boxes overlap if the distance of
their centres in the maximum norm is below 1. Points of two rings of radii r < s are at least
s - r apart in the 4-norm, so at least (s - r) / 2^¼ in the maximum norm. Boxes on rings whose radii
differ by 2^¼ therefore never overlap.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

BOX_WIDTH: Final = 112.0
BOX_HEIGHT: Final = 78.0
DOT_DIAMETER: Final = 15.0
MARGIN: Final = 12.0

_EXPONENT: Final = 4
_SAMPLES: Final = 1440
"""Number of points in the outline of a ring."""
_RING_STEP: Final = 2 ** (1 / _EXPONENT) + 0.01
"""Difference of the radii of adjacent rings, in the plane of boxes of size 1 by 1."""
_BOX_REACH: Final = 0.5 * 2 ** (1 / _EXPONENT)
"""Distance from the centre of a box of size 1 by 1 to its corners, in the 4-norm."""
_DOT_STEP: Final = 1.35 * DOT_DIAMETER
"""Minimum distance between adjacent dots along a ring, and distance of the rings of dots,
in pixels."""
_SPACING: Final = {1: 1.3, 2: 1.12}
"""Factor for the space of a box, by the number of rings. Boxes on few rings get more space, unless
the layout has dots."""

_TOLERANCE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout of ``width`` by ``height``. Its centre is free for one more box.

    ``boxes`` and ``dots`` are the positions of their centres, the innermost first. ``rings`` are
    the closed curves on which the boxes stand.
    """

    width: float
    height: float
    boxes: tuple[Point, ...]
    dots: tuple[Point, ...]
    rings: tuple[tuple[Point, ...], ...]


def lay_out(boxes: int, dots: int) -> Layout:
    """Place ``boxes`` labelled boxes and ``dots`` dots around a box in the centre."""
    counts = _shares(boxes)
    spacing = _SPACING.get(len(counts), 1.0) if not dots else 1.0
    box = Point(BOX_WIDTH * spacing, BOX_HEIGHT * spacing)
    points: list[Point] = []
    rings: list[tuple[Point, ...]] = []
    for number, count in enumerate(counts, start=1):
        radius = number * _RING_STEP
        points += _scaled(_even_points(radius, radius, count, _turn(number)), box)
        rings.append(_outline(radius * box.x, radius * box.y))
    reach = len(counts) * _RING_STEP + _BOX_REACH
    half = Point(reach * box.x, reach * box.y)
    dot_points, half = _place_dots(half, dots)
    return Layout(
        width=2 * (half.x + MARGIN),
        height=2 * (half.y + MARGIN),
        boxes=tuple(points),
        dots=dot_points,
        rings=tuple(rings),
    )


def _shares(boxes: int) -> list[int]:
    """Return the number of boxes on each ring. All rings are about equally full."""
    capacities: list[int] = []
    while sum(capacities) < boxes:
        capacities.append(_capacity(len(capacities) + 1))
    total = sum(capacities)
    shares = [boxes * capacity // total for capacity in capacities]
    for number in reversed(range(len(shares))):
        spare = boxes - sum(shares)
        shares[number] += min(spare, capacities[number] - shares[number])
    return shares


@lru_cache(maxsize=64)
def _capacity(ring: int) -> int:
    """Return the maximum number of evenly spread boxes on a ring that do not overlap.

    The function counts upwards and stops at the first number of boxes that overlap. A larger number
    might fit, because its boxes have other positions at the bends of the ring, but it is not tried.
    """
    radius, turn = ring * _RING_STEP, _turn(ring)
    count = 1
    while _are_apart(_even_points(radius, radius, count + 1, turn)):
        count += 1
    return count


def _turn(ring: int) -> float:
    """Return the shift of the boxes on a ring (see `_even_points`)."""
    return ring % 2 / 2


def _are_apart(points: tuple[Point, ...]) -> bool:
    return all(
        max(abs(a.x - b.x), abs(a.y - b.y)) >= 1 - _TOLERANCE
        for index, a in enumerate(points)
        for b in points[:index]
    )


def _place_dots(inner: Point, dots: int) -> tuple[tuple[Point, ...], Point]:
    """Place the dots on rings around the boxes.

    Return the positions of the dots, and half the size of the area with the boxes and dots.
    ``inner`` is half the size of the area with the boxes.
    """
    points: list[Point] = []
    half, turn = inner, 0.0
    while len(points) < dots:
        half = Point(half.x + _DOT_STEP, half.y + _DOT_STEP)
        capacity = math.floor(_length(_outline(half.x, half.y)) / _DOT_STEP)
        count = min(capacity, dots - len(points))
        points += _even_points(half.x, half.y, count, turn)
        turn = 0.5 - turn
    rim = DOT_DIAMETER / 2 if dots else 0.0
    return tuple(points), Point(half.x + rim, half.y + rim)


@lru_cache(maxsize=512)
def _even_points(half_x: float, half_y: float, count: int, turn: float) -> tuple[Point, ...]:
    """Return ``count`` points at equal distances along the ring, clockwise from its top.

    ``turn`` shifts the points by this fraction of the distance, so that points of adjacent rings
    are not aligned.
    """
    if count == 0:
        return ()
    outline = _outline(half_x, half_y)
    step = _length(outline) / count
    distances = [(number + turn) * step for number in range(count)]
    points: list[Point] = []
    passed_length = 0.0
    for start, end in pairwise((*outline, outline[0])):
        length = math.hypot(end.x - start.x, end.y - start.y)
        while len(points) < count and distances[len(points)] <= passed_length + length:
            part = (distances[len(points)] - passed_length) / length
            points.append(
                Point(start.x + part * (end.x - start.x), start.y + part * (end.y - start.y))
            )
        passed_length += length
    return tuple(points)


@lru_cache(maxsize=128)
def _outline(half_x: float, half_y: float) -> tuple[Point, ...]:
    """Return points along the superellipse, clockwise from its top."""
    power = 2 / _EXPONENT
    points = []
    for number in range(_SAMPLES):
        angle = 2 * math.pi * number / _SAMPLES
        sine, cosine = math.sin(angle), math.cos(angle)
        points.append(
            Point(
                half_x * math.copysign(abs(sine) ** power, sine),
                -half_y * math.copysign(abs(cosine) ** power, cosine),
            )
        )
    return tuple(points)


def _length(outline: tuple[Point, ...]) -> float:
    return sum(math.hypot(b.x - a.x, b.y - a.y) for a, b in pairwise((*outline, outline[0])))


def _scaled(points: tuple[Point, ...], box: Point) -> list[Point]:
    return [Point(point.x * box.x, point.y * box.y) for point in points]
