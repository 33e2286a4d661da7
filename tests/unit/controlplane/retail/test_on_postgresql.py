"""Tests of concurrent uses of a refresh token on PostgreSQL, with transactions in parallel."""

import asyncio
from collections.abc import Iterator

import pytest
from sqlalchemy.orm import Session

from controlplane.retail.credentials import clients
from controlplane.retail.credentials.clients import NewRefreshToken
from controlplane.storage.database import Database
from tests.postgresql import is_transaction_waiting, new_database
from tests.unit.controlplane.running_service import FakeClock

pytestmark = pytest.mark.needs("postgresql")


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with new_database() as url:
        opened = Database(url)
        yield opened
        opened.close()


async def test_the_reuse_of_an_old_token_during_a_refresh_leaves_no_valid_token(
    database: Database,
) -> None:
    """A stolen token is used again during a refresh that is not committed yet."""
    clock = FakeClock()

    def exchange(session: Session) -> NewRefreshToken:
        _, api_key = clients.create_key(
            session, name="till", organization_id="org-0001", environment="test",
            can_write=False, now=clock(),
        )  # fmt: skip
        session.flush()
        first = clients.exchange(session, api_key, clock())
        assert first is not None
        return first

    def refresh(token: str) -> NewRefreshToken | None:
        return database.write(lambda session: clients.refresh(session, token, clock()))

    first = database.write(exchange)
    second = refresh(first.secret)
    assert second is not None
    with Session(database._engine) as session, session.begin():
        third = clients.refresh(session, second.secret, clock())
        session.flush()
        reuse = asyncio.create_task(asyncio.to_thread(refresh, first.secret))
        while not await asyncio.to_thread(database.read, is_transaction_waiting):
            assert not reuse.done()
    assert await reuse is None
    assert third is not None
    assert refresh(third.secret) is None
    caller = database.read(lambda session: clients.caller_of(session, first.key_id, first.family))
    assert caller is None
