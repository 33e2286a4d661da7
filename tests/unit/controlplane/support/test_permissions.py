"""Tests of the permissions to confirm and end support links, by role, organization and key."""

import pytest

from controlplane.storage.account_tables import Role
from controlplane.support import routes
from tests.unit.controlplane.accounts.people import (
    Browser,
    change_membership,
    end_membership,
    make_user,
)
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.support.support_client import (
    ORGANIZATION,
    OTHER_ORGANIZATION,
    SupportClient,
    refusal_of,
)


async def signed_in_browser(service: RunningService) -> Browser:
    browser = Browser(service)
    assert (await browser.sign_in()).status_code == 200
    return browser


@pytest.mark.parametrize(
    ("role", "locations", "is_permitted"),
    [
        ("owner", [], True),
        ("manager", [], True),
        ("manager", ["loc-0001"], False),
        ("owner", ["loc-0001"], False),
        ("viewer", [], False),
    ],
)
async def test_the_role_of_a_user_determines_whether_links_may_be_confirmed_and_ended(
    service: RunningService,
    support_client: SupportClient,
    role: Role,
    locations: list[str],
    is_permitted: bool,
) -> None:
    user = make_user(service, role=role, locations=locations)
    browser = await signed_in_browser(service)
    token = support_client.create_token()
    inspection = (await support_client.call(routes.INSPECT, browser, token=token)).json()
    assert [organization["id"] for organization in inspection["organizations"]] == (
        [ORGANIZATION] if is_permitted else []
    )
    ended = await support_client.call(
        routes.DISCONNECT, browser, token=support_client.create_token()
    )
    reply = await support_client.confirm(token, ORGANIZATION, browser)
    if is_permitted:
        assert ended.status_code == 200
        assert reply.json()["confirmedById"] == str(user.id)
    else:
        assert refusal_of(ended) == refusal_of(reply) == (403, "manager_required")


@pytest.mark.parametrize(
    ("can_write", "locations", "refusal"),
    [
        (True, [], None),
        (False, [], "read_only_key"),
        (True, ["loc-0001"], "manager_required"),
    ],
)
async def test_the_grant_and_locations_of_a_key_determine_whether_it_may_confirm(
    service: RunningService,
    support_client: SupportClient,
    can_write: bool,
    locations: list[str],
    refusal: str | None,
) -> None:
    key = service.make_key(can_write=can_write, locations=locations)
    token = support_client.create_token()
    inspection = (await support_client.call(routes.INSPECT, key, token=token)).json()
    assert [organization["id"] for organization in inspection["organizations"]] == (
        [] if refusal else [ORGANIZATION]
    )
    reply = await support_client.confirm(token, ORGANIZATION, key)
    ended = await support_client.call(routes.DISCONNECT, key, token=token)
    if refusal:
        assert refusal_of(reply) == refusal_of(ended) == (403, refusal)
    else:
        assert (reply.status_code, ended.status_code) == (200, 200)


async def test_a_viewer_can_read_but_not_end_a_link(
    service: RunningService, support_client: SupportClient
) -> None:
    token = support_client.create_token()
    assert (await support_client.confirm(token)).status_code == 200
    make_user(service, role="viewer")
    browser = await signed_in_browser(service)
    inspection = await support_client.call(routes.INSPECT, browser, token=token)
    assert (inspection.json()["state"], inspection.json()["organizations"]) == ("confirmed", [])
    reply = await support_client.call(routes.DISCONNECT, browser, token=token)
    assert refusal_of(reply) == (403, "manager_required")
    limited_key = service.make_key(locations=["loc-0001"])
    assert refusal_of(await support_client.call(routes.DISCONNECT, limited_key, token=token)) == (
        403,
        "manager_required",
    )
    assert await support_client.linked_channels(limited_key) == ["telegram @venue"]


async def test_a_user_can_confirm_a_token_for_an_organization_other_than_that_of_the_session(
    service: RunningService, support_client: SupportClient
) -> None:
    """The session belongs to the first organization, where the user can only read."""
    make_user(service, role="viewer")
    service.clock.advance(1)
    make_user(service, role="manager", organization_id=OTHER_ORGANIZATION)
    browser = await signed_in_browser(service)
    token = support_client.create_token()
    inspection = (await support_client.call(routes.INSPECT, browser, token=token)).json()
    assert inspection["organizations"] == [{"id": OTHER_ORGANIZATION, "name": None}]
    assert refusal_of(await support_client.confirm(token, ORGANIZATION, browser)) == (
        403,
        "manager_required",
    )
    assert (await support_client.confirm(token, OTHER_ORGANIZATION, browser)).status_code == 200
    other_token = support_client.create_token("chat")
    assert (await support_client.confirm(other_token)).status_code == 200
    links = (await browser.post(routes.CONTACT)).json()["links"]
    assert {link["organizationId"] for link in links} == {ORGANIZATION, OTHER_ORGANIZATION}
    assert (await support_client.call(routes.DISCONNECT, browser, token=token)).status_code == 200
    # An API key belongs to one organization, and this token was confirmed for the other one.
    key = service.make_key()
    reply = await support_client.call(routes.INSPECT, key, token=token)
    assert refusal_of(reply) == (404, "token_not_found")


async def test_a_user_of_two_organizations_confirms_a_token_for_one_of_them(
    service: RunningService, support_client: SupportClient
) -> None:
    for organization in (ORGANIZATION, OTHER_ORGANIZATION):
        make_user(service, organization_id=organization)
        service.clock.advance(1)
    browser = await signed_in_browser(service)
    token = support_client.create_token()
    first = await support_client.confirm(token, ORGANIZATION, browser)
    assert refusal_of(await support_client.confirm(token, OTHER_ORGANIZATION, browser)) == (
        409,
        "token_used",
    )
    assert (await support_client.confirm(token, ORGANIZATION, browser)).content == first.content


async def test_the_key_of_a_user_confirms_tokens_with_the_permissions_of_the_user(
    service: RunningService, support_client: SupportClient
) -> None:
    user = make_user(service)
    browser = await signed_in_browser(service)
    body = {"name": "bot", "canWrite": True, "locations": []}
    key = (await browser.post("/console/api/profile/create-key", body)).json()["secret"]
    token = support_client.create_token()
    reply = await support_client.confirm(token, ORGANIZATION, key)
    assert reply.json()["confirmedById"] == str(user.id)
    assert refusal_of(
        await support_client.confirm(support_client.create_token(), OTHER_ORGANIZATION, key)
    ) == (403, "manager_required")


async def test_a_changed_role_applies_at_once(
    service: RunningService, support_client: SupportClient
) -> None:
    user = make_user(service)
    browser = await signed_in_browser(service)
    token = support_client.create_token()
    change_membership(service, user, "viewer", [])
    assert refusal_of(await support_client.confirm(token, ORGANIZATION, browser)) == (
        403,
        "manager_required",
    )
    change_membership(service, user, "manager", ["loc-0001"])
    assert refusal_of(await support_client.confirm(token, ORGANIZATION, browser)) == (
        403,
        "manager_required",
    )
    change_membership(service, user, "manager", [])
    assert (await support_client.confirm(token, ORGANIZATION, browser)).status_code == 200
    end_membership(service, user, ORGANIZATION)
    assert (await support_client.call(routes.DISCONNECT, browser, token=token)).status_code == 401
    # The link belongs to the organization, so it does not end with the membership of the user.
    assert await support_client.linked_channels() == ["telegram @venue"]


async def test_a_confirmation_by_a_session_requires_the_origin_of_the_service(
    service: RunningService, support_client: SupportClient
) -> None:
    make_user(service)
    browser = await signed_in_browser(service)
    token = support_client.create_token()
    for origin in ("https://evil.example", None):
        body = {"token": token, "organizationId": ORGANIZATION}
        reply = await browser.post(routes.CONFIRM, body, origin=origin)
        assert refusal_of(reply) == (403, "foreign_origin")
    assert (await support_client.call(routes.INSPECT, token=token)).json()["state"] == "waiting"
