"""Tests that a session ends within five minutes after its provider stops confirming the user. Also
tests which accounts and passwords can be used with a provider.
"""

from typing import Any

import pytest
from sqlalchemy import select

from controlplane.accounts import sign_in_policy, users
from controlplane.accounts.sessions import VERIFIED_FOR, VERIFY_EVERY
from controlplane.storage.account_tables import Identity, Membership, SignInSession, User
from controlplane.storage.audit_tables import AuditEntry
from controlplane.web.accounts.oidc.session_checks import CHECK_INTERVAL_S, check_sessions
from controlplane.web.background import poll_changes
from tests.fakes.identity_provider.process import ADA, ProviderProcess
from tests.unit.controlplane.accounts.oidc.visitor import Visitor
from tests.unit.controlplane.accounts.people import OVERVIEW, Browser, make_user
from tests.unit.controlplane.running_service import RunningService

EMAIL = ADA["email"]
LIMIT_S = 300
CREATE_KEY = "/console/api/profile/create-key"
NEW_KEY = {"name": "till", "canWrite": True, "locations": []}


async def run_checks(service: RunningService, seconds: float) -> None:
    """Advance the clock by ``seconds``, and check sessions as often as the background task does."""
    for _ in range(int(seconds / CHECK_INTERVAL_S)):
        service.clock.advance(CHECK_INTERVAL_S)
        await check_sessions(service.core)


async def sign_in(service: RunningService) -> Visitor:
    visitor = Visitor(service)
    assert (await visitor.sign_in_with_provider()).status_code == 303
    return visitor


def operations(service: RunningService) -> list[str]:
    """Return the operations in the audit log, oldest first."""
    query = select(AuditEntry.operation).order_by(AuditEntry.position)
    return service.database.read(lambda session: list(session.scalars(query)))


def test_sessions_are_verified_before_they_expire_and_expire_within_five_minutes() -> None:
    longest_s = VERIFY_EVERY.total_seconds() + CHECK_INTERVAL_S
    assert longest_s < VERIFIED_FOR.total_seconds() < LIMIT_S - CHECK_INTERVAL_S


@pytest.mark.parametrize("has_refresh_token", [True, False])
async def test_a_session_continues_while_the_provider_confirms_the_user(
    service: RunningService, provider: ProviderProcess, has_refresh_token: bool
) -> None:
    provider.control(issues_refresh_tokens=has_refresh_token)
    visitor = await sign_in(service)
    await run_checks(service, 900)
    assert (await visitor.post(OVERVIEW)).status_code == 200
    calls = provider.control()
    assert calls.count("/userinfo") == 6  # the sign-in, and every three minutes
    assert calls.count("/token") == (6 if has_refresh_token else 1)


@pytest.mark.parametrize("has_refresh_token", [True, False])
async def test_a_removed_group_ends_sessions_and_keys(
    service: RunningService, provider: ProviderProcess, has_refresh_token: bool
) -> None:
    provider.control(issues_refresh_tokens=has_refresh_token)
    visitor = await sign_in(service)
    key = (await visitor.post(CREATE_KEY, NEW_KEY)).json()["secret"]
    provider.control(claims={**ADA, "groups": []})
    await run_checks(service, LIMIT_S)
    await poll_changes(service.core)
    assert (await visitor.post(OVERVIEW)).status_code == 401
    assert (await service.post(OVERVIEW, api_key=key)).status_code == 401
    assert operations(service)[-1] == "member.remove"
    with service.database.read(lambda session: session) as session:
        for table in (User, Identity, SignInSession):
            assert session.scalars(select(table)).all() == []


async def test_a_changed_group_changes_the_role(
    service: RunningService, provider: ProviderProcess
) -> None:
    visitor = await sign_in(service)
    assert (await visitor.post(CREATE_KEY, NEW_KEY)).status_code == 200
    provider.control(claims={**ADA, "groups": ["venue-viewers"]})
    await run_checks(service, LIMIT_S)
    assert (await visitor.post(CREATE_KEY, NEW_KEY)).status_code == 403
    assert (await visitor.post(OVERVIEW)).status_code == 200


async def test_a_user_who_moves_to_another_organization_keeps_the_account(
    service: RunningService, provider: ProviderProcess
) -> None:
    visitor = await sign_in(service)
    before = service.database.read(lambda session: session.scalars(select(User.id)).all())
    provider.control(claims={**ADA, "groups": ["harbour-viewers"]})
    await run_checks(service, LIMIT_S)
    assert (await visitor.post(OVERVIEW)).status_code == 401
    await sign_in(service)
    rows = service.database.read(
        lambda session: session.execute(
            select(Membership.user_id, Membership.organization_id)
        ).all()
    )
    assert [tuple(row) for row in rows] == [(before[0], "org-0002")]
    assert service.database.read(lambda session: session.scalars(select(User.id)).all()) == before


async def test_a_membership_ends_if_the_provider_has_no_role_for_its_organization_any_more(
    service: RunningService, provider: ProviderProcess
) -> None:
    provider.control(claims={**ADA, "groups": ["venue-viewers", "harbour-viewers"]})
    await sign_in(service)
    (client,) = service.core.provider_clients.values()
    own_roles = tuple(role for role in client.provider.roles if role.organization == "org-0001")
    client.provider = client.provider.model_copy(update={"roles": own_roles})
    await run_checks(service, LIMIT_S)
    organizations = service.database.read(
        lambda session: session.scalars(select(Membership.organization_id)).all()
    )
    assert organizations == ["org-0001"]


async def test_a_disabled_user_is_signed_out(
    service: RunningService, provider: ProviderProcess
) -> None:
    visitor = await sign_in(service)
    provider.control(is_disabled=True)
    await run_checks(service, LIMIT_S)
    assert (await visitor.post(OVERVIEW)).status_code == 401
    assert operations(service)[-1] == "session.end"
    provider.control(is_disabled=False)
    await run_checks(service, LIMIT_S)
    assert (await visitor.post(OVERVIEW)).status_code == 401


async def test_a_session_is_suspended_while_the_provider_does_not_answer(
    service: RunningService, provider: ProviderProcess
) -> None:
    visitor = await sign_in(service)
    provider.control(replies={"/token": [503, ""]})
    await run_checks(service, 200)
    assert (await visitor.post(OVERVIEW)).status_code == 200
    await run_checks(service, LIMIT_S - 200)
    assert (await visitor.post(OVERVIEW)).status_code == 401
    provider.control(replies={})
    await run_checks(service, 60)
    assert (await visitor.post(OVERVIEW)).status_code == 200


async def test_a_suspension_changes_the_permissions_version(
    service: RunningService, provider: ProviderProcess
) -> None:
    """The next poll ends the open streams of a user whose ``permissions_version`` has changed."""
    await sign_in(service)
    provider.control(replies={"/token": [503, ""]})
    version = select(User.permissions_version)
    before = service.database.read(lambda session: session.scalars(version).one())
    await run_checks(service, LIMIT_S)
    assert service.database.read(lambda session: session.scalars(version).one()) > before


async def test_a_session_is_valid_for_at_most_five_minutes_without_the_background_task(
    service: RunningService,
) -> None:
    visitor = await sign_in(service)
    service.clock.advance(LIMIT_S)
    assert (await visitor.post(OVERVIEW)).status_code == 401


async def test_a_session_of_a_removed_provider_ends(service: RunningService) -> None:
    visitor = await sign_in(service)
    service.core.provider_clients.clear()
    await run_checks(service, LIMIT_S)
    assert (await visitor.post(OVERVIEW)).status_code == 401
    assert operations(service)[-1] == "session.end"


async def test_an_answer_about_another_user_ends_the_session(
    service: RunningService, provider: ProviderProcess
) -> None:
    provider.control(issues_refresh_tokens=False)
    visitor = await sign_in(service)
    provider.control(replies={"/userinfo": [200, '{"sub": "eve", "groups": ["venue-owners"]}']})
    await run_checks(service, LIMIT_S)
    assert (await visitor.post(OVERVIEW)).status_code == 401


# ---------------------------------------------------------------------------- existing accounts


async def test_a_password_gives_no_access_to_a_membership_that_the_provider_manages(
    service: RunningService,
) -> None:
    """An attacker may have created the account with this email address, and know its password."""
    make_user(service, EMAIL, organization_id="org-b")
    squatter = Browser(service)
    await squatter.sign_in(EMAIL)
    visitor = await sign_in(service)
    organizations = (await visitor.post("/console/api/profile")).json()["organizations"]
    assert [each["id"] for each in organizations] == ["org-0001"]
    choose = "/console/api/profile/choose-organization"
    assert (await squatter.post(choose, {"organizationId": "org-0001"})).status_code == 404
    assert (await visitor.post(choose, {"organizationId": "org-b"})).status_code == 404
    reply = (await squatter.sign_in(EMAIL)).json()
    assert [each["id"] for each in reply["organizations"]] == ["org-b"]


async def test_a_provider_does_not_take_over_an_account_of_a_foreign_domain(
    service: RunningService, provider: ProviderProcess
) -> None:
    make_user(service, "boss@fabrikam.example")
    provider.control(claims={**ADA, "email": "boss@fabrikam.example"})
    assert (await Visitor(service).sign_in_with_provider()).status_code == 403
    with service.database.read(lambda session: session) as session:
        assert session.scalars(select(Identity)).all() == []


async def test_a_password_session_ends_when_the_provider_manages_its_membership(
    service: RunningService,
) -> None:
    make_user(service, EMAIL)
    browser = Browser(service)
    await browser.sign_in(EMAIL)
    assert (await browser.post(OVERVIEW)).status_code == 200
    await sign_in(service)
    assert (await browser.post(OVERVIEW)).status_code == 401
    refused = await browser.sign_in(EMAIL)
    assert (refused.status_code, refused.json()["code"]) == (403, "password_not_accepted")


async def test_a_reassigned_address_does_not_get_the_account_of_its_former_user(
    service: RunningService, provider: ProviderProcess
) -> None:
    await sign_in(service)
    provider.control(claims={**ADA, "sub": "ada-2"})
    reply = await Visitor(service).sign_in_with_provider()
    assert (reply.status_code, "different user" in reply.text) == (403, True)


async def test_a_changed_email_address_keeps_the_account(
    service: RunningService, provider: ProviderProcess
) -> None:
    await sign_in(service)
    provider.control(claims={**ADA, "email": "ada.new@contoso.example"})
    await sign_in(service)
    query = select(User.email)
    assert service.database.read(lambda session: session.scalars(query).all()) == [EMAIL]


async def test_owners_cannot_change_a_role_that_the_provider_decides(
    service: RunningService,
) -> None:
    visitor = await sign_in(service)
    user_id = (await visitor.post("/console/api/profile")).json()["user"]["id"]
    body = {"userId": user_id, "role": "viewer", "locations": []}
    reply = await visitor.post("/console/api/members/change", body)
    assert (reply.status_code, reply.json()["code"]) == (409, "managed_by_provider")


# ---------------------------------------------------------------------------- policy

POLICY = "/console/api/members/sign-in-policy"


def policy(accepts_passwords: bool, requires_second_factor: bool) -> dict[str, Any]:
    return {
        "acceptsPasswords": accepts_passwords, "requiresSecondFactor": requires_second_factor,
    }  # fmt: skip


async def test_an_owner_can_refuse_sign_in_by_password(service: RunningService) -> None:
    make_user(service, "bob@example.com", role="viewer")
    bob = Browser(service)
    await bob.sign_in("bob@example.com")
    visitor = await sign_in(service)
    reply = await visitor.post(f"{POLICY}/change", policy(False, False))
    assert reply.json() == policy(False, False)
    assert (await bob.post(OVERVIEW)).status_code == 401
    refused = await bob.sign_in("bob@example.com")
    assert (refused.status_code, refused.json()["code"]) == (403, "password_not_accepted")
    assert (await visitor.post(OVERVIEW)).status_code == 200


async def test_a_policy_also_applies_to_sessions_that_began_earlier(
    service: RunningService,
) -> None:
    """A change of the policy ends the existing sessions that do not satisfy it. It misses a session
    whose sign-in runs at the same time. The test creates such a session: it stores the
    policy without ending sessions.
    """
    make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    service.database.write(
        lambda session: session.add(
            sign_in_policy.SignInPolicy(
                organization_id="org-0001", accepts_passwords=False, requires_second_factor=False
            )
        )
    )
    assert (await browser.post(OVERVIEW)).status_code == 401


async def test_an_owner_cannot_lock_themselves_out(service: RunningService) -> None:
    make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    for body, code in (
        (policy(False, False), "provider_required"),
        (policy(True, True), "second_factor_missing"),
    ):
        reply = await browser.post(f"{POLICY}/change", body)
        assert (reply.status_code, reply.json()["code"]) == (409, code)
    assert (await browser.post(POLICY)).json() == policy(True, False)


async def test_the_operator_can_permit_passwords_again_for_a_membership_of_a_provider(
    service: RunningService,
) -> None:
    user = make_user(service, EMAIL)
    await sign_in(service)
    service.database.write(
        lambda session: users.set_membership(
            session, user.id, "org-0001", role="owner", locations=(), now=service.clock()
        )
    )
    assert (await Browser(service).sign_in(EMAIL)).status_code == 200
