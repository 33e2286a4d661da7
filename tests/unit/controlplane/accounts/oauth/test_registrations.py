"""Tests of many registrations: at the limit, the service deletes clients without a valid grant."""

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.accounts.oauth import clients
from controlplane.storage.oauth_tables import OAuthClient
from tests.unit.controlplane.accounts.oauth.program import (
    OAuthFlow,
    Program,
    Visitor,
    code_of,
    complete_flow,
    parameters_of,
)
from tests.unit.controlplane.accounts.people import make_user
from tests.unit.controlplane.running_service import RunningService

CLIENT_LIMIT = 12


@pytest.fixture(autouse=True)
def _few_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "CLIENTS_MAX", CLIENT_LIMIT)
    monkeypatch.setattr(clients, "DELETED_AT_ONCE", 2)


def register(service: RunningService, count: int) -> list[str]:
    """Register clients that no user has authorized, 1 ms apart. Return their ids."""

    def work(session: Session) -> str:
        service.clock.advance(0.001)
        uris = ["https://evil.example/"]
        return clients.add_client(session, "Stranger", uris, service.clock()).id

    return [service.database.write(work) for _ in range(count)]


def registered_ids(service: RunningService) -> set[str]:
    return service.database.read(lambda session: set(session.scalars(select(OAuthClient.id))))


async def test_registrations_by_strangers_do_not_block_other_clients(
    service: RunningService,
) -> None:
    """The service first deletes the clients that no user has authorized."""
    make_user(service)
    first, visitor, tokens = await complete_flow(service)
    consented = Program(service)
    await consented.register()
    code = parameters_of(await visitor.decide(consented.query()))["code"]
    flood = register(service, 3 * CLIENT_LIMIT)
    assert len(registered_ids(service)) <= CLIENT_LIMIT
    assert {first.client_id, consented.client_id} <= registered_ids(service)
    assert flood[-1] in registered_ids(service)
    assert (await first.refresh(tokens["refresh_token"])).status_code == 200
    assert (await consented.exchange(code)).status_code == 200
    _, _, tokens = await complete_flow(service)
    assert tokens["access_token"]


async def test_the_oldest_clients_without_any_grant_are_deleted_first(
    service: RunningService, flow: OAuthFlow
) -> None:
    program, visitor = flow
    revoked_tokens = (await program.exchange(await code_of(flow))).json()
    assert (await program.revoke(revoked_tokens["access_token"])).status_code == 200
    service.clock.advance(3600)
    strangers = register(service, CLIENT_LIMIT - 1)
    service.clock.advance(3600)
    register(service, 1)
    assert registered_ids(service).isdisjoint(strangers[:2])
    assert set(strangers[2:]) <= registered_ids(service)
    register(service, CLIENT_LIMIT)
    assert program.client_id in registered_ids(service)
    # A client whose grant has ended is deleted after all clients that never had a grant.
    others = [Program(service) for _ in range(CLIENT_LIMIT)]
    for other in others:
        await other.register()
        code = parameters_of(await visitor.decide(other.query()))["code"]
        assert (await other.exchange(code)).status_code == 200
        service.clock.advance(60)
    assert program.client_id not in registered_ids(service)
    # All clients have valid grants, so none is deleted.
    ids = registered_ids(service)
    assert len(ids) == CLIENT_LIMIT
    refused = await Program(service).register()
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "600"
    assert registered_ids(service) == ids


async def test_the_authorization_page_refuses_a_deleted_client(service: RunningService) -> None:
    make_user(service)
    program, visitor = Program(service), Visitor(service)
    await program.register()
    await visitor.sign_in(program.query(), "ada@example.com")
    service.clock.advance(1)
    register(service, CLIENT_LIMIT)
    page = await visitor.get(f"/api/auth/oauth2/authorize?{program.query()}")
    assert page.status_code == 400
    assert "its registration has ended" in page.text
