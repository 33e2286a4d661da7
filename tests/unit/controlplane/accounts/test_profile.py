"""Tests of the profile: users can change only their own account."""

import uuid
from typing import Any

import pytest
from sqlalchemy import select

from controlplane.accounts import profile
from controlplane.accounts.keys.key_store import revoke_unused
from controlplane.storage.tables import ApiKey
from controlplane.web.background import poll_changes
from tests.unit.controlplane.accounts.people import (
    OVERVIEW,
    Browser,
    end_membership,
    make_locations,
    make_user,
)
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.simulated_device import SimulatedDevice

PATHS = tuple(each.path for each in profile.profile_operations())
WRITE_PATHS = tuple(each.path for each in profile.profile_operations() if each.writes)
PROFILE = profile.PREFIX
NEW_KEY = {"name": "till", "canWrite": True, "locations": []}


async def sign_in(
    service: RunningService, email: str = "ada@example.com", **member: Any
) -> Browser:
    """Create a user and locations of the organization. Return the browser of the user."""
    make_user(service, email, **member)
    make_locations(service, "loc-0001", "loc-1", "loc-2")
    browser = Browser(service)
    assert (await browser.sign_in(email)).status_code == 200
    return browser


async def create_key(browser: Browser, **changes: Any) -> dict[str, Any]:
    reply = await browser.post(f"{PROFILE}/create-key", NEW_KEY | changes)
    assert reply.status_code == 200, reply.text
    new_key: dict[str, Any] = reply.json()
    return new_key


@pytest.mark.parametrize("path", PATHS)
async def test_profile_operations_refuse_api_keys(service: RunningService, path: str) -> None:
    refused = await service.post(path, b"{}")
    assert refused.status_code == 403
    assert refused.json()["code"] == "session_required"
    assert (await Browser(service).post(path)).status_code == 401


@pytest.mark.parametrize("path", WRITE_PATHS)
async def test_another_site_cannot_change_a_profile(service: RunningService, path: str) -> None:
    browser = await sign_in(service)
    for origin in ("https://evil.example", None):
        assert (await browser.post(path, {}, origin=origin)).status_code == 403


async def test_a_profile_lists_the_user_and_the_sessions(service: RunningService) -> None:
    browser = await sign_in(service)
    other = Browser(service)
    await other.sign_in(user_agent="Firefox")
    result = (await other.post(PROFILE)).json()
    assert result["user"]["email"] == "ada@example.com"
    assert result["organizationId"] == "org-0001"
    assert {each["userAgent"]: each["isThis"] for each in result["sessions"]}["Firefox"] is True
    assert [each["isThis"] for each in result["sessions"]].count(False) == 1
    other_session_id = next(each["id"] for each in result["sessions"] if not each["isThis"])
    reply = await other.post(f"{PROFILE}/end-session", {"sessionId": other_session_id})
    assert reply.json() == {"ended": True}
    assert (await browser.post(OVERVIEW)).status_code == 401
    assert (await other.post(OVERVIEW)).status_code == 200


async def test_an_expired_session_is_not_listed(service: RunningService) -> None:
    await sign_in(service)
    browser = Browser(service)
    await browser.sign_in()
    service.clock.advance(29 * 86_400)
    assert len((await browser.post(PROFILE)).json()["sessions"]) == 2
    service.clock.advance(86_400)
    assert len((await browser.post(PROFILE)).json()["sessions"]) == 1


async def test_a_new_key_is_returned_once_and_works(service: RunningService) -> None:
    browser = await sign_in(service)
    new_key = await create_key(browser)
    assert new_key["secret"].startswith("vck_")
    assert new_key["key"]["hint"] == new_key["secret"][-4:]
    assert (await service.post(OVERVIEW, b"{}", api_key=new_key["secret"])).status_code == 200
    profile = (await browser.post(PROFILE)).text
    assert new_key["secret"] not in profile
    assert new_key["key"]["id"] in profile
    row = service.database.read(
        lambda session: session.get_one(ApiKey, uuid.UUID(new_key["key"]["id"]))
    )
    assert new_key["secret"] not in {str(each) for each in vars(row).values()}


async def test_a_key_is_revoked_by_its_owner(service: RunningService) -> None:
    browser = await sign_in(service)
    new_key = await create_key(browser)
    await poll_changes(service.core)
    assert (await service.post(OVERVIEW, b"{}", api_key=new_key["secret"])).status_code == 200
    for _ in range(2):
        reply = await browser.post(f"{PROFILE}/revoke-key", {"keyId": new_key["key"]["id"]})
        assert reply.json() == {"revoked": True}
    await poll_changes(service.core)
    assert (await service.post(OVERVIEW, b"{}", api_key=new_key["secret"])).status_code == 401
    assert (await browser.post(PROFILE)).json()["keys"] == []


async def test_users_cannot_end_sessions_or_revoke_keys_of_others(service: RunningService) -> None:
    ada, eve = await sign_in(service), await sign_in(service, "eve@example.com")
    new_key = await create_key(ada)
    session_id = (await ada.post(PROFILE)).json()["sessions"][0]["id"]
    for path, body in (
        ("revoke-key", {"keyId": new_key["key"]["id"]}),
        ("end-session", {"sessionId": session_id}),
    ):
        # The refusal is the same as for an id that does not exist.
        refused = await eve.post(f"{PROFILE}/{path}", body)
        unknown = await eve.post(f"{PROFILE}/{path}", dict.fromkeys(body, str(uuid.uuid4())))
        assert refused.status_code == unknown.status_code == 404
        assert refused.json()["detail"] == unknown.json()["detail"]
    assert (await ada.post(OVERVIEW)).status_code == 200
    assert (await service.post(OVERVIEW, b"{}", api_key=new_key["secret"])).status_code == 200
    keys = service.database.read(
        lambda session: session.scalars(select(ApiKey).where(ApiKey.owner_id.is_(None))).all()
    )
    reply = await eve.post(f"{PROFILE}/revoke-key", {"keyId": str(keys[0].id)})
    assert reply.status_code == 404


async def test_a_viewer_creates_read_only_keys_and_ends_sessions(service: RunningService) -> None:
    browser = await sign_in(service, role="viewer")
    refused = await browser.post(f"{PROFILE}/create-key", NEW_KEY)
    assert refused.status_code == 403
    assert refused.json()["code"] == "read_only_key"
    new_key = await create_key(browser, canWrite=False)
    assert (await service.post(OVERVIEW, b"{}", api_key=new_key["secret"])).status_code == 200
    session_id = (await browser.post(PROFILE)).json()["sessions"][0]["id"]
    assert (
        await browser.post(f"{PROFILE}/end-session", {"sessionId": session_id})
    ).status_code == 200
    assert (await browser.post(PROFILE)).status_code == 401


async def test_a_key_for_a_location_that_does_not_exist_is_refused(service: RunningService) -> None:
    browser = await sign_in(service)
    reply = await browser.post(f"{PROFILE}/create-key", NEW_KEY | {"locations": ["loc-9"]})
    assert (reply.status_code, reply.json()["detail"]) == (404, "there is no location loc-9")


async def test_a_key_with_expires_unused_is_revoked_if_it_is_not_used_within_an_hour(
    service: RunningService,
) -> None:
    browser = await sign_in(service)
    used, unused = [await create_key(browser, expiresUnused=True) for _ in range(2)]
    other_key = await create_key(browser)
    headers = {"authorization": f"Bearer {used['secret']}"}
    assert (await Browser(service).post(OVERVIEW, **headers)).status_code == 200
    await poll_changes(service.core)
    service.clock.advance(3600)
    assert service.database.write(lambda s: revoke_unused(s, service.clock())) == 0
    service.clock.advance(61)  # a use can be stored up to 60 s late
    assert service.database.write(lambda s: revoke_unused(s, service.clock())) == 1
    key_ids = {each["id"] for each in (await browser.post(PROFILE)).json()["keys"]}
    assert key_ids == {used["key"]["id"], other_key["key"]["id"]}
    state = await browser.post(f"{PROFILE}/key-devices", {"keyId": unused["key"]["id"]})
    assert state.json() == {"isRevoked": True, "devices": []}


async def test_the_devices_of_a_new_key_are_listed_when_they_enroll(
    service: RunningService,
) -> None:
    browser = await sign_in(service)
    new_key = await create_key(browser, locations=["loc-1"], expiresUnused=True)
    body = {"keyId": new_key["key"]["id"]}
    path = f"{PROFILE}/key-devices"
    assert (await browser.post(path, body)).json() == {"isRevoked": False, "devices": []}
    device = await SimulatedDevice(service.http, new_key["secret"], "loc-1").enrolled()
    (device_row,) = (await browser.post(path, body)).json()["devices"]
    assert (device_row["instanceId"], device_row["locationId"]) == (device.instance_id, "loc-1")
    stranger = await sign_in(service, "eve@example.com")
    assert (await stranger.post(path, body)).status_code == 404


async def test_a_key_is_limited_to_the_locations_of_its_creator(service: RunningService) -> None:
    browser = await sign_in(service, locations=["loc-1", "loc-2"])
    for locations, status in ((["loc-1"], 200), (["loc-3"], 403), (["loc-1", "loc-3"], 403)):
        body = NEW_KEY | {"locations": locations}
        assert (await browser.post(f"{PROFILE}/create-key", body)).status_code == status
    limited_key = await create_key(browser)
    assert service.caller(limited_key["secret"]).locations == {"loc-1", "loc-2"}


async def test_the_number_of_keys_of_a_user_is_limited(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile, "KEYS_MAX", 2)
    browser = await sign_in(service)
    await create_key(browser)
    await create_key(browser)
    assert (await browser.post(f"{PROFILE}/create-key", NEW_KEY)).status_code == 409


async def test_a_viewer_has_a_lower_limit_of_keys_than_a_manager(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile, "VIEWER_KEYS_MAX", 1)
    browser = await sign_in(service, role="viewer")
    new_key = await create_key(browser, canWrite=False)
    refused = await browser.post(f"{PROFILE}/create-key", NEW_KEY | {"canWrite": False})
    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_keys")
    assert refused.json()["detail"] == "your role's limit of keys is 1: revoke one first"
    await browser.post(f"{PROFILE}/revoke-key", {"keyId": new_key["key"]["id"]})
    await create_key(browser, canWrite=False)
    manager = await sign_in(service, "eve@example.com", role="manager")
    for _ in range(2):
        await create_key(manager)


@pytest.mark.parametrize(
    "body",
    [
        {},
        NEW_KEY | {"owner": "x"},
        NEW_KEY | {"name": ""},
        NEW_KEY | {"name": "a\u0000b"},
        NEW_KEY | {"name": "x" * 129},
        NEW_KEY | {"canWrite": "yes"},
        NEW_KEY | {"locations": [""]},
        NEW_KEY | {"locations": ["loc"] * 501},
    ],
)
async def test_invalid_properties_of_a_new_key_are_refused(
    service: RunningService, body: dict[str, Any]
) -> None:
    browser = await sign_in(service)
    assert (await browser.post(f"{PROFILE}/create-key", body)).status_code == 400


async def test_a_session_belongs_to_one_organization_at_a_time(service: RunningService) -> None:
    user = make_user(service)
    service.clock.advance(1)
    make_user(service, organization_id="org-0002", role="viewer")
    browser = Browser(service)
    reply = (await browser.sign_in()).json()
    assert reply["organizationId"] == "org-0001"
    assert [each["id"] for each in reply["organizations"]] == ["org-0001", "org-0002"]
    choose = f"{PROFILE}/choose-organization"
    assert (await browser.post(choose, {"organizationId": "org-0003"})).status_code == 404
    chosen = await browser.post(choose, {"organizationId": "org-0002"})
    assert chosen.json() == {"organizationId": "org-0002"}
    assert (await browser.post(OVERVIEW)).json()["canWrite"] is False
    # The session is for org-0002. It ends when the user leaves org-0002, not org-0001.
    end_membership(service, user, "org-0001")
    assert (await browser.post(OVERVIEW)).status_code == 200
    end_membership(service, user, "org-0002")
    assert (await browser.post(OVERVIEW)).status_code == 401
