"""Fixtures of all scenarios: a directory for state, and the parameters of the selected tests."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MEMORY = Path("/dev/shm")


@pytest.fixture
def memory_home() -> Iterator[Path]:
    """An empty directory. It is in /dev/shm if this exists, because fsync is fast in memory."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as path:
        yield Path(path)


@pytest.fixture(scope="module")
def selected_parameters(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """The parameters of each selected test in the module that uses this fixture."""
    return [
        item.callspec.params
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.module is request.module
        and hasattr(item, "callspec")
    ]
