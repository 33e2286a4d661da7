"""Tests of each tool: its results, its refusals, and the error texts that a model receives."""

import base64
import hmac
import json
import struct
from typing import Any

import pytest
from sqlalchemy.orm import Session

from agent.presentation.headline import headline_of
from agent.wire.codec import encode
from controlplane.agent_protocol.tools.merchant_data import ROWS_MAX
from controlplane.storage.merchant.merchant_tables import Employee
from tests.fixtures.payloads import hostile_network, small_venue
from tests.unit.controlplane.agent_protocol.agent import Agent
from tests.unit.controlplane.agent_protocol.conftest import NOW
from tests.unit.controlplane.retail.retailer import PIECE, VAT, create_retailer
from tests.unit.controlplane.running_service import RunningService

READ_CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("business_context", {}),
    ("describe_business_data", {}),
    ("query_sales", {}),
    *(("read_business_records", {"dataset": dataset}) for dataset in (
        "sales", "refunds", "employees", "pointsOfSale", "devices", "deviceRequests",
        "deviceReports")),
    *(("read_merchant_data", {"section": section}) for section in (
        "organization", "locations", "fees", "uoms", "paymentMethods", "pointsOfSale",
        "employees")),
    ("read_catalog", {}),
)  # fmt: skip
NO_ACCESS = {
    "code": -32602,
    "message": "the object does not exist, or this credential has no access to it",
}
UNKNOWN_ID = "0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10"


@pytest.mark.parametrize(("tool", "arguments"), READ_CALLS)
async def test_a_read_only_key_can_call_the_tools_that_read(
    agent: Agent, tool: str, arguments: dict[str, Any]
) -> None:
    key = agent.service.make_key(can_write=False)
    await agent.call(tool, key, **arguments)


@pytest.mark.parametrize(("tool", "arguments"), READ_CALLS)
async def test_a_key_of_another_organization_gets_no_rows(
    agent: Agent, tool: str, arguments: dict[str, Any]
) -> None:
    key = agent.service.make_key(organization_id="org-0002")
    result = await agent.call(tool, key, **arguments)
    assert "loc-0001" not in json.dumps(result)
    assert result.get("rows", []) in ([], [{"organizationId": "org-0002", "name": None}])


@pytest.mark.parametrize(("tool", "arguments"), READ_CALLS)
async def test_the_refusal_of_an_unknown_argument_names_the_argument(
    agent: Agent, tool: str, arguments: dict[str, Any]
) -> None:
    text = await agent.tool_error(tool, **arguments, colour="red")
    assert text.startswith("colour is not known. ")
    assert f"{tool} takes: " in text


@pytest.mark.parametrize("location", ["loc-0002", "loc-none", "x"])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("query_sales", {"locations": ["loc-0001", "{}"]}),
        ("read_business_records", {"dataset": "sales", "filters": {"locations": ["{}"]}}),
        ("read_business_records", {"dataset": "devices", "filters": {"locations": ["{}"]}}),
    ],
)
async def test_a_foreign_location_is_refused_whether_or_not_it_exists(
    agent: Agent, tool: str, arguments: dict[str, Any], location: str
) -> None:
    key = agent.service.make_key(locations=["loc-0001"])
    with_location = json.loads(json.dumps(arguments).replace("{}", location))
    assert await agent.protocol_error(tool, key, **with_location) == NO_ACCESS


async def test_the_context_contains_the_credential_and_the_locations(agent: Agent) -> None:
    context = await agent.call("business_context", agent.service.make_key(can_write=False))
    assert context["organization"]["organizationId"] == "org-0001"
    assert context["credential"] == {"kind": "apiKey", "readOnly": True, "allLocations": True}
    assert [location["locationId"] for location in context["locations"]] == [
        "loc-0001", "loc-0002", "loc-0003", "loc-0004",
    ]  # fmt: skip
    assert any(location["fellBackToUtc"] for location in context["locations"])
    assert context["dataSpan"]["fromDate"] < context["dataSpan"]["toDate"] <= "2026-11-21"
    one = await agent.call("business_context", agent.service.make_key(locations=["loc-0002"]))
    assert [location["locationId"] for location in one["locations"]] == ["loc-0002"]
    assert one["credential"] == {"kind": "apiKey", "readOnly": False, "allLocations": False}


async def test_the_examples_of_describe_business_data_are_valid_calls(agent: Agent) -> None:
    description = await agent.call("describe_business_data")
    assert len(description["datasets"]) == 16
    for dataset in description["datasets"]:
        assert dataset["fields"]
        assert dataset["examples"]
        for example in dataset["examples"]:
            await agent.call(dataset["tool"], **example["arguments"])
    one = await agent.call("describe_business_data", dataset="salesFigures")
    assert [dataset["dataset"] for dataset in one["datasets"]] == ["salesFigures"]
    groupings = {
        grouping["name"]: grouping["description"] for grouping in one["datasets"][0]["groupings"]
    }
    assert groupings["month"] == "a local month, YYYY-MM"


async def test_described_fields_are_the_fields_of_the_records(agent: Agent) -> None:
    reply = await agent.call("describe_business_data", dataset="sales")
    documented_names = {field["name"] for field in reply["datasets"][0]["fields"]}
    rows = (await agent.call("read_business_records", dataset="sales", limit=100))["rows"]
    sale = next(row for row in rows if row["lines"])
    names = set(sale) | {f"lines.{name}" for name in sale["lines"][0]}
    assert names == documented_names


# ---------------------------------------------------------------------------- records


@pytest.mark.medium
@pytest.mark.parametrize("dataset", ["sales", "refunds", "employees", "pointsOfSale"])
async def test_pages_contain_each_row_once(agent: Agent, dataset: str) -> None:
    whole, cursor = [], None
    for _ in range(400):
        more = {"cursor": cursor} if cursor else {}
        page = await agent.call("read_business_records", dataset=dataset, limit=100, **more)
        whole += page["rows"]
        if (cursor := page["nextCursor"]) is None:
            break
    assert cursor is None
    rows_as_json = [json.dumps(row) for row in whole]
    assert len(rows_as_json) == len(set(rows_as_json)) > 2
    if dataset == "sales":
        timestamps = [row["initiatedAt"] for row in whole]
        assert timestamps == sorted(timestamps, reverse=True)


async def test_a_cursor_is_accepted_only_with_the_same_dataset_and_filters(agent: Agent) -> None:
    page = await agent.call("read_business_records", dataset="sales", limit=2)
    other = {"dataset": "refunds", "cursor": page["nextCursor"]}
    assert "Leave cursor out" in await agent.tool_error("read_business_records", **other)
    filtered = {"dataset": "sales", "cursor": page["nextCursor"], "filters": {"status": "unknown"}}
    assert "Leave cursor out" in await agent.tool_error("read_business_records", **filtered)
    nonsense = {"dataset": "sales", "cursor": "nonsense"}
    assert "Leave cursor out" in await agent.tool_error("read_business_records", **nonsense)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63)])
async def test_a_signed_cursor_with_an_impossible_time_is_invalid(agent: Agent, value: int) -> None:
    request = {"dataset": "sales", "limit": 2}
    page = await agent.call("read_business_records", **request)
    cursor = await replace_sort_value(agent, page["nextCursor"], value)
    error = await agent.tool_error("read_business_records", **request, cursor=cursor)
    assert "invalid_cursor" in error
    assert "Leave cursor out" in error


@pytest.mark.parametrize("value", [0, 1, 2**63 - 1])
async def test_a_cursor_with_another_signature_is_invalid(agent: Agent, value: int) -> None:
    request = {"dataset": "sales", "limit": 2}
    page = await agent.call("read_business_records", **request)
    cursor = await replace_sort_value(agent, page["nextCursor"], value, key=b"another key")
    assert "invalid_cursor" in await agent.tool_error(
        "read_business_records", **request, cursor=cursor
    )


async def replace_sort_value(
    agent: Agent, cursor: str, value: int, key: bytes | None = None
) -> str:
    """Return a cursor with another sort value, signed with ``key`` or the key of the service."""
    # The last 16 bytes of a cursor are its signature. The sort value is in the bytes 12 to 19.
    body = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))[:-16]
    body = body[:12] + struct.pack(">q", value) + body[20:]
    key = key or (await agent.service.core.signing_keys()).cursor_key
    signature = hmac.digest(key, body, "sha256")[:16]
    return base64.urlsafe_b64encode(body + signature).rstrip(b"=").decode()


async def test_sales_can_be_selected_by_number_or_ticket_number(agent: Agent) -> None:
    whole = (await agent.call("read_business_records", dataset="sales", limit=100))["rows"]
    sale = whole[57]  # any sale
    for filters in (
        {"number": sale["number"]},
        {"ticketNumber": sale["ticketNumber"], "locations": [sale["locationId"]],
         "from": sale["initiatedAt"]},
    ):  # fmt: skip
        rows = (await agent.call("read_business_records", dataset="sales", filters=filters))["rows"]
        assert sale in rows
        assert {row["ticketNumber"] for row in rows} == {sale["ticketNumber"]}
    unknown = {"dataset": "sales", "filters": {"number": "none"}}
    assert (await agent.call("read_business_records", **unknown))["rows"] == []


@pytest.mark.medium
async def test_device_reports_have_a_headline_and_findings(service: RunningService) -> None:
    agent = Agent(service)
    device = await service.device().enrolled()
    await device.submit(json.loads(encode(hostile_network())))
    report = (await device.submit(json.loads(encode(small_venue())))).json()
    await device.submit(failureReason="collection-failed")
    expected = headline_of(small_venue())
    assert expected.findings
    rows = (await agent.call("read_business_records", dataset="deviceReports", limit=5))["rows"]
    assert [len(row["findings"]) > 0 for row in rows] == [False, True, True]
    assert rows[1] | {"findings": []} == {
        **(await device.detail())["reports"][1],
        "instanceId": device.instance_id,
        "headline": expected.verdict,
        "severity": expected.severity,
        "findings": [],
    }
    assert rows[1]["reportId"] == report["reportId"]
    assert rows[1]["findings"] == [
        {
            "severity": finding.severity,
            "sentences": list(finding.sentences),
            "moreCount": finding.more,
            "fix": finding.advice,
        }
        for finding in expected.findings
    ]
    # A page with more than five reports contains no findings.
    for _ in range(3):
        await device.submit(failureReason="collection-failed")
    many = (await agent.call("read_business_records", dataset="deviceReports", limit=6))["rows"]
    assert [row["findings"] for row in many] == [None] * 6
    assert [row["headline"] for row in many[3:]] == [row["headline"] for row in rows]


async def test_filters_select_sales(agent: Agent) -> None:
    filters = {
        "locations": ["loc-0001"],
        "from": "2026-11-10T00:00:00Z",
        "to": "2026-11-12T00:00:00+04:00",
        "paymentType": "card",
    }
    page = await agent.call("read_business_records", dataset="sales", filters=filters, limit=100)
    assert page["rows"]
    for row in page["rows"]:
        assert (row["locationId"], row["paymentType"]) == ("loc-0001", "card")
        assert "2026-11-10T00:00:00Z" <= row["initiatedAt"] < "2026-11-11T20:00:00Z"
    employee = next(row["employeeId"] for row in page["rows"] if row["employeeId"])
    filters = {"employeeId": employee}
    page = await agent.call("read_business_records", dataset="sales", filters=filters)
    assert {row["employeeId"] for row in page["rows"]} == {employee}


async def test_a_filter_that_a_dataset_lacks_is_refused(agent: Agent) -> None:
    refusal_text = await agent.tool_error(
        "read_business_records", dataset="employees", filters={"paymentType": "card"}
    )
    assert refusal_text == (
        "employees cannot be filtered by paymentType. Supported filters: locations, status."
    )


async def test_the_devices_dataset_equals_the_reply_of_list_devices(agent: Agent) -> None:
    device = agent.service.device()
    await device.enroll()
    listed = await agent.service.post("/api/public/v1/remoteControl/listDevices", b"{}")
    reply = await agent.call("read_business_records", dataset="devices")
    assert reply["rows"] == listed.json()["devices"] != []


# ---------------------------------------------------------------------------- catalog


async def test_goods_can_be_searched(agent: Agent) -> None:
    whole = (await agent.call("read_catalog", limit=100))["rows"]
    assert len(whole) == 30
    good = next(row for row in whole if row["variations"][0]["codes"] and row["categoryId"])
    code = good["variations"][0]["codes"][0]["value"]
    assert good in (await agent.call("read_catalog", search=code))["rows"]
    part = good["name"][1:].upper()
    assert good in (await agent.call("read_catalog", search=part, limit=100))["rows"]
    for category in (good["categoryId"], good["categoryName"].lower()):
        rows = (await agent.call("read_catalog", category=category, limit=100))["rows"]
        assert good in rows
        assert {row["categoryId"] for row in rows} == {good["categoryId"]}
    assert (await agent.call("read_catalog", search="%"))["rows"] == []
    assert good["categoryName"] in await agent.tool_error("read_catalog", category="None such")
    first = await agent.call("read_catalog", limit=7)
    second = await agent.call("read_catalog", limit=7, cursor=first["nextCursor"])
    assert first["rows"] + second["rows"] == whole[:14]


@pytest.mark.parametrize("price", [0, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1])
async def test_every_price_of_the_retail_api_is_returned_unchanged(
    service: RunningService, price: int
) -> None:
    company = await create_retailer(service)
    money = {"value": price, "currency_code": "AED"}
    body = {
        "name": "Gold bar",
        "uom_id": str(PIECE),
        "vat": {"fee_item_id": str(VAT)},
        "variations": [{"default_price": money}],
    }
    created_good = (await company.create_good(body)).json()
    assert created_good["variations"][0]["default_price"] == money
    (good,) = (await Agent(service).call("read_catalog"))["rows"]
    assert good["variations"][0]["priceCents"] == price


async def test_a_good_is_made_inactive_and_active_again(agent: Agent) -> None:
    good = (await agent.call("read_catalog", status="active", limit=1))["rows"][0]
    arguments = {"goodId": good["goodId"]}
    deactivation = await agent.call("set_catalog_availability", **arguments, status="inactive")
    assert (deactivation["changed"], deactivation["before"]["goodStatus"]) == (True, "active")
    assert deactivation["after"]["goodStatus"] == "inactive"
    again = await agent.call("set_catalog_availability", **arguments, status="inactive")
    assert (again["changed"], again["before"]) == (False, again["after"])
    goods = (await agent.call("read_catalog", search=good["name"], limit=100))["rows"]
    assert {row["status"] for row in goods if row["goodId"] == good["goodId"]} == {"inactive"}
    activation = await agent.call("set_catalog_availability", **arguments, status="active")
    assert activation["changed"]


async def test_a_single_variation_can_be_made_inactive(agent: Agent) -> None:
    good = (await agent.call("read_catalog", status="active", limit=1))["rows"][0]
    arguments = {"goodId": good["goodId"], "variationId": good["variations"][0]["variationId"]}
    deactivation = await agent.call("set_catalog_availability", **arguments, status="inactive")
    assert deactivation["after"] == {"goodStatus": "active", "variationStatus": "inactive"}
    assert (await agent.call("set_catalog_availability", **arguments, status="active"))["changed"]


async def test_omitted_employees_are_counted(service: RunningService) -> None:
    def add_employees(session: Session) -> None:
        session.add_all(
            Employee(
                id=f"employee-{number}", organization_id="org-0001", location=None, name="Ada",
                role="waiter", status="active", created_at=NOW, updated_at=NOW,
            )
            for number in range(ROWS_MAX + 210)
        )  # fmt: skip

    service.database.write(add_employees)
    data = await Agent(service).call("read_merchant_data", section="employees")
    assert (len(data["rows"]), data["omittedCount"]) == (ROWS_MAX, 210)


@pytest.mark.parametrize("key", ["read only", "one location", "other organization"])
async def test_only_a_key_with_a_write_grant_for_all_locations_changes_the_catalog(
    agent: Agent, key: str
) -> None:
    good = (await agent.call("read_catalog", status="active", limit=1))["rows"][0]
    arguments = {"goodId": good["goodId"], "status": "inactive"}
    if key == "read only":
        error = await agent.protocol_error(
            "set_catalog_availability", agent.service.make_key(can_write=False), **arguments
        )
        assert error["code"] == -32602
        assert "write grant" in error["message"]
    elif key == "one location":
        limited = agent.service.make_key(locations=["loc-0001"])
        assert "all locations" in await agent.tool_error(
            "set_catalog_availability", limited, **arguments
        )
    else:
        other = agent.service.make_key(organization_id="org-0002")
        assert (
            await agent.protocol_error("set_catalog_availability", other, **arguments) == NO_ACCESS
        )
        unknown_good = arguments | {"goodId": UNKNOWN_ID}
        assert await agent.protocol_error("set_catalog_availability", **unknown_good) == NO_ACCESS
        unknown_variation = arguments | {"variationId": UNKNOWN_ID}
        assert (
            await agent.protocol_error("set_catalog_availability", **unknown_variation) == NO_ACCESS
        )
    active_good = (await agent.call("read_catalog", status="active", limit=1))["rows"][0]
    assert active_good == good


async def test_the_error_for_an_unknown_tool_names_the_known_tools(agent: Agent) -> None:
    error = await agent.protocol_error("drop_tables")
    assert error["code"] == -32602
    assert "query_sales" in error["message"]
