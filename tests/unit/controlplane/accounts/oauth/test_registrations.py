"""Tests of many registrations: at the limit, the service deletes clients without a grant."""

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

MOST = 12


@pytest.fixture(autouse=True)
def _few_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "CLIENTS_MAX", MOST)
    monkeypatch.setattr(clients, "DELETED_AT_ONCE", 2)


def register(service: RunningService, count: int) -> list[str]:
    """Register clients as strangers do. Return their ids."""

    def work(session: Session) -> str:
        service.clock.advance(0.001)
        uris = ["https://evil.example/"]
        return clients.add_client(session, "Stranger", uris, service.clock()).id

    return [service.database.write(work) for _ in range(count)]


def registered(service: RunningService) -> set[str]:
    return service.database.read(lambda session: set(session.scalars(select(OAuthClient.id))))


async def test_registrations_by_strangers_do_not_block_other_clients(
    service: RunningService,
) -> None:
    """No user has authorized the clients of the strangers, so the service deletes them first."""
    make_user(service)
    first, visitor, tokens = await complete_flow(service)
    waiting = Program(service)
    await waiting.register()
    code = parameters_of(await visitor.decide(waiting.query()))["code"]
    flood = register(service, 3 * MOST)
    assert len(registered(service)) <= MOST
    assert {first.client_id, waiting.client_id} <= registered(service)
    assert flood[-1] in registered(service)
    assert (await first.refresh(tokens["refresh_token"])).status_code == 200
    assert (await waiting.exchange(code)).status_code == 200
    _, _, tokens = await complete_flow(service)
    assert tokens["access_token"]


async def test_the_oldest_clients_without_any_grant_are_deleted_first(
    service: RunningService, flow: OAuthFlow
) -> None:
    program, visitor = flow
    ended = (await program.exchange(await code_of(flow))).json()
    assert (await program.revoke(ended["access_token"])).status_code == 200
    service.clock.advance(3600)
    strangers = register(service, MOST - 1)
    service.clock.advance(3600)
    register(service, 1)
    assert registered(service).isdisjoint(strangers[:2])
    assert set(strangers[2:]) <= registered(service)
    register(service, MOST)
    assert program.client_id in registered(service)
    # A client whose grant has ended is deleted after all clients that never had a grant.
    others = [Program(service) for _ in range(MOST)]
    for other in others:
        await other.register()
        visitor_code = parameters_of(await visitor.decide(other.query()))["code"]
        assert (await other.exchange(visitor_code)).status_code == 200
        service.clock.advance(60)
    assert program.client_id not in registered(service)
    # All clients have valid grants, so none is deleted.
    used = registered(service)
    assert len(used) == MOST
    refused = await Program(service).register()
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "600"
    assert registered(service) == used


async def test_the_authorization_page_refuses_a_deleted_client(service: RunningService) -> None:
    make_user(service)
    program, visitor = Program(service), Visitor(service)
    await program.register()
    await visitor.sign_in(program.query(), "ada@example.com")
    service.clock.advance(1)
    register(service, MOST)
    page = await visitor.get(f"/api/auth/oauth2/authorize?{program.query()}")
    assert page.status_code == 400
    assert "its registration has ended" in page.text
