"""The service, ready to be called."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controlplane.settings import Settings
from tests.unit.controlplane.running_service import RunningService, running_service


@pytest.fixture
def settings() -> Settings:
    """Overridden where a test is about a setting. No rate limit: hypothesis is quick."""
    return Settings(rate_per_s=0)


@pytest.fixture
async def service(tmp_path: Path, settings: Settings) -> AsyncIterator[RunningService]:
    async with running_service(tmp_path, settings) as running:
        yield running
