"""Settings of the account tests: no rate limit, and a password hash with minimum cost."""

import pytest

from controlplane.settings import Settings
from tests.unit.controlplane.accounts.people import MEMORY_KIB, PASSES


@pytest.fixture
def settings() -> Settings:
    return Settings(
        rate_per_s=0, argon2_memory_kib=MEMORY_KIB, argon2_passes=PASSES, refusal_delay_s=0
    )
