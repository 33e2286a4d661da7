"""Tests of behaviour that docs/controlplane.md defines and the contract does not."""

import json
import uuid
from typing import Any

import pytest

from agent.wire import routes
from agent.wire.codec import decode, encode
from agent.wire.device_operations import EnrollmentRecord
from controlplane.remote_control.retention import sweep
from tests.fixtures.payloads import application_snapshot, small_venue
from tests.unit.controlplane.running_service import RunningService

NETWORK = json.loads(encode(small_venue()))
APPLICATION = json.loads(encode(application_snapshot()))


@pytest.mark.parametrize("field", ["requestId", "failureReason"])
async def test_null_is_refused_for_a_field_that_can_be_left_out(
    service: RunningService, field: str
) -> None:
    device = await service.device().enrolled()
    refused = await device.submit(NETWORK, **{field: None})
    assert refused.status_code == 400
    assert list(refused.json()["errors"]) == [field]


@pytest.mark.parametrize("report", [APPLICATION, {"version": 2}, {"reportId": "r-1", "a": 1}])
async def test_a_payload_that_does_not_fit_its_kind_is_refused(
    service: RunningService, report: Any
) -> None:
    """If the report is an object with at least one payload field, it must be a valid payload."""
    device = await service.device().enrolled()
    refused = await device.submit(report, outcome="failed")
    assert (refused.status_code, refused.json()["code"]) == (400, "validation_error")


async def test_the_payload_can_contain_a_different_report_id(service: RunningService) -> None:
    device = await service.device().enrolled()
    report_id = str(uuid.uuid4())
    assert NETWORK["reportId"] != report_id
    assert (await device.submit(NETWORK, reportId=report_id)).status_code == 200
    detail = (await device.call(routes.REPORT_DETAIL, reportId=report_id)).json()
    assert detail["payload"]["reportId"] == NETWORK["reportId"]


async def test_a_completed_report_with_a_failure_reason_is_refused(service: RunningService) -> None:
    device = await service.device().enrolled()
    refused = await device.submit(NETWORK, failureReason="collection-failed")
    assert list(refused.json()["errors"]) == ["failureReason"]
    partial = await device.submit(NETWORK, outcome="partial", failureReason="collection-failed")
    assert partial.status_code == 200


async def test_acknowledging_receipt_of_a_running_request_changes_nothing(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    request = await device.create_request()
    await device.acknowledge(request, "running")
    late = await device.acknowledge(request, "received")
    assert late.json() == {"accepted": True, "status": "received"}
    assert await device.status_of(request) == "running"


@pytest.mark.parametrize("is_expiry_stored", [False, True])
async def test_a_late_report_does_not_change_the_end_of_an_expired_request(
    service: RunningService, is_expiry_stored: bool
) -> None:
    device = await service.device().enrolled()
    request = await device.create_request()
    service.clock.advance(service.core.settings.request_ttl_s + 60)
    (expired,) = (await device.detail())["requests"]
    assert expired["finishedAt"] == expired["expiresAt"]
    if is_expiry_stored:
        service.database.write(lambda session: sweep(session, service.clock()))
    service.clock.advance(60)
    await device.submit(NETWORK, requestId=request)
    (completed,) = (await device.detail())["requests"]
    assert (completed["status"], completed["finishedAt"]) == ("completed", expired["finishedAt"])
    assert completed["updatedAt"] > expired["updatedAt"]


@pytest.mark.parametrize(
    ("capabilities", "kind", "status"),
    [
        (["network"], "application", 409),
        (["application", "commands.poll"], "network", 409),
        (["network"], "network", 200),
        ([], "network", 200),
        (["remote-reports"], "application", 200),
    ],
)
async def test_requests_of_a_kind_that_the_device_does_not_declare_are_refused(
    service: RunningService, capabilities: list[str], kind: str, status: int
) -> None:
    """A device that declares neither kind gets requests of both."""
    device = service.device()
    await device.enroll(capabilities=capabilities)
    reply = await device.call(routes.CREATE_REQUEST, instanceId=device.instance_id, kind=kind)
    assert reply.status_code == status
    if status == 409:
        assert reply.json()["code"] == "kind_unsupported"


def test_the_app_version_in_a_reply_can_be_longer_than_in_a_request() -> None:
    record = {
        "instanceId": str(uuid.uuid4()), "locationId": "loc", "legacyInstallId": "till",
        "appVersion": "1" * 200, "capabilities": [], "bindingId": str(uuid.uuid4()),
        "organizationId": "org",
    }  # fmt: skip
    assert decode(json.dumps(record).encode(), EnrollmentRecord).app_version == "1" * 200


async def test_a_path_with_a_trailing_slash_returns_404(service: RunningService) -> None:
    answer = await service.post(f"{routes.LIST_DEVICES}/", host="elsewhere.example")
    assert answer.status_code == 404
    assert "location" not in answer.headers
