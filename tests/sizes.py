"""The three sizes of the test suite.

| size | what runs | command |
|---|---|---|
| small | unmarked tests of `tests/unit` and `tests/contract` | `make quick` |
| medium | also tests marked `medium` or `needs`, and unmarked tests elsewhere | `make test` |
| large | also tests marked `large`: whole matrices and long forms | `make test-all` |

Small and medium runs use the same examples each time, so their result is always the same. In a
large run, hypothesis searches for new ones. docs/testing.md lists what is large.
"""

import os
from collections.abc import Callable, Iterable
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

SIZES: Final = ("small", "medium", "large")
SMALL_FOLDERS: Final = ("tests/unit/", "tests/contract/")
_EXAMPLES: Final = {"small": 15, "medium": 15, "large": 100}
_chosen: str = "large"


def choose(size: str) -> None:
    """Set the size of this run, before any test module is imported."""
    global _chosen  # noqa: PLW0603 - one run has one size
    _chosen = size
    for name, count in _EXAMPLES.items():
        settings.register_profile(
            name,
            # How long an example takes depends on the machine.
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
            max_examples=count,
            derandomize=name != "large",
            # A derandomized run does not use the examples of earlier runs.
            **({} if name == "large" else {"database": None}),
        )
    settings.load_profile(size)


def amount(*, small: int | None = None, medium: int, large: int, variable: str = "") -> int:
    """Return the amount for this run's size.

    Args:
        small: default: as medium.
        variable: environment variable that overrides all sizes, for a make target of its own.
    """
    if variable in os.environ:
        return int(os.environ[variable])
    return {"small": medium if small is None else small, "medium": medium, "large": large}[_chosen]


def examples(count: int) -> int:
    """Return the share of ``count`` hypothesis examples that belongs to this run's size."""
    return max(5, count * _EXAMPLES[_chosen] // _EXAMPLES["large"])


def large_except(chosen: Callable[[Any], bool], cases: Iterable[Any]) -> list[Any]:
    """Return all cases for ``parametrize``; those that are not chosen run in large runs only.

    Cases that are tuples become the arguments of one call.
    """
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=_marks(chosen(case)))
        for case in cases
    ]


def _marks(is_chosen: bool) -> tuple[pytest.MarkDecorator, ...]:
    return () if is_chosen else (pytest.mark.large,)


def size_of(item: pytest.Item) -> str:
    """Return the smallest size that includes a test."""
    for size in reversed(SIZES[1:]):
        if item.get_closest_marker(size) is not None:
            return size
    if item.get_closest_marker("needs") is not None:
        return "medium"
    return "small" if item.nodeid.startswith(SMALL_FOLDERS) else "medium"


def select(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests that belong to this run, and those that do not."""
    limit = SIZES.index(_chosen)
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (kept if SIZES.index(size_of(item)) <= limit else left_out).append(item)
    return kept, left_out
