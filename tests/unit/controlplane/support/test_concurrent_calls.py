"""Tests of concurrent calls with the same support token to two services that share a database."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from controlplane.storage.database import Database
from controlplane.support import routes
from tests.postgresql import new_database
from tests.unit.controlplane.running_service import RunningService, service_on
from tests.unit.controlplane.support.support_client import (
    ORGANIZATION,
    OTHER_ORGANIZATION,
    SupportClient,
)

ROUNDS = 8


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.needs("postgresql"))],
)
def database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    if request.param == "sqlite":
        folder: Path = tmp_path_factory.mktemp("support")
        with closing(Database(str(folder / "service.db"))) as opened:
            yield opened
        return
    with new_database() as url, closing(Database(url)) as opened:
        yield opened


async def test_concurrent_confirmations_of_a_token_get_the_same_reply(
    service: RunningService, support_client: SupportClient
) -> None:
    keys = [service.make_key() for _ in range(4)]
    async with service_on(service.database, service.core.settings, service.clock) as other:
        clients = (support_client, SupportClient(other), support_client, SupportClient(other))
        for _ in range(ROUNDS):
            token = support_client.create_token()
            replies = await asyncio.gather(
                *(
                    each.confirm(token, ORGANIZATION, key)
                    for each, key in zip(clients, keys, strict=True)
                )
            )
            assert {reply.status_code for reply in replies} == {200}
            assert len({reply.content for reply in replies}) == 1
    assert len(await support_client.linked_channels()) == ROUNDS


async def test_only_one_of_two_organizations_can_confirm_a_token(
    service: RunningService, support_client: SupportClient
) -> None:
    keys = {
        ORGANIZATION: service.make_key(),
        OTHER_ORGANIZATION: service.make_key(organization_id=OTHER_ORGANIZATION),
    }
    async with service_on(service.database, service.core.settings, service.clock) as other:
        for _ in range(ROUNDS):
            token = support_client.create_token()
            replies = await asyncio.gather(
                support_client.confirm(token, ORGANIZATION, keys[ORGANIZATION]),
                SupportClient(other).confirm(token, OTHER_ORGANIZATION, keys[OTHER_ORGANIZATION]),
            )
            assert sorted(reply.status_code for reply in replies) == [200, 409]
            (confirmation,) = [reply.json() for reply in replies if reply.status_code == 200]
            owner = confirmation["organizationId"]
            reply = await support_client.call(routes.INSPECT, keys[owner], token=token)
            assert reply.json() == confirmation | {"organizations": []}
    counts = [len(await support_client.linked_channels(key)) for key in keys.values()]
    assert sum(counts) == ROUNDS


async def test_a_link_confirmed_and_ended_concurrently_is_ended(
    service: RunningService, support_client: SupportClient
) -> None:
    async with service_on(service.database, service.core.settings, service.clock) as other:
        for _ in range(ROUNDS):
            token = support_client.create_token()
            confirmed, ended = await asyncio.gather(
                support_client.confirm(token),
                SupportClient(other).call(routes.DISCONNECT, service.write_key, token=token),
            )
            assert ended.status_code == 200
            assert confirmed.status_code in {200, 409}
            # The reply to the disconnection names the organization if the link was confirmed
            # before it ended.
            assert (ended.json()["organizationId"] == ORGANIZATION) is (
                confirmed.status_code == 200
            )
            inspection = (await support_client.call(routes.INSPECT, token=token)).json()
            assert inspection == ended.json() | {"organizations": []}
    assert await support_client.linked_channels() == []
