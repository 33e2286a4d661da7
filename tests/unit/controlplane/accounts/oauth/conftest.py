"""Fixtures of the OAuth tests: a service with an https origin, and a signed-in user."""

import pytest

from controlplane.settings import Settings
from tests.unit.controlplane.accounts.oauth.program import ISSUER, OAuthFlow, Program, Visitor
from tests.unit.controlplane.accounts.people import MEMORY_KIB, PASSES, make_user
from tests.unit.controlplane.running_service import RunningService


@pytest.fixture
def settings() -> Settings:
    return Settings(
        rate_per_s=0,
        argon2_memory_kib=MEMORY_KIB,
        argon2_passes=PASSES,
        refusal_delay_s=0,
        origin=ISSUER,
    )


@pytest.fixture
async def flow(service: RunningService) -> OAuthFlow:
    make_user(service)
    program, visitor = Program(service), Visitor(service)
    await program.register()
    await visitor.sign_in(program.query(), "ada@example.com")
    return OAuthFlow(program, visitor)
