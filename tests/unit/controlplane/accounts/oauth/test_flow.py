"""The way from a registration to a token, as the standards have it."""

from authlib.oauth2.rfc8414 import AuthorizationServerMetadata

from tests.unit.controlplane.accounts.oauth.program import (
    ISSUER,
    RESOURCE,
    Program,
    Visitor,
    let_read,
    parameters_of,
)
from tests.unit.controlplane.accounts.people import make_person
from tests.unit.controlplane.running_service import RunningService


async def test_a_program_is_let_read(service: RunningService) -> None:
    make_person(service)
    program, _, tokens = await let_read(service)
    assert tokens["token_type"] == "Bearer"
    assert tokens["expires_in"] == 3600
    assert tokens["access_token"] != tokens["refresh_token"]
