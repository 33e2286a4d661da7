"""Tests of concurrent code exchanges, token refreshes and member removals on PostgreSQL."""

import asyncio
from collections.abc import Iterator

import pytest
from sqlalchemy import func, select

from controlplane.storage.database import Database
from controlplane.storage.oauth_tables import OAuthGrant, OAuthToken
from tests.postgresql import new_database
from tests.unit.controlplane.accounts.oauth.program import (
    OAuthFlow,
    Program,
    caller_of_token,
    code_of,
)
from tests.unit.controlplane.accounts.people import UserAccount, end_membership, make_user
from tests.unit.controlplane.running_service import RunningService, service_on

pytestmark = pytest.mark.needs("postgresql")
AT_ONCE = 4  # concurrent calls of each service
ROUNDS = 4  # the order of the concurrent calls can differ in each round


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with new_database() as url:
        opened = Database(url)
        yield opened
        opened.close()


def client_at(service: RunningService, program: Program) -> Program:
    """Return a client that calls ``service`` with the client id of ``program``."""
    result = Program(service)
    result.client_id = program.client_id
    return result


def count_grants_and_tokens(service: RunningService) -> tuple[int, int]:
    """Return the number of grants and of tokens in the database."""

    def work(session: object) -> tuple[int, int]:
        queries = [select(func.count()).select_from(each) for each in (OAuthGrant, OAuthToken)]
        grants, tokens = (session.scalar(each) for each in queries)  # type: ignore[attr-defined]
        return grants, tokens

    return service.database.read(work)


async def test_many_exchanges_of_one_code_leave_no_grant(
    service: RunningService, flow: OAuthFlow
) -> None:
    code = await code_of(flow)
    async with service_on(service.database, service.core.settings, service.clock) as other:
        programs = [flow.program, client_at(other, flow.program)] * AT_ONCE
        replies = await asyncio.gather(*(each.exchange(code) for each in programs))
        tokens = [each.json() for each in replies if each.status_code == 200]
        assert len(tokens) == 1
        assert {each.status_code for each in replies} == {200, 400}
        assert await caller_of_token(other, tokens[0]["access_token"]) is None
    assert count_grants_and_tokens(service) == (0, 0)


async def test_many_refreshes_with_one_token_leave_no_grant(
    service: RunningService, flow: OAuthFlow
) -> None:
    token = (await flow.program.exchange(await code_of(flow))).json()["refresh_token"]
    async with service_on(service.database, service.core.settings, service.clock) as other:
        programs = [flow.program, client_at(other, flow.program)] * AT_ONCE
        replies = await asyncio.gather(*(each.refresh(token) for each in programs))
        tokens = [each.json() for each in replies if each.status_code == 200]
        assert len(tokens) == 1
        assert await caller_of_token(other, tokens[0]["access_token"]) is None
    assert count_grants_and_tokens(service) == (0, 0)


async def test_codes_exchanged_while_the_membership_ends_leave_no_token(
    service: RunningService, flow: OAuthFlow
) -> None:
    """No grant or token remains, whether the exchange or the end of the membership is first."""
    user = make_user(service)
    make_user(service, organization_id="org-2")
    program, visitor = flow
    for _ in range(ROUNDS):
        await visitor.sign_in(program.query(), "ada@example.com")
        codes = [await code_of(flow) for _ in range(AT_ONCE)]
        removal = asyncio.to_thread(
            end_membership, service, UserAccount(user.id, user.email), "org-0001"
        )
        replies, _ = await asyncio.gather(
            asyncio.gather(*(program.exchange(code) for code in codes)), removal
        )
        assert {each.status_code for each in replies} <= {200, 400}
        assert count_grants_and_tokens(service) == (0, 0)
        make_user(service)
