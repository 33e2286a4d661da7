"""Tests of members and invitations: owners can manage them, other users cannot."""

import uuid
from typing import Any

import pytest

from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.accounts.members import invitations, operations
from controlplane.accounts.profile import PREFIX as PROFILE
from controlplane.accounts.users import find_user, memberships
from controlplane.audit.reading import AuditFilters, query_of
from controlplane.storage.audit_tables import AuditEntry
from tests.unit.controlplane.accounts.people import (
    OVERVIEW,
    PASSWORD,
    Browser,
    end_membership,
    make_locations,
    make_user,
)
from tests.unit.controlplane.running_service import RunningService

MEMBERS = operations.PREFIX
PATHS = tuple(each.path for each in operations.member_operations())
"""The paths of the member operations. The first lists members and invitations, and the others
change them."""
NEW_INVITATION = {"email": "Bob@example.com", "role": "manager", "locations": ["loc-0001"]}
NEW_PASSWORD = "a password of Bob's"
JOIN, INVITATION = "/api/auth/join", "/api/auth/invitation"


async def sign_in(
    service: RunningService, email: str = "ada@example.com", **member: Any
) -> Browser:
    """Create a member and locations of the organization. Return the browser of the member."""
    make_user(service, email, **member)
    organization_id = member.get("organization_id", DEFAULT_ORGANIZATION)
    make_locations(service, "loc-0001", "loc-1", organization_id=organization_id)
    browser = Browser(service)
    assert (await browser.sign_in(email)).status_code == 200
    return browser


async def invite(browser: Browser, **changes: Any) -> str:
    """Return the code of a new invitation."""
    reply = await browser.post(f"{MEMBERS}/invite", NEW_INVITATION | changes)
    assert reply.status_code == 200, reply.text
    path: str = reply.json()["path"]
    assert path.startswith("/#/join/")
    return path.rpartition("/")[2]


def join_body(code: str, **changes: str) -> dict[str, str]:
    return {"code": code, "name": "Bob", "password": NEW_PASSWORD} | changes


def bodies(user_id: uuid.UUID) -> dict[str, dict[str, Any]]:
    """Return a valid body for each path of the member operations."""
    return {
        MEMBERS: {},
        f"{MEMBERS}/change": {"userId": str(user_id), "role": "owner", "locations": []},
        f"{MEMBERS}/remove": {"userId": str(user_id)},
        f"{MEMBERS}/invite": NEW_INVITATION,
        f"{MEMBERS}/revoke-invitation": {"invitationId": str(user_id)},
    }


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "member", [{"role": "manager"}, {"role": "viewer"}, {"locations": ["loc-0001"]}]
)
async def test_only_owners_with_access_to_all_locations_manage_members(
    service: RunningService, path: str, member: dict[str, Any]
) -> None:
    other = make_user(service, "eve@example.com")
    browser = await sign_in(service, **member)
    refused = await browser.post(path, bodies(other.id)[path])
    assert (refused.status_code, refused.json()["code"]) == (403, "owner_required")


@pytest.mark.parametrize("path", PATHS)
async def test_api_keys_cannot_manage_members(service: RunningService, path: str) -> None:
    assert (await service.post(path)).json()["code"] == "session_required"
    assert (await Browser(service).post(path)).status_code == 401


@pytest.mark.parametrize("path", PATHS[1:])
async def test_another_site_cannot_manage_members(service: RunningService, path: str) -> None:
    other = make_user(service, "eve@example.com")
    browser = await sign_in(service)
    for origin in ("https://evil.example", None):
        refused = await browser.post(path, bodies(other.id)[path], origin=origin)
        assert (refused.status_code, refused.json()["code"]) == (403, "foreign_origin")


@pytest.mark.parametrize("path", PATHS)
async def test_an_unknown_key_in_a_body_is_refused(service: RunningService, path: str) -> None:
    other = make_user(service, "eve@example.com")
    browser = await sign_in(service)
    body = bodies(other.id)[path] | {"admin": True}
    assert (await browser.post(path, body)).status_code == 400


async def test_members_are_listed_changed_and_removed(service: RunningService) -> None:
    browser = await sign_in(service)
    bob = make_user(service, "bob@example.com", role="viewer", locations=["loc-0001"])
    bobs_browser = Browser(service)
    await bobs_browser.sign_in("bob@example.com")
    result = (await browser.post(MEMBERS)).json()["members"]
    assert [(each["email"], each["role"], each["isThis"]) for each in result] == [
        ("ada@example.com", "owner", True),
        ("bob@example.com", "viewer", False),
    ]
    body = {"userId": str(bob.id), "role": "manager", "locations": []}
    changed = (await browser.post(f"{MEMBERS}/change", body)).json()["member"]
    assert (changed["role"], changed["locations"]) == ("manager", [])
    assert (await bobs_browser.post(OVERVIEW)).json()["canWrite"] is True
    reply = await browser.post(f"{MEMBERS}/remove", {"userId": str(bob.id)})
    assert reply.json() == {"removed": True}
    assert (await bobs_browser.post(OVERVIEW)).status_code == 401
    assert (await browser.post(f"{MEMBERS}/remove", {"userId": str(bob.id)})).status_code == 404


async def test_the_last_owner_of_all_locations_cannot_be_removed_or_restricted(
    service: RunningService,
) -> None:
    ada = make_user(service)
    browser = await sign_in(service)
    # Bob is an owner of one location only, and Eve is a manager. Neither counts as an owner of all
    # locations.
    make_user(service, "bob@example.com", locations=["loc-0001"])
    make_user(service, "eve@example.com", role="manager")
    ada_id = {"userId": str(ada.id)}
    for path, body in (
        ("remove", ada_id),
        ("change", ada_id | {"role": "viewer", "locations": []}),
        ("change", ada_id | {"role": "owner", "locations": ["loc-0001"]}),
    ):
        refused = await browser.post(f"{MEMBERS}/{path}", body)
        assert (refused.status_code, refused.json()["code"]) == (409, "last_owner")
    unchanged_role = ada_id | {"role": "owner", "locations": []}
    assert (await browser.post(f"{MEMBERS}/change", unchanged_role)).status_code == 200
    make_user(service, "bob@example.com")
    assert (await browser.post(f"{MEMBERS}/remove", ada_id)).status_code == 200
    assert (await browser.post(MEMBERS)).status_code == 401


async def test_members_of_another_organization_are_hidden(service: RunningService) -> None:
    browser = await sign_in(service)
    eve = make_user(service, "eve@example.com", organization_id="org-0002")
    other = await sign_in(service, "mia@example.com", organization_id="org-0002")
    await invite(other)
    (invitation,) = (await other.post(MEMBERS)).json()["invitations"]
    for path, body in bodies(eve.id).items():
        if path not in {MEMBERS, f"{MEMBERS}/invite"}:
            existing_id = {"invitationId": invitation["id"]} if "invitationId" in body else {}
            assert (await browser.post(path, body | existing_id)).status_code == 404
    members = (await browser.post(MEMBERS)).json()
    assert [each["email"] for each in members["members"]] == ["ada@example.com"]
    assert members["invitations"] == []


async def test_an_invited_user_joins_once_and_signs_in(service: RunningService) -> None:
    browser = await sign_in(service)
    code = await invite(browser)
    stranger = Browser(service)
    invitation = (await stranger.post(INVITATION, {"code": code})).json()
    assert invitation == {"email": "Bob@example.com", "organization": "org-0001", "role": "manager"}
    reply = await stranger.post(JOIN, join_body(code))
    assert reply.json() == {"email": "Bob@example.com", "organizationId": "org-0001"}
    again = await stranger.post(JOIN, join_body(code))
    assert (again.status_code, again.json()["code"]) == (404, "invitation_not_found")
    assert (await stranger.sign_in("bob@example.com", NEW_PASSWORD)).status_code == 200
    profile = (await stranger.post(PROFILE)).json()
    assert profile["user"]["name"] == "Bob"
    assert profile["organizations"][0]["locations"] == ["loc-0001"]
    assert (await browser.post(MEMBERS)).json()["invitations"] == []


async def test_an_invitation_is_valid_for_a_day_or_until_it_is_revoked(
    service: RunningService,
) -> None:
    browser = await sign_in(service)
    revoked_code = await invite(browser)
    (invitation,) = (await browser.post(MEMBERS)).json()["invitations"]
    body = {"invitationId": invitation["id"]}
    reply = await browser.post(f"{MEMBERS}/revoke-invitation", body)
    assert reply.json() == {"revoked": True}
    assert (await browser.post(f"{MEMBERS}/revoke-invitation", body)).status_code == 404
    expired_code = await invite(browser)
    service.clock.advance(24 * 3600)
    for code in (revoked_code, expired_code, "x"):
        for path, sent in ((INVITATION, {"code": code}), (JOIN, join_body(code))):
            assert (await Browser(service).post(path, sent)).status_code == 404
    assert (await browser.post(MEMBERS)).json()["invitations"] == []


async def test_an_invitation_is_invalid_if_its_creator_lost_the_permission(
    service: RunningService,
) -> None:
    make_user(service, "eve@example.com")
    browser = await sign_in(service)
    code = await invite(browser)
    ada = make_user(service)
    end_membership(service, ada, "org-0001")
    assert (await Browser(service).post(JOIN, join_body(code))).status_code == 404


async def test_a_user_with_an_account_joins_with_the_password_of_the_account(
    service: RunningService,
) -> None:
    make_user(service, "bob@example.com", organization_id="org-0002")
    code = await invite(await sign_in(service))
    refused = await Browser(service).post(JOIN, join_body(code))
    assert (refused.status_code, refused.json()["code"]) == (403, "wrong_password")
    reply = await Browser(service).post(JOIN, join_body(code, password=PASSWORD, name="Robert"))
    assert reply.status_code == 200
    with service.database.read(lambda session: session) as session:
        query = query_of("org-0001", AuditFilters(area="member"))
        audit_entries = session.scalars(query.order_by(AuditEntry.position.desc())).all()
        assert [(each.operation, each.outcome) for each in audit_entries] == [
            ("member.join", "done"), ("member.join", "refused"), ("member.invite", "done"),
        ]  # fmt: skip
    with service.database.read(lambda session: session) as session:
        user = find_user(session, "bob@example.com")
        assert user is not None
        assert user.name == "Ada"  # joining does not change the name
        assert [each.organization_id for each in memberships(session, user.id)] == [
            "org-0001", "org-0002",
        ]  # fmt: skip


async def test_wrong_passwords_are_limited_when_a_user_accepts_an_invitation(
    service: RunningService,
) -> None:
    make_user(service, "bob@example.com", organization_id="org-0002")
    code = await invite(await sign_in(service))
    for _ in range(10):
        assert (await Browser(service).post(JOIN, join_body(code))).status_code == 403
    last = await Browser(service).post(JOIN, join_body(code, password=PASSWORD))
    assert last.status_code == 429
    assert int(last.headers["retry-after"]) > 0


async def test_a_member_cannot_be_invited_again(service: RunningService) -> None:
    browser = await sign_in(service)
    reply = await browser.post(f"{MEMBERS}/invite", NEW_INVITATION | {"email": "ADA@example.com"})
    assert (reply.status_code, reply.json()["code"]) == (409, "already_member")
    code = await invite(browser)
    make_user(service, "bob@example.com")
    reply = await Browser(service).post(JOIN, join_body(code, password=PASSWORD))
    assert (reply.status_code, reply.json()["code"]) == (409, "already_member")


async def test_the_number_of_open_invitations_is_limited(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invitations, "INVITATIONS_MAX", 1)
    browser = await sign_in(service)
    await invite(browser)
    refused = await browser.post(f"{MEMBERS}/invite", NEW_INVITATION)
    assert refused.json()["code"] == "too_many_invitations"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (JOIN, join_body("x", role="owner")),
        (JOIN, join_body("x", name="a\u0000")),
        (JOIN, {"code": "x"}),
        (JOIN, join_body("")),
        (INVITATION, {"code": "x" * 65}),
        (INVITATION, {}),
    ],
)
async def test_a_join_request_that_is_invalid_or_from_another_site_is_refused(
    service: RunningService, path: str, body: dict[str, str]
) -> None:
    assert (await Browser(service).post(path, body)).status_code == 400
    assert (await Browser(service).post(path, body, origin="https://evil.example")).status_code == (
        403
    )


async def test_a_short_password_is_refused(service: RunningService) -> None:
    code = await invite(await sign_in(service))
    reply = await Browser(service).post(JOIN, join_body(code, password="short"))
    assert (reply.status_code, reply.json()["code"]) == (400, "validation_error")
    assert reply.json()["detail"] == "a password must have 12 to 256 characters"


async def test_the_refusal_of_an_unknown_location_contains_its_id(service: RunningService) -> None:
    browser = await sign_in(service)
    unknown_location = {"locations": ["loc-0001", "loc-9"]}
    reply = await browser.post(f"{MEMBERS}/invite", NEW_INVITATION | unknown_location)
    assert (reply.status_code, reply.json()["detail"]) == (404, "there is no location loc-9")
    bob = make_user(service, "bob@example.com", role="viewer", locations=["loc-old"])
    change = {"userId": str(bob.id), "role": "manager"}
    assert (await browser.post(f"{MEMBERS}/change", change | unknown_location)).status_code == 404
    # A member can keep a location that no longer exists.
    former_location = {"locations": ["loc-0001", "loc-old"]}
    assert (await browser.post(f"{MEMBERS}/change", change | former_location)).status_code == 200


@pytest.mark.parametrize(
    "changes",
    [{"email": "bob"}, {"email": ""}, {"role": "king"}, {"locations": [""]}, {"locations": None}],
)
async def test_an_invalid_invitation_is_refused(
    service: RunningService, changes: dict[str, Any]
) -> None:
    browser = await sign_in(service)
    assert (await browser.post(f"{MEMBERS}/invite", NEW_INVITATION | changes)).status_code == 400


# ---------------------------------------------------------------------------- password changes

CHANGE_PASSWORD = f"{PROFILE}/change-password"
PASSWORDS = {"oldPassword": PASSWORD, "newPassword": NEW_PASSWORD}


async def test_changing_the_password_requires_the_old_password_and_ends_other_sessions(
    service: RunningService,
) -> None:
    browser = await sign_in(service)
    other = Browser(service)
    await other.sign_in()
    wrong = await browser.post(CHANGE_PASSWORD, PASSWORDS | {"oldPassword": "another password"})
    assert (wrong.status_code, wrong.json()["code"]) == (403, "wrong_password")
    assert (await browser.post(CHANGE_PASSWORD, PASSWORDS)).json() == {"endedSessions": 1}
    assert (await other.post(OVERVIEW)).status_code == 401
    assert (await browser.post(OVERVIEW)).status_code == 200
    assert (await other.sign_in()).status_code == 401
    assert (await other.sign_in(password=NEW_PASSWORD)).status_code == 200


async def test_wrong_passwords_are_limited_when_a_user_changes_the_password(
    service: RunningService,
) -> None:
    browser = await sign_in(service)
    for _ in range(10):
        await browser.post(CHANGE_PASSWORD, PASSWORDS | {"oldPassword": "another password"})
    assert (await browser.post(CHANGE_PASSWORD, PASSWORDS)).status_code == 429


async def test_changing_the_password_requires_a_session_and_the_origin_of_the_service(
    service: RunningService,
) -> None:
    browser = await sign_in(service)
    for origin in ("https://evil.example", None):
        assert (await browser.post(CHANGE_PASSWORD, PASSWORDS, origin=origin)).status_code == 403
    assert (await service.post(CHANGE_PASSWORD)).json()["code"] == "session_required"
    for body in (PASSWORDS | {"newPassword": "short"}, PASSWORDS | {"x": 1}, {}):
        assert (await browser.post(CHANGE_PASSWORD, body)).status_code == 400
    assert (await browser.sign_in()).status_code == 200
