from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.agent.tasks.harness import House, house


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[House]:
    """A bound device at work."""
    with house(tmp_path) as made:
        yield made


@pytest.fixture
async def stranger(tmp_path: Path) -> AsyncIterator[House]:
    """A device without a binding."""
    with house(tmp_path, bound=False) as made:
        yield made
