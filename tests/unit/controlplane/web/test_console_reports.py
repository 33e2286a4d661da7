"""Tests of reports in the console: changes since the previous report, and tables."""

import csv
import io
import json

import pytest

from agent.wire.codec import encode
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import NetworkPayload
from tests.fixtures.payloads import application_snapshot, hostile_network, small_venue
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.simulated_device import SimulatedDevice


async def _submit_reports(
    service: RunningService, *payloads: NetworkPayload | ApplicationPayload
) -> tuple[SimulatedDevice, list[str]]:
    """Return a device that submitted these payloads, and the ids of its reports."""
    device = service.device()
    await device.enrolled()
    ids: list[str] = []
    for payload in payloads:
        kind = "network" if isinstance(payload, NetworkPayload) else "application"
        reply = await device.submit(json.loads(encode(payload)), kind=kind)
        assert reply.status_code == 200, reply.text
        ids.append(reply.json()["reportId"])
        service.clock.advance(60)
    return device, ids


UNREACHABLE = small_venue().model_copy(
    update={
        "printers": tuple(
            printer.model_copy(update={"status": "unreachable", "matched_endpoint": None})
            for printer in small_venue().printers or ()
        )
    }
)
SENTENCE = "The printer Bar receipts is not reachable; it was reachable."


async def test_the_device_detail_lists_changes_of_the_newest_reports(
    service: RunningService,
) -> None:
    device, ids = await _submit_reports(
        service, small_venue(), application_snapshot(), UNREACHABLE, application_snapshot()
    )
    body = json.dumps({"instanceId": device.instance_id})
    reply = (await service.post("/console/api/device", body)).json()
    network, application = reply["changes"]
    assert (network["kind"], application["kind"]) == ("network", "application")
    assert (network["reportId"], network["earlierId"]) == (ids[2], ids[0])
    assert network["since"] == "2026-11-20T12:00:00Z"
    assert {"severity": "bad", "sentence": SENTENCE} in network["changes"]
    assert (application["changes"], application["verdict"]) == ([], "Nothing changed.")
    again = (await service.post("/console/api/device", body)).json()
    assert again["changes"] == reply["changes"]


async def test_a_first_report_has_no_changes(service: RunningService) -> None:
    device, _ = await _submit_reports(service, small_venue(), application_snapshot())
    reply = await service.post(
        "/console/api/device", json.dumps({"instanceId": device.instance_id})
    )
    assert reply.json()["changes"] == []


async def test_a_report_page_escapes_the_names_in_its_changes(service: RunningService) -> None:
    name = "<script>alert(1)</script>"
    hostile = tuple(
        printer.model_copy(update={"name": name}) for printer in UNREACHABLE.printers or ()
    )
    _, ids = await _submit_reports(
        service, small_venue(), UNREACHABLE.model_copy(update={"printers": hostile})
    )
    first, second = [
        (await service.post("/console/report", json.dumps({"reportId": report_id}))).text
        for report_id in ids
    ]
    assert "Since the report of" not in first
    assert "Since the report of 2026-11-20 19:04:12 UTC" in second
    assert "&lt;script&gt;alert(1)&lt;/script&gt; is not reachable; it was reachable." in second
    assert name not in second


async def test_a_key_of_one_location_reads_no_changes_since_a_report_of_another_location(
    service: RunningService,
) -> None:
    key = service.make_key(locations=("loc-0002",))
    device = service.device()
    await device.enrolled()
    await device.submit(json.loads(encode(small_venue())))
    moved = await device.enroll(locationId="loc-0002")
    device.binding_id = moved.json()["bindingId"]
    await device.submit(json.loads(encode(UNREACHABLE)))
    body = json.dumps({"instanceId": device.instance_id})
    full_reply = (await service.post("/console/api/device", body)).json()
    assert len(full_reply["changes"]) == 1
    limited_reply = (await service.post("/console/api/device", body, api_key=key)).json()
    assert limited_reply["changes"] == []


@pytest.mark.parametrize("table", ["hosts", "endpoints", "printers"])
async def test_a_table_of_a_report_is_served_as_csv_without_formulas(
    service: RunningService, table: str
) -> None:
    _, (report,) = await _submit_reports(service, hostile_network())
    body = json.dumps({"reportId": report, "table": table})
    reply = await service.post("/console/report-table", body)
    assert reply.headers["content-type"] == "text/csv; charset=utf-8"
    assert reply.content.startswith(b"\xef\xbb\xbf")
    rows = list(csv.reader(io.StringIO(reply.content.decode("utf-8-sig"), newline="")))
    assert len(rows) > 1
    assert {len(row) for row in rows} == {len(rows[0])}
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@"))]


async def test_the_refusal_of_a_table_names_the_tables_of_the_report(
    service: RunningService,
) -> None:
    _, (report,) = await _submit_reports(service, application_snapshot())
    body = json.dumps({"reportId": report, "table": "hosts"})
    reply = await service.post("/console/report-table", body)
    assert reply.status_code == 400
    assert "must be one of facts" in reply.text
    key_of_other_location = service.make_key(locations=("elsewhere",))
    refused = await service.post("/console/report-table", body, api_key=key_of_other_location)
    assert refused.status_code == 403
