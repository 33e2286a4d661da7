"""Tests of the datasets `findings` and `incidents` of the tool `read_business_records`."""

from datetime import timedelta
from typing import Any

from agent.wire.codec import to_plain
from tests.fixtures.payloads import small_venue
from tests.unit.controlplane.agent_protocol.agent import Agent
from tests.unit.controlplane.devices.incidents.test_incidents import (
    enroll_ten_hours_ago,
    incident,
    submit,
)
from tests.unit.controlplane.devices.test_newest_reports import enroll
from tests.unit.controlplane.running_service import RunningService


async def records(service: RunningService, dataset: str, **filters: Any) -> dict[str, Any]:
    agent = Agent(service)
    return await agent.call("read_business_records", dataset=dataset, filters=filters)


async def test_findings_are_listed_and_devices_without_reports_are_unknown(
    service: RunningService,
) -> None:
    bar = await enroll(service, "bar")
    await enroll(service, "office", "loc-0002")
    await bar.submit(to_plain(small_venue()))
    reply = await records(service, "findings")
    assert {each["rule"] for each in reply["rows"]} == {"printer-moved", "printer-unreachable"}
    assert {each["instanceId"] for each in reply["rows"]} == {bar.instance_id}
    assert reply["unknownDeviceCount"] == 1
    (row,) = (await records(service, "findings", rule="printer-moved"))["rows"]
    assert row["sentence"].startswith("Kitchen printer")
    bar_findings = await records(service, "findings", instanceId=bar.instance_id, severity="bad")
    assert (len(bar_findings["rows"]), bar_findings["unknownDeviceCount"]) == (2, 0)
    office_findings = await records(service, "findings", locations=["loc-0002"])
    assert (office_findings["rows"], office_findings["unknownDeviceCount"]) == ([], 1)
    none = await records(service, "findings", locations=[])
    assert (none["rows"], none["unknownDeviceCount"]) == ([], 0)
    service.clock.advance(8 * 86_400)  # reports that are older than 7 days do not count
    reply = await records(service, "findings")
    assert (reply["rows"], reply["unknownDeviceCount"]) == ([], 2)


async def test_incidents_are_filtered_by_time_and_cause(service: RunningService) -> None:
    (till,) = await enroll_ten_hours_ago(service, ["till"])
    now = service.clock()
    began = now - timedelta(hours=1)
    await submit(till, [incident(began)], now)
    reply = await records(service, "incidents")
    (row,) = reply["rows"]
    assert (row["cause"], row["instanceId"]) == ("gateway-silent", till.instance_id)
    assert reply["unknownDeviceCount"] == 0
    later = (began + timedelta(minutes=1)).isoformat()
    assert (await records(service, "incidents", **{"from": later}))["rows"] == []
    assert len((await records(service, "incidents", to=later))["rows"]) == 1
    assert (await records(service, "incidents", cause="link-down"))["rows"] == []
    assert (await records(service, "devices"))["unknownDeviceCount"] is None
