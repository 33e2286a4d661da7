"""Tests of amounts in whole minor units: how they are split, multiplied and rounded."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.figures.money import (
    divide,
    milli,
    percent,
    pieces,
    price_of,
    ratio,
    split,
    tax_within,
)

AMOUNTS = st.integers(0, 10**12)


@given(amount=AMOUNTS, weights=st.lists(st.integers(0, 10**9), min_size=1, max_size=20))
def test_split_amounts_sum_up_and_differ_by_less_than_a_unit_from_the_exact_share(
    amount: int, weights: list[int]
) -> None:
    parts = split(amount, weights)
    assert sum(parts) == amount
    whole = sum(weights)
    if whole:
        for part, weight in zip(parts, weights, strict=True):
            assert abs(part - Fraction(amount * weight, whole)) < 1


def test_the_largest_remainders_get_the_units_that_are_left_over() -> None:
    assert split(1, [1, 2]) == [0, 1]
    assert split(5, [1, 1, 2]) == [1, 1, 3]
    assert split(1, [1, 1]) == [1, 0]


def test_split_without_weights_assigns_everything_to_the_first_part() -> None:
    assert split(5, [0, 0]) == [5, 0]
    assert split(5, []) == []


@given(amount=AMOUNTS, rate=st.integers(0, 100_000))
def test_tax_differs_from_the_exact_tax_by_at_most_half_a_unit(amount: int, rate: int) -> None:
    exact = Fraction(amount * rate, 100_000 + rate)
    assert abs(tax_within(amount, rate) - exact) <= Fraction(1, 2)


@pytest.mark.parametrize(("amount", "rounded"), [(0, 0), (1, 1), (2, 1), (3, 2), (5, 3), (7, 4)])
def test_half_units_are_rounded_up(amount: int, rounded: int) -> None:
    assert divide(amount, 2) == rounded


def test_large_amounts_are_not_rounded_by_floats() -> None:
    assert divide(10**18 + 1, 2) == 5 * 10**17 + 1


@pytest.mark.parametrize(
    ("price", "quantity", "exponent", "cost"),
    [(999, 3, 0, 2997), (999, 500, 3, 500), (1000, 333, 3, 333), (250, 2, -1, 5000)],
)
def test_the_cost_of_a_quantity_is_calculated(
    price: int, quantity: int, exponent: int, cost: int
) -> None:
    assert price_of(price, quantity, exponent) == cost


def test_quantities_are_converted_to_thousandths_and_pieces() -> None:
    assert [milli(1, exponent) for exponent in (3, 2, 1, 0, -1)] == [1, 10, 100, 1000, 10_000]
    assert pieces(12, 0) == 12
    assert pieces(2, -1) == 20
    assert pieces(375, 3) == 1


def test_a_percentage_or_ratio_to_zero_is_none() -> None:
    assert percent(1, 0) is None
    assert ratio(1, 0) is None
    assert percent(1, 4) == 25.0
