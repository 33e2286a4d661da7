"""Tests of the submission of reports."""

import asyncio
import hashlib
import json
import uuid
from typing import Any

import pytest
from sqlalchemy import select

from agent.wire import routes
from agent.wire.codec import decode, encode
from agent.wire.operator_operations import ReportDetail
from controlplane.remote_control.submission import canonical_json
from controlplane.storage.tables import Report
from tests.fixtures.payloads import application_snapshot, hostile_network, small_venue
from tests.unit.controlplane.nested_lists import nested_list
from tests.unit.controlplane.running_service import RunningService

NETWORK: dict[str, Any] = json.loads(encode(small_venue()))
APPLICATION: dict[str, Any] = json.loads(encode(application_snapshot()))
HOSTILE: dict[str, Any] = json.loads(encode(hostile_network()))


@pytest.mark.parametrize(
    ("kind", "report"), [("network", NETWORK), ("application", APPLICATION), ("network", HOSTILE)]
)
async def test_a_stored_report_equals_the_submitted_one(
    service: RunningService, kind: str, report: dict[str, Any]
) -> None:
    device = await service.device().enrolled()
    request = await device.create_request(kind)
    reply = await device.submit(report, kind=kind, requestId=request, outcome="partial")
    assert reply.json() == {
        "reportId": reply.json()["reportId"],
        "requestId": request,
        "outcome": "partial",
        "trackerStatus": "disabled",
    }
    response = await device.call(routes.REPORT_DETAIL, reportId=reply.json()["reportId"])
    detail = decode(response.content, ReportDetail)
    assert response.json()["payload"] == report
    assert response.json()["id"] == reply.json()["reportId"]
    assert detail.payload_hash == hashlib.sha256(canonical_json(report)).hexdigest()
    assert (str(detail.request_id), detail.tracker_attempts) == (request, 0)
    assert await device.status_of(request) == "partial"


async def test_a_report_may_come_without_a_request(service: RunningService) -> None:
    device = await service.device().enrolled()
    reply = await device.submit(NETWORK)
    assert reply.json()["requestId"] is None
    (summary,) = (await device.detail())["reports"]
    assert (summary["reportId"], summary["requestId"]) == (reply.json()["reportId"], None)


async def test_a_failed_report_can_have_no_content(service: RunningService) -> None:
    device = await service.device().enrolled()
    reply = await device.submit(failureReason="execution-interrupted")
    detail = (await device.call(routes.REPORT_DETAIL, reportId=reply.json()["reportId"])).json()
    assert (detail["payload"], detail["failureReason"]) == (None, "execution-interrupted")
    assert detail["payloadHash"] == hashlib.sha256(b"null").hexdigest()


async def test_a_repeated_report_gets_the_same_reply(service: RunningService) -> None:
    device = await service.device().enrolled()
    body = {"requestId": await device.create_request(), "reportId": str(uuid.uuid4())}
    first = await device.submit(NETWORK, **body)
    service.clock.advance(86400)
    again = await device.submit(NETWORK, **body)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.content == again.content
    assert len((await device.detail())["reports"]) == 1


async def test_a_known_report_id_with_different_content_is_refused(service: RunningService) -> None:
    device = await service.device().enrolled()
    report_id = str(uuid.uuid4())
    await device.submit(NETWORK, reportId=report_id)
    other = await device.submit(NETWORK | {"scope": "device"}, reportId=report_id)
    assert (other.status_code, other.json()["code"]) == (409, "report_conflict")


async def test_the_same_report_with_another_outcome_is_refused(service: RunningService) -> None:
    device = await service.device().enrolled()
    report_id = str(uuid.uuid4())
    await device.submit(NETWORK, reportId=report_id, outcome="completed")
    other = await device.submit(NETWORK, reportId=report_id, outcome="partial")
    assert (other.status_code, other.json()["code"]) == (409, "report_conflict")


async def test_a_report_sent_many_times_at_once_is_stored_once(service: RunningService) -> None:
    device = await service.device().enrolled()
    body = {"requestId": await device.create_request(), "reportId": str(uuid.uuid4())}
    replies = await asyncio.gather(*(device.submit(NETWORK, **body) for _ in range(5)))
    assert {reply.status_code for reply in replies} == {200}
    assert len({reply.content for reply in replies}) == 1
    assert len((await device.detail())["reports"]) == 1


async def test_only_one_of_two_reports_for_a_request_is_accepted(service: RunningService) -> None:
    device = await service.device().enrolled()
    request = await device.create_request()
    replies = await asyncio.gather(*(device.submit(NETWORK, requestId=request) for _ in range(2)))
    assert sorted(reply.status_code for reply in replies) == [200, 409]
    refused = max(replies, key=lambda reply: reply.status_code)
    assert refused.json()["code"] == "request_finished"


async def test_a_report_for_an_expired_request_completes_the_request(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    request = await device.create_request()
    service.clock.advance(service.core.settings.request_ttl_s + 1)
    assert await device.status_of(request) == "expired"
    assert (await device.submit(NETWORK, requestId=request)).status_code == 200
    assert await device.status_of(request) == "completed"


async def test_an_ended_binding_can_repeat_a_stored_report_but_not_submit_a_new_one(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    report_id = str(uuid.uuid4())
    first = await device.submit(NETWORK, reportId=report_id)
    await device.call(routes.REVOKE, instanceId=device.instance_id)
    assert (await device.submit(NETWORK, reportId=report_id)).content == first.content
    refused = await device.submit(NETWORK)
    assert (refused.status_code, refused.json()["code"]) == (409, "binding_revoked")


@pytest.mark.parametrize(
    ("report", "changes", "field"),
    [
        (NETWORK, {"kind": "application"}, "report.version"),
        (APPLICATION, {}, "report.version"),
        (NETWORK | {"endpointsOmitted": -1}, {}, "report.endpointsOmitted"),
        (NETWORK | {"colour": "red"}, {}, "report.colour"),
        (NETWORK | {"scope": "😀" * 513}, {}, "report.scope"),
        (NETWORK, {"outcome": "done"}, "outcome"),
    ],
)
async def test_the_refusal_of_an_invalid_report_names_the_field(
    service: RunningService, report: Any, changes: dict[str, str], field: str
) -> None:
    device = await service.device().enrolled()
    request = await device.create_request(changes.get("kind", "network"))
    refused = await device.submit(report, requestId=request, **changes)
    assert refused.status_code == 400
    assert field in refused.json()["errors"]
    assert await device.status_of(request) == "queued"


@pytest.mark.parametrize("outcome", ["completed", "partial", "failed"])
@pytest.mark.parametrize("report", [..., None, "text", 7, 1.5, True, [], [NETWORK], {}, {"a": 1}])
async def test_a_value_that_is_not_a_report_is_stored_but_not_returned_as_the_payload(
    service: RunningService, outcome: str, report: Any
) -> None:
    device = await service.device().enrolled()
    request = await device.create_request()
    body = {} if report is ... else {"report": report}
    ids = {"reportId": str(uuid.uuid4()), "requestId": request, "outcome": outcome}
    first = await device.submit(**ids, **body)
    assert first.status_code == 200, first.text
    assert (await device.submit(**ids, **body)).content == first.content
    other = await device.submit(**ids, report={"b": 2})
    assert (other.status_code, other.json()["code"]) == (409, "report_conflict")
    response = await device.call(routes.REPORT_DETAIL, reportId=ids["reportId"])
    detail = decode(response.content, ReportDetail)
    assert (detail.payload, detail.outcome) == (None, outcome)
    value = None if report is ... else report
    assert detail.payload_hash == hashlib.sha256(canonical_json(value)).hexdigest()
    row = service.database.read(lambda session: session.scalars(select(Report)).one())
    assert json.loads(row.payload) == value
    expected = ("The device could not report anything.", "bad")
    if outcome != "failed" or value is not None:
        expected = ("The report has no content that can be shown.", "muted")
    assert (row.headline, row.severity) == expected
    assert await device.status_of(request) == outcome


@pytest.mark.parametrize(
    "report", [nested_list(64), {"a": [10**400, 1e308]}, "\x00\x1b", "é😀", "x" * 70_000]
)
async def test_an_unusual_value_is_stored(service: RunningService, report: Any) -> None:
    device = await service.device().enrolled()
    assert (await device.submit(report)).status_code == 200
    row = service.database.read(lambda session: session.scalars(select(Report)).one())
    assert json.loads(row.payload) == report
    (summary,) = (await device.detail())["reports"]
    detail = (await device.call(routes.REPORT_DETAIL, reportId=summary["reportId"])).json()
    assert (detail["payload"], detail["outcome"]) == (None, "completed")


@pytest.mark.parametrize("report", [nested_list(65), {"a": "\ud800"}, {"\udfff": 1}, ["1e999"]])
async def test_a_value_that_cannot_be_stored_is_refused(
    service: RunningService, report: Any
) -> None:
    device = await service.device().enrolled()
    fields = {"bindingId": device.binding_id, "reportId": str(uuid.uuid4()), "kind": "network"}
    # json.dumps() cannot write the number 1e999.
    body = json.dumps(fields | {"outcome": "completed", "report": report}).replace(
        '"1e999"', "1e999"
    )
    refused = await service.post(routes.SUBMIT_RESULT, body)
    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["report"])


async def test_a_report_is_compared_with_the_last_report_that_has_a_payload(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    first = (await device.submit(NETWORK)).json()["reportId"]
    for value in ({"a": 1}, "text", None):
        await device.submit(value, outcome="completed")
    last = (await device.submit(NETWORK | {"endpointsOmitted": 3})).json()["reportId"]
    body = json.dumps({"instanceId": device.instance_id})
    (changes,) = (await service.post("/console/api/device", body)).json()["changes"]
    assert (changes["reportId"], changes["earlierId"]) == (last, first)


async def test_a_report_whose_kind_differs_from_its_request_is_refused(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    request = await device.create_request("application")
    refused = await device.submit(NETWORK, requestId=request)
    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["kind"])


async def test_a_report_of_another_organization_cannot_be_overwritten_or_read(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    report_id = str(uuid.uuid4())
    await device.submit(NETWORK, reportId=report_id)
    foreign_device = await service.device(service.make_key(organization_id="org-0002")).enrolled()
    for refused in (
        await foreign_device.submit(NETWORK, reportId=report_id),
        await foreign_device.call(routes.REPORT_DETAIL, reportId=report_id),
    ):
        assert (refused.status_code, refused.json()["code"]) == (404, "report_not_found")
