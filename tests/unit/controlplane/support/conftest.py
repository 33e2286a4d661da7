"""Fixtures of the support tests: the settings of the service, and a `Desk` that calls it."""

import pytest

from controlplane.settings import Settings
from tests.unit.controlplane.accounts.people import MEMORY_KIB, PASSES
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.support.desk import Desk


@pytest.fixture
def settings() -> Settings:
    return Settings(
        rate_per_s=0, argon2_memory_kib=MEMORY_KIB, argon2_passes=PASSES, refusal_delay_s=0
    )


@pytest.fixture
def desk(service: RunningService) -> Desk:
    return Desk(service)
