from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.agent.tasks.harness import Harness, harness


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Harness]:
    """A device with a confirmed binding, and its tasks."""
    with harness(tmp_path) as device:
        yield device


@pytest.fixture
async def stranger(tmp_path: Path) -> AsyncIterator[Harness]:
    """A device without a binding, and its tasks."""
    with harness(tmp_path, bound=False) as device:
        yield device
