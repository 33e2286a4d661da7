"""Tests of users and members with two services that share a PostgreSQL database."""

import asyncio
from collections.abc import Iterator

import pytest
from sqlalchemy import select

from controlplane.accounts import users
from controlplane.accounts.members.operations import PREFIX as MEMBERS
from controlplane.accounts.throttle import FAILURES_MAX
from controlplane.storage.account_tables import User
from controlplane.storage.database import Database
from controlplane.web.background import poll_changes
from tests.postgresql import new_database
from tests.unit.controlplane.accounts.people import OVERVIEW, Browser, end_membership, make_user
from tests.unit.controlplane.running_service import RunningService, service_on

pytestmark = pytest.mark.needs("postgresql")


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with new_database() as url:
        opened = Database(url)
        yield opened
        opened.close()


async def test_concurrent_wrong_passwords_at_all_services_count_together(
    service: RunningService,
) -> None:
    make_user(service)
    async with service_on(service.database, service.core.settings, service.clock) as other:
        tries = [
            Browser(each).sign_in(password="not this one, no")
            for each in (service, other) * FAILURES_MAX
        ]
        statuses = [each.status_code for each in await asyncio.gather(*tries)]
    assert statuses.count(401) == FAILURES_MAX
    assert statuses.count(429) == FAILURES_MAX


async def test_a_membership_ended_at_one_service_ends_at_the_other_service(
    service: RunningService,
) -> None:
    user = make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    body = {"name": "till", "canWrite": True, "locations": []}
    created_key = (await browser.post("/console/api/profile/create-key", body)).json()
    async with service_on(service.database, service.core.settings, service.clock) as other:
        await poll_changes(other.core)
        assert (await other.post(OVERVIEW, api_key=created_key["secret"])).status_code == 200
        end_membership(service, user, "org-0001")
        await poll_changes(other.core)
        assert (await other.post(OVERVIEW, api_key=created_key["secret"])).status_code == 401
        other_browser = Browser(other)
        other_browser.token = browser.token
        assert (await other_browser.post(OVERVIEW)).status_code == 401


async def test_concurrent_changes_of_permissions_are_all_counted(service: RunningService) -> None:
    user = make_user(service)
    await asyncio.gather(
        *(
            service.core.write(
                lambda session: users.increment_permissions_version(session, user.id)
            )
            for _ in range(8)
        )
    )
    query = select(User.permissions_version).where(User.id == user.id)
    assert service.database.read(lambda session: session.scalars(query).one()) == 9


async def test_two_accounts_cannot_have_the_same_email_address(service: RunningService) -> None:
    """The database refuses a second account whose address differs only in letter case.

    `Database.write` repeats a refused transaction. After the last attempt, it reports that the
    database is busy.
    """

    def add(email: str) -> None:
        service.database.write(
            lambda session: users.add_user(
                session, email=email, name="", password_hash="", now=service.clock()
            )
        )

    add("Ada@Example.com")
    with pytest.raises(Exception, match="busy"):
        add("ada@example.COM")


async def test_one_owner_remains_if_two_owners_remove_each_other_concurrently(
    service: RunningService,
) -> None:
    owners = [make_user(service, email) for email in ("ada@example.com", "eve@example.com")]
    browsers = [Browser(service), Browser(service)]
    for browser, user in zip(browsers, owners, strict=True):
        await browser.sign_in(user.email)
    ada, eve = browsers
    replies = await asyncio.gather(
        ada.post(f"{MEMBERS}/remove", {"userId": str(owners[1].id)}),
        eve.post(f"{MEMBERS}/remove", {"userId": str(owners[0].id)}),
    )
    # The second request is refused: its user is no longer a member (401) or is the last
    # owner (409).
    assert sorted(each.status_code for each in replies)[0] == 200
    assert sorted(each.status_code for each in replies)[1] in {401, 409}
    with service.database.read(lambda session: session) as session:
        assert len(users.members(session, "org-0001")) == 1


async def test_only_one_of_concurrent_uses_of_an_invitation_succeeds(
    service: RunningService,
) -> None:
    make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    body = {"email": "bob@example.com", "role": "viewer", "locations": []}
    link = (await browser.post(f"{MEMBERS}/invite", body)).json()["path"]
    join_body = {"code": link.rpartition("/")[2], "name": "Bob", "password": "a password of Bob's"}
    replies = await asyncio.gather(
        *(Browser(service).post("/api/auth/join", join_body) for _ in range(4))
    )
    assert [each.status_code for each in replies].count(200) == 1
    assert {each.status_code for each in replies} <= {200, 403, 404, 409}
    result = (await browser.post("/console/api/audit", {"area": "member"})).json()["entries"]
    assert [each["operation"] for each in result] == ["member.join", "member.invite"]
