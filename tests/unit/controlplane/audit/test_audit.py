"""Tests of the audit log: which calls add entries, what they contain, and who can read them."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from sqlalchemy import inspect, select

from agent.wire import routes
from controlplane import audit
from controlplane.accounts.audit_operations import PATH as AUDIT
from controlplane.accounts.keys import key_store
from controlplane.accounts.members.operations import PREFIX as MEMBERS
from controlplane.accounts.profile import PREFIX as PROFILE
from controlplane.audit import retention
from controlplane.audit.messages import Area
from controlplane.operation.audit_entries import Operation
from controlplane.storage.audit_tables import AuditEntry
from controlplane.web import background
from controlplane.web.background import dispatch_pending_requests
from tests.unit.controlplane.accounts.people import (
    PASSWORD,
    SIGN_OUT,
    Browser,
    make_locations,
    make_user,
)
from tests.unit.controlplane.running_service import RunningService

PENDING = "/console/api/pending-requests"


def audit_entries(service: RunningService) -> list[AuditEntry]:
    def work(session: Any) -> list[AuditEntry]:
        return list(session.scalars(select(AuditEntry).order_by(AuditEntry.position)))

    return service.database.read(work)


def test_the_console_can_filter_and_describe_every_operation() -> None:
    script = (Path(audit.__file__).parents[1] / "console/audit.js").read_text()
    for operation in get_args(Operation):
        area = operation.partition(".")[0]
        assert area in get_args(Area)
        assert f'["{area}", "' in script
        assert f'"{operation}": "' in script


def operations(service: RunningService) -> list[str]:
    return [entry.operation for entry in audit_entries(service)]


async def sign_in_member(service: RunningService, **member: Any) -> Browser:
    make_user(service, **member)
    make_locations(service, "loc-0001")
    browser = Browser(service)
    assert (await browser.sign_in()).status_code == 200
    return browser


async def test_the_entry_of_a_request_names_the_key_the_device_and_the_address(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    await device.heartbeat()
    await device.create_request("application")
    (entry,) = audit_entries(service)
    assert (entry.actor_kind, entry.actor_name) == ("key", "test")
    assert (entry.credential_kind, entry.credential_hint) == ("api_key", service.write_key[-4:])
    assert entry.credential_id == entry.actor_id == service.caller(service.write_key).key_id
    assert (entry.operation, entry.detail) == ("request.create", "application")
    assert (entry.subject_kind, entry.subject_id) == ("device", device.instance_id)
    assert (entry.subject_name, entry.outcome) == ("till-01", "done")
    assert (entry.at, entry.address) == (service.clock(), "127.0.0.1")


async def test_the_entry_of_a_call_with_the_key_of_a_user_names_the_user_and_the_key(
    service: RunningService,
) -> None:
    browser = await sign_in_member(service)
    body = {"name": "till", "canWrite": True, "locations": ["loc-0001"]}
    new_key = (await browser.post(f"{PROFILE}/create-key", body)).json()
    device = await service.device(new_key["secret"]).enrolled()
    await device.create_request()
    request = audit_entries(service)[-1]
    assert (request.actor_kind, request.actor_name) == ("user", "ada@example.com")
    assert str(request.credential_id) == new_key["key"]["id"]
    creation = audit_entries(service)[-2]
    assert (creation.operation, creation.credential_kind) == ("key.create", "session")
    assert creation.subject_name == f"till (…{new_key['secret'][-4:]})"
    assert creation.detail == "reads and writes, at loc-0001"


async def test_calls_that_failed_or_changed_nothing_have_no_entry(service: RunningService) -> None:
    device = await service.device().enrolled()
    for _ in range(2):
        await device.call(routes.REVOKE, instanceId=device.instance_id)
    await device.call(routes.CREATE_REQUEST, instanceId=device.instance_id, kind="network")
    assert operations(service) == ["device.revoke"]
    browser = await sign_in_member(service)
    body = {"name": "till", "canWrite": False, "locations": []}
    new_key = (await browser.post(f"{PROFILE}/create-key", body)).json()
    for _ in range(2):
        await browser.post(f"{PROFILE}/revoke-key", {"keyId": new_key["key"]["id"]})
    assert operations(service)[1:] == ["session.sign_in", "key.create", "key.revoke"]


async def test_a_pending_request_and_its_request_are_recorded_for_the_same_user(
    service: RunningService,
) -> None:
    browser = await sign_in_member(service)
    device = await service.device().enrolled()
    until = (service.clock() + timedelta(days=1)).isoformat()
    body = {"instanceIds": [device.instance_id], "kind": "network", "until": until}
    (pending_id,) = (await browser.post(PENDING, body)).json()["pendingRequests"]
    await device.heartbeat()
    await dispatch_pending_requests(service.core)
    pending, request = audit_entries(service)[-2:]
    assert (pending.operation, pending.subject_id) == ("pending_request.create", device.instance_id)
    assert (request.operation, request.actor_name) == ("request.create", "ada@example.com")
    assert (request.credential_kind, str(request.credential_id)) == ("pending_request", pending_id)


async def test_entries_of_sign_ins_do_not_contain_the_typed_address(
    service: RunningService,
) -> None:
    user = make_user(service)
    browser = Browser(service)
    await browser.sign_in(password="wrong " * 3)
    await browser.sign_in("my secret password instead of an address")
    await browser.sign_in()
    await browser.post(SIGN_OUT)
    wrong_password, unknown_address, success, sign_out = audit_entries(service)
    assert (wrong_password.operation, wrong_password.outcome) == ("session.sign_in", "refused")
    assert (wrong_password.actor_id, wrong_password.organization_id) == (user.id, "org-0001")
    assert (unknown_address.actor_kind, unknown_address.actor_name) == ("unknown", "")
    assert (unknown_address.organization_id, unknown_address.outcome) == (None, "refused")
    assert (success.outcome, success.credential_kind) == ("done", "session")
    assert (sign_out.operation, sign_out.credential_id) == (
        "session.sign_out",
        success.credential_id,
    )


async def test_sign_ins_refused_by_the_rate_limit_have_no_entry(service: RunningService) -> None:
    make_user(service)
    replies = [await Browser(service).sign_in(password="wrong" * 3) for _ in range(14)]
    assert [reply.status_code for reply in replies] == [401] * 10 + [429] * 4
    assert len(audit_entries(service)) == 10


async def test_the_audit_log_contains_no_secrets(service: RunningService) -> None:
    browser = await sign_in_member(service)
    new = "another horse battery"
    body = {"name": "till", "canWrite": True, "locations": []}
    key = (await browser.post(f"{PROFILE}/create-key", body)).json()["secret"]
    invitation = {"email": "bob@example.com", "role": "viewer", "locations": []}
    code = (await browser.post(f"{MEMBERS}/invite", invitation)).json()["path"].rpartition("/")[2]
    join_body = {"code": code, "name": "Bob", "password": PASSWORD}
    assert (await Browser(service).post("/api/auth/join", join_body)).status_code == 200
    change = f"{PROFILE}/change-password"
    for old in ("wrong old password", PASSWORD):
        await browser.post(change, {"oldPassword": old, "newPassword": new})
    await Browser(service).sign_in(password="a wrong password")
    device = await service.device(key).enrolled()
    await device.create_request()
    values = [
        str(getattr(row, column.key))
        for row in audit_entries(service)
        for column in inspect(AuditEntry).columns
    ]
    assert len(audit_entries(service)) == 8
    secrets = (key, code, new, PASSWORD, "wrong old password", "a wrong password", browser.token)
    for secret in secrets:
        assert not any(secret in value for value in values), secret
    # The log contains the last four characters of a key, and no more.
    assert not any(key[-5:] in value for value in values)
    assert key[-4:] in values


@pytest.mark.parametrize(
    "member", [{"role": "manager"}, {"role": "viewer"}, {"locations": ["loc-0001"]}]
)
async def test_only_owners_with_access_to_all_locations_read_the_audit_log(
    service: RunningService, member: dict[str, Any]
) -> None:
    browser = await sign_in_member(service, **member)
    refused = await browser.post(AUDIT)
    assert (refused.status_code, refused.json()["code"]) == (403, "owner_required")
    assert (await service.post(AUDIT)).json()["code"] == "session_required"
    assert (await Browser(service).post(AUDIT)).status_code == 401


async def test_entries_are_listed_in_pages_and_filtered_by_actor_and_area(
    service: RunningService,
) -> None:
    browser = await sign_in_member(service)
    device = await service.device().enrolled()
    for _ in range(3):
        await device.create_request()
    first = (await browser.post(AUDIT, {"size": 3})).json()
    assert [entry["operation"] for entry in first["entries"]] == ["request.create"] * 3
    second = (await browser.post(AUDIT, {"size": 3, "cursor": first["nextCursor"]})).json()
    assert [entry["operation"] for entry in second["entries"]] == ["session.sign_in"]
    assert second["nextCursor"] is None
    for by in ("ADA@", "ada"):
        result = (await browser.post(AUDIT, {"by": by})).json()["entries"]
        assert [entry["actorName"] for entry in result] == ["ada@example.com"]
    hint = service.write_key[-4:]
    assert len((await browser.post(AUDIT, {"by": f"…{hint}"})).json()["entries"]) == 3
    assert (await browser.post(AUDIT, {"by": "%"})).json()["entries"] == []
    result = (await browser.post(AUDIT, {"area": "session"})).json()["entries"]
    assert [entry["operation"] for entry in result] == ["session.sign_in"]


@pytest.mark.parametrize(
    "body",
    [{"by": ""}, {"by": "a\u0000"}, {"area": "heartbeat"}, {"size": 0}, {"cursor": "x"}, {"a": 1}],
)
async def test_an_invalid_query_is_refused(service: RunningService, body: dict[str, Any]) -> None:
    browser = await sign_in_member(service)
    assert (await browser.post(AUDIT, body)).status_code == 400


async def test_entries_of_another_organization_are_hidden(service: RunningService) -> None:
    browser = await sign_in_member(service, organization_id="org-0002")
    await (await service.device().enrolled()).create_request()
    entries = (await browser.post(AUDIT)).json()["entries"]
    assert [entry["operation"] for entry in entries] == ["session.sign_in"]


async def test_old_audit_entries_are_deleted_in_small_steps(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "ROWS_A_STEP", 2)
    device = await service.device().enrolled()
    for _ in range(3):
        await device.create_request()
    service.clock.advance(86_400)
    await device.create_request()

    def delete() -> int:
        keep = timedelta(hours=12)
        return service.database.write(
            lambda session: retention.delete_old_entries(session, service.clock(), keep)
        )

    assert delete() == 2
    service.clock.advance(400 * 86_400 - 86_400)
    # The background job deletes all entries that are older than the settings permit.
    jobs: dict[str, Callable[[], Awaitable[None]]] = {}
    monkeypatch.setattr(background, "_start", lambda name, _, work: jobs.update({name: work}))
    list(background._start_retention(service.core))
    await jobs["audit retention"]()
    assert len(audit_entries(service)) == 2
    service.clock.advance(1)
    await jobs["audit retention"]()
    assert len(audit_entries(service)) == 1


async def test_a_failed_change_has_no_audit_entry(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry is written in the same transaction as the change."""
    browser = await sign_in_member(service)
    monkeypatch.setattr(key_store, "add_keys", _fail)
    body = {"name": "till", "canWrite": True, "locations": []}
    assert (await browser.post(f"{PROFILE}/create-key", body)).status_code == 500
    assert operations(service) == ["session.sign_in"]


def _fail(*_arguments: object, **_options: object) -> None:
    raise RuntimeError("the disk is full")
