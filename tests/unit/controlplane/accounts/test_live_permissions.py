"""Tests that a changed membership applies to keys, sessions and open streams within 5 s.

The tests call ``poll_changes``, which a running service calls every 2.5 s.
"""

import asyncio
import json
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import event, select

from controlplane.accounts.keys import key_store
from controlplane.accounts.keys.key_cache import KeyCache
from controlplane.accounts.sessions import end_by_token
from controlplane.operation import permissions
from controlplane.operation.caller import NOWHERE, Caller, intersect_locations
from controlplane.settings import Settings
from controlplane.storage.tables import Device
from controlplane.web.background import poll_changes
from tests.unit.controlplane.accounts.people import (
    OVERVIEW,
    SIGN_OUT,
    Browser,
    UserAccount,
    change_membership,
    end_membership,
    make_user,
)
from tests.unit.controlplane.running_service import RunningService

ORGANIZATION = "org-0001"
TIMEOUT_S = 300


def own_key(
    service: RunningService,
    user: UserAccount,
    *,
    can_write: bool = True,
    locations: Sequence[str] = (),
    organization_id: str = ORGANIZATION,
) -> str:
    """Create an API key of the user. Return its secret."""
    key = key_store.new_key(name="own", locations=locations)
    service.database.write(
        lambda session: key_store.add_keys(
            session,
            [key],
            can_write=can_write,
            organization_id=organization_id,
            now=service.clock(),
            owner_id=user.id,
        )
    )
    return key.secret


async def status(service: RunningService, key: str, path: str = OVERVIEW, **body: Any) -> int:
    return (await service.post(path, json.dumps(body), api_key=key)).status_code


@pytest.mark.parametrize(
    ("key_locations", "owner_locations", "expected"),
    [
        ((), (), ()),
        (("a",), (), ("a",)),
        ((), ("a",), ("a",)),
        (("a", "b"), ("b", "c"), ("b",)),
        (("a",), ("b",), NOWHERE),
    ],
)
def test_a_key_is_limited_to_the_locations_of_its_owner(
    key_locations: Sequence[str], owner_locations: Sequence[str], expected: Sequence[str]
) -> None:
    assert intersect_locations(key_locations, owner_locations) == frozenset(expected)


async def test_a_key_without_an_owner_keeps_its_own_permissions(service: RunningService) -> None:
    key = service.make_key(locations=["loc-1"], can_write=False)
    caller = service.caller(key)
    assert caller == Caller(caller.key_id, ORGANIZATION, False, frozenset({"loc-1"}))
    assert caller.user_id == str(caller.key_id)


@pytest.mark.parametrize(
    ("role", "grant", "can_write"),
    [
        ("owner", True, True),
        ("manager", True, True),
        ("viewer", True, False),
        ("owner", False, False),
    ],
)
async def test_a_key_can_write_only_if_the_key_and_its_owner_can_write(
    service: RunningService, role: Any, grant: bool, can_write: bool
) -> None:
    user = make_user(service, role=role)
    caller = service.caller(own_key(service, user, can_write=grant))
    assert caller.can_write is can_write
    assert caller.user_id == str(user.id)
    assert caller.role == role


async def test_the_key_of_a_removed_member_is_refused_after_the_next_poll(
    service: RunningService,
) -> None:
    user = make_user(service)
    key = own_key(service, user)
    await poll_changes(service.core)
    assert await status(service, key) == 200
    assert service.core.keys.find(key) is not None
    end_membership(service, user, ORGANIZATION)
    await poll_changes(service.core)
    assert await status(service, key) == 401


async def test_a_key_stays_revoked_when_the_membership_returns(service: RunningService) -> None:
    user = make_user(service)
    key = own_key(service, user)
    # Without a second membership, the removal below would delete the account.
    make_user(service, organization_id="org-0002")
    end_membership(service, user, ORGANIZATION)
    change_membership(service, user, "owner", ())
    assert await status(service, key) == 401


async def test_leaving_an_organization_revokes_only_the_keys_of_that_organization(
    service: RunningService,
) -> None:
    user = make_user(service)
    make_user(service, organization_id="org-0002")
    other_key = own_key(service, user, organization_id="org-0002")
    revoked_key = own_key(service, user)
    end_membership(service, user, ORGANIZATION)
    assert await status(service, other_key) == 200
    assert await status(service, revoked_key) == 401


async def test_a_key_loses_the_locations_that_its_owner_loses(service: RunningService) -> None:
    user = make_user(service)
    key = own_key(service, user, locations=["loc-1", "loc-2"])
    await poll_changes(service.core)
    await service.device(location_id="loc-2").enrolled()
    await service.device(location_id="loc-3").enrolled()

    async def visible_locations() -> list[str]:
        reply = await service.post(OVERVIEW, b"{}", api_key=key)
        return [row["device"]["locationId"] for row in reply.json()["devices"]]

    assert await visible_locations() == ["loc-2"]
    change_membership(service, user, "manager", ["loc-1", "loc-3"])
    await poll_changes(service.core)
    assert await visible_locations() == []
    change_membership(service, user, "manager", ["loc-3"])
    await poll_changes(service.core)
    assert await visible_locations() == []
    assert service.caller(key).locations == NOWHERE


async def test_a_key_cannot_write_after_its_owner_becomes_a_viewer(service: RunningService) -> None:
    user = make_user(service)
    key = own_key(service, user)
    await poll_changes(service.core)
    device = await service.device(key).enrolled()
    change_membership(service, user, "viewer", ())
    await poll_changes(service.core)
    assert (await device.heartbeat()).status_code == 403
    assert await status(service, key) == 200


async def test_a_cached_key_expires_within_five_seconds_without_a_poll() -> None:
    now_s = 100.0
    cache = KeyCache(Settings().key_cached_s, lambda: now_s)
    assert Settings().poll_interval_s < Settings().key_cached_s <= 5
    owner = uuid.uuid4()
    caller = Caller(uuid.uuid4(), ORGANIZATION, True, owner_id=owner, permissions_version=3)
    cache.apply_poll((), {owner: 3}, now_s)
    cache.keep("key", caller)
    assert cache.owners() == {owner}
    now_s += 4.9
    assert cache.find("key") == caller
    now_s += 0.2
    assert cache.find("key") is None
    cache.apply_poll((), {owner: 3}, now_s)
    assert cache.find("key") == caller
    cache.apply_poll((), {owner: 4}, now_s)
    assert cache.find("key") is None
    cache.keep("key", caller)
    cache.apply_poll((), {}, now_s)
    assert cache.find("key") is None


async def test_a_heartbeat_with_a_cached_key_does_not_query_the_owner_of_the_key(
    service: RunningService,
) -> None:
    statements_by_key: dict[str, list[str]] = {}
    for name, key in (
        ("without an owner", service.write_key),
        ("owned", own_key(service, make_user(service))),
    ):
        await poll_changes(service.core)
        device = await service.device(key).enrolled()
        await device.heartbeat()
        statements = statements_by_key.setdefault(name, [])

        def record_statement(
            _connection: Any, _cursor: Any, statement: str, *_: Any, to: list[str] = statements
        ) -> None:
            to.append(statement)

        engine = service.database._engine
        event.listen(engine, "before_cursor_execute", record_statement)
        try:
            service.clock.advance(1)
            assert (await device.heartbeat()).status_code == 200
        finally:
            event.remove(engine, "before_cursor_execute", record_statement)
    assert statements_by_key["owned"] == statements_by_key["without an owner"] != []
    assert not any("users" in each or "memberships" in each for each in statements_by_key["owned"])


async def test_the_session_of_a_removed_member_ends_at_once(service: RunningService) -> None:
    user = make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    end_membership(service, user, ORGANIZATION)
    assert (await browser.post(OVERVIEW)).status_code == 401


async def test_the_command_stream_of_a_removed_member_ends_with_the_next_poll(
    service: RunningService,
) -> None:
    user = make_user(service)
    key = own_key(service, user)
    caller = service.caller(key)
    with service.core.streams.open(caller), service.core.feeds.open(caller.key_id) as stream:
        await poll_changes(service.core)
        await service.core.feeds.wait_for_poll()
        assert not stream.is_ended
        end_membership(service, user, ORGANIZATION)
        await poll_changes(service.core)
        await service.core.feeds.wait_for_poll()
        assert stream.is_ended


@pytest.mark.parametrize("role", ["viewer", "owner"])
async def test_a_command_stream_ends_only_if_its_owner_becomes_a_viewer(
    service: RunningService, role: Any
) -> None:
    user = make_user(service)
    caller = service.caller(own_key(service, user))
    with service.core.streams.open(caller), service.core.feeds.open(caller.key_id) as stream:
        await service.core.feeds.wait_for_poll()
        change_membership(service, user, role, ["loc-1"])
        await poll_changes(service.core)
        await service.core.feeds.wait_for_poll()
        assert stream.is_ended is (role == "viewer")


async def test_a_stream_sends_no_commands_of_locations_that_its_owner_lost(
    service: RunningService,
) -> None:
    user = make_user(service)
    key = own_key(service, user)
    device = await service.device(key, location_id="loc-2").enrolled()
    caller = service.caller(key)
    await device.create_request()
    with service.core.streams.open(caller), service.core.feeds.open(caller.key_id) as stream:
        change_membership(service, user, "owner", ["loc-1"])
        await poll_changes(service.core)
        await service.core.feeds.wait_for_poll()
        assert await stream.next(0) == []
        assert not stream.is_ended


async def test_the_console_stream_of_an_ended_session_ends_with_the_next_poll(
    service: RunningService,
) -> None:
    make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    await service.device().enrolled()
    positions = service.database.read(
        lambda session: session.scalars(select(Device.position)).all()
    )
    result = service.database.read(
        lambda session: permissions.caller_of_session(
            session, permissions.hash_secret(browser.token), service.clock()
        )
    )
    assert result is not None
    caller, _ = result
    assert caller.kind == "session"
    feeds = service.core.console_feeds
    with (
        service.core.streams.open(caller),
        feeds.open(caller.organization_id, caller.key_id, positions) as stream,
    ):
        rows, _ = await stream.next(TIMEOUT_S)
        assert len(rows) == 1
        service.database.write(lambda session: end_by_token(session, browser.token))
        async with asyncio.timeout(TIMEOUT_S):
            await poll_changes(service.core)
            # The stream itself checks its rows every 5 s. The timeout is shorter, so that only
            # the poll can end the stream.
            async with asyncio.timeout(4):
                while not stream.is_ended:
                    await stream.next(4)
    await feeds.wait_for_poll()


async def test_a_changed_permission_of_the_owner_of_a_stream_is_reported_once(
    service: RunningService,
) -> None:
    user = make_user(service)
    caller = service.caller(own_key(service, user))
    streams = service.core.streams
    with streams.open(caller), streams.open(caller):
        assert set(streams.owners()) == {user.id}
        assert streams.find_changed({user.id: caller.permissions_version}) == set()
        assert streams.find_changed({user.id: caller.permissions_version + 1}) == {caller.key_id}
        assert streams.find_changed({user.id: caller.permissions_version + 1}) == set()
        assert streams.find_changed({}) == {caller.key_id}
        assert streams.find_changed({}) == set()
    assert not streams.owners()
    with streams.open(service.caller(service.write_key)):
        assert not streams.owners()


async def test_a_pending_request_ends_with_the_membership_but_not_with_the_session(
    service: RunningService,
) -> None:
    user = make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    device = await service.device().enrolled()
    other = await service.device().enrolled()
    until = {"kind": "network", "until": "2026-11-22T12:00:00.000Z"}
    service.clock.advance(3600)  # both devices go offline, so both requests are pending
    for each in (device, other):
        body = {"instanceIds": [str(each.instance_id)], **until}
        assert (await browser.post("/console/api/pending-requests", body)).status_code == 200
    await browser.post("/api/auth/sign-out")
    await poll_changes(service.core)
    await device.heartbeat()
    await poll_changes(service.core)
    requests = (await device.detail())["requests"]
    assert [each["requestedById"] for each in requests] == [str(user.id)]
    end_membership(service, user, ORGANIZATION)
    await other.heartbeat()
    await poll_changes(service.core)
    assert (await other.detail())["requests"] == []


@pytest.mark.parametrize(("role", "locations"), [("viewer", ()), ("manager", ("loc-0002",))])
async def test_a_pending_request_ends_when_its_creator_loses_the_permission(
    service: RunningService, role: Any, locations: Sequence[str]
) -> None:
    user = make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    device = await service.device().enrolled()
    service.clock.advance(3600)  # the device goes offline, so the request is pending
    body = {"kind": "network", "until": "2026-11-22T12:00:00.000Z", "all": True}
    assert (await browser.post("/console/api/pending-requests", body)).status_code == 200
    await browser.post(SIGN_OUT)
    change_membership(service, user, role, locations)
    await device.heartbeat()
    await poll_changes(service.core)
    assert (await device.detail())["requests"] == []
