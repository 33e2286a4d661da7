"""The three sizes of the test suite.

| size | what runs | command |
|---|---|---|
| small | unmarked tests of `tests/unit` and `tests/contract` | `make quick` |
| medium | also tests marked `medium` or `needs`, and unmarked tests elsewhere | `make test` |
| large | also tests marked `large`: complete matrices, and tests with more data | `make test-all` |

Hypothesis uses the same examples each time, so that the result is always the same. `make
test-random-examples` searches for new examples. docs/testing.md lists the large tests.
"""

import os
from collections.abc import Container, Iterable
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

SIZES: Final = ("small", "medium", "large")
SMALL_FOLDERS: Final = ("tests/unit/", "tests/contract/")
_RANDOM: Final = int(os.environ.get("RANDOM_EXAMPLES", "0"))
"""Number of random examples of each test. Zero means fixed examples."""
_EXAMPLES: Final = {"small": 15, "medium": 15, "large": 100}
_size: str = "large"


def choose(size: str) -> None:
    """Set the size of this run. Must be called before any test module is imported."""
    global _size  # noqa: PLW0603 - one run has one size
    _size = size
    for name, count in _EXAMPLES.items():
        settings.register_profile(
            name,
            # The duration of an example depends on the machine, so it must not fail a test.
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
            max_examples=_RANDOM or count,
            derandomize=not _RANDOM,
            # A run with fixed examples cannot use the examples that earlier runs stored.
            **({} if _RANDOM else {"database": None}),
        )
    settings.load_profile(size)


def amount(*, small: int | None = None, medium: int, large: int, variable: str = "") -> int:
    """Return the amount for the size of this run, such as a number of repetitions.

    Args:
        small: the amount for a small run. The default is ``medium``.
        variable: an environment variable with the amount for any size, which a make target can set.
    """
    if variable in os.environ:
        return int(os.environ[variable])
    return {"small": medium if small is None else small, "medium": medium, "large": large}[_size]


def examples(count: int) -> int:
    """Return the number of hypothesis examples for the size of this run. ``count`` is the number
    for a large run with fixed examples.
    """
    return max(5, count * (_RANDOM or _EXAMPLES[_size]) // _EXAMPLES["large"])


def large_except(medium_cases: Container[Any], cases: Iterable[Any]) -> list[Any]:
    """Return the cases as parameters for ``parametrize``. Cases that are not in ``medium_cases``
    run only in large runs.

    The items of a case that is a tuple become separate arguments of the test.
    """
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if case in medium_cases else (pytest.mark.large,),
        )
        for case in cases
    ]


def size_of(item: pytest.Item) -> str:
    """Return the smallest size of run that includes a test."""
    for size in reversed(SIZES[1:]):
        if item.get_closest_marker(size) is not None:
            return size
    if item.get_closest_marker("needs") is not None:
        return "medium"
    return "small" if item.nodeid.startswith(SMALL_FOLDERS) else "medium"


def select(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests that the size of this run includes, and the tests that it leaves out."""
    limit = SIZES.index(_size)
    selected: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (selected if SIZES.index(size_of(item)) <= limit else left_out).append(item)
    return selected, left_out
