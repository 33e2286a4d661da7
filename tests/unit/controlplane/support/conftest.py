"""Fixtures of the support tests: the settings of the service, and a `SupportClient`."""

import pytest

from controlplane.settings import Settings
from tests.unit.controlplane.accounts.people import MEMORY_KIB, PASSES
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.support.support_client import SupportClient


@pytest.fixture
def settings() -> Settings:
    return Settings(
        rate_per_s=0, argon2_memory_kib=MEMORY_KIB, argon2_passes=PASSES, refusal_delay_s=0
    )


@pytest.fixture
def support_client(service: RunningService) -> SupportClient:
    return SupportClient(service)
