"""Tests of each tool: its results, its refusals, and the error texts that a model receives."""

import json
from typing import Any

import pytest

from tests.unit.controlplane.agent_protocol.agent import Agent

READ: tuple[tuple[str, dict[str, Any]], ...] = (
    ("business_context", {}),
    ("describe_business_data", {}),
    ("query_sales", {}),
    *(("read_business_records", {"dataset": each}) for each in (
        "sales", "refunds", "employees", "pointsOfSale", "devices", "deviceRequests",
        "deviceReports")),
    *(("read_merchant_data", {"section": each}) for each in (
        "organization", "locations", "fees", "uoms", "paymentMethods", "pointsOfSale",
        "employees")),
    ("read_catalog", {}),
)  # fmt: skip
FOREIGN = {
    "code": -32602,
    "message": "there is no such thing, or this credential has no access to it",
}
NOBODYS = "0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10"


@pytest.mark.parametrize(("tool", "arguments"), READ)
async def test_a_read_only_key_may_read(agent: Agent, tool: str, arguments: dict[str, Any]) -> None:
    key = agent.service.make_key(can_write=False)
    await agent.call(tool, key, **arguments)


@pytest.mark.parametrize(("tool", "arguments"), READ)
async def test_another_organization_sees_nothing_of_it(
    agent: Agent, tool: str, arguments: dict[str, Any]
) -> None:
    key = agent.service.make_key(organization_id="org-0002")
    result = await agent.call(tool, key, **arguments)
    if tool == "describe_business_data":
        return
    assert "loc-0001" not in json.dumps(result)
    assert result.get("rows", []) in ([], [{"organizationId": "org-0002", "name": None}])


@pytest.mark.parametrize(("tool", "arguments"), READ)
async def test_an_unknown_argument_is_named(
    agent: Agent, tool: str, arguments: dict[str, Any]
) -> None:
    text = await agent.mistake(tool, **arguments, colour="red")
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
    named = json.loads(json.dumps(arguments).replace("{}", location))
    assert await agent.refused(tool, key, **named) == FOREIGN


async def test_the_context_contains_the_credential_and_the_locations(agent: Agent) -> None:
    message = await agent.call("business_context", agent.service.make_key(can_write=False))
    assert message["organization"]["organizationId"] == "org-0001"
    assert message["credential"] == {"kind": "apiKey", "readOnly": True, "allLocations": True}
    assert [each["locationId"] for each in message["locations"]] == [
        "loc-0001", "loc-0002", "loc-0003", "loc-0004",
    ]  # fmt: skip
    assert any(each["fellBackToUtc"] for each in message["locations"])
    assert message["dataSpan"]["fromDate"] < message["dataSpan"]["toDate"] <= "2026-11-21"
    one = await agent.call("business_context", agent.service.make_key(locations=["loc-0002"]))
    assert [each["locationId"] for each in one["locations"]] == ["loc-0002"]
    assert one["credential"] == {"kind": "apiKey", "readOnly": False, "allLocations": False}


async def test_the_description_has_examples_that_work(agent: Agent) -> None:
    report = await agent.call("describe_business_data")
    assert len(report["datasets"]) == 14
    for dataset in report["datasets"]:
        assert dataset["fields"]
        for example in dataset["examples"]:
            await agent.call(dataset["tool"], **example["arguments"])
    one = await agent.call("describe_business_data", dataset="salesFigures")
    assert [each["dataset"] for each in one["datasets"]] == ["salesFigures"]
    hour = next(each for each in one["datasets"][0]["groupings"] if each["name"] == "hour")
    assert hour["notBeside"] == ["category", "employee", "item", "paymentType"]


async def test_described_fields_are_the_fields_of_the_records(agent: Agent) -> None:
    reply = await agent.call("describe_business_data", dataset="sales")
    described = {each["name"] for each in reply["datasets"][0]["fields"]}
    rows = (await agent.call("read_business_records", dataset="sales", limit=100))["rows"]
    sale = next(row for row in rows if row["lines"])
    names = set(sale) | {f"lines.{name}" for name in sale["lines"][0]}
    assert names == described


# ---------------------------------------------------------------------------- records


@pytest.mark.medium
@pytest.mark.parametrize("dataset", ["sales", "refunds", "employees", "pointsOfSale"])
async def test_pages_show_each_row_once(agent: Agent, dataset: str) -> None:
    whole, cursor = [], None
    for _ in range(400):
        more = {"cursor": cursor} if cursor else {}
        page = await agent.call("read_business_records", dataset=dataset, limit=100, **more)
        whole += page["rows"]
        if (cursor := page["nextCursor"]) is None:
            break
    rows_as_json = [json.dumps(row) for row in whole]
    assert len(rows_as_json) == len(set(rows_as_json)) > 2
    if dataset == "sales":
        timestamps = [row["initiatedAt"] for row in whole]
        assert timestamps == sorted(timestamps, reverse=True)


async def test_a_cursor_is_accepted_only_by_the_same_call(agent: Agent) -> None:
    page = await agent.call("read_business_records", dataset="sales", limit=2)
    other = {"dataset": "refunds", "cursor": page["nextCursor"]}
    assert "Leave cursor out" in await agent.mistake("read_business_records", **other)
    filtered = {"dataset": "sales", "cursor": page["nextCursor"], "filters": {"status": "unknown"}}
    assert "Leave cursor out" in await agent.mistake("read_business_records", **filtered)
    nonsense = {"dataset": "sales", "cursor": "nonsense"}
    assert "Leave cursor out" in await agent.mistake("read_business_records", **nonsense)


async def test_sales_are_narrowed_by_filters(agent: Agent) -> None:
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
    of = {"employeeId": employee}
    for row in (await agent.call("read_business_records", dataset="sales", filters=of))["rows"]:
        assert row["employeeId"] == employee


async def test_a_filter_that_a_dataset_lacks_is_refused(agent: Agent) -> None:
    refusal_text = await agent.mistake(
        "read_business_records", dataset="employees", filters={"paymentType": "card"}
    )
    assert refusal_text == (
        "employees cannot be filtered by paymentType. Its filters: locations, status."
    )


async def test_devices_are_those_that_the_facade_lists(agent: Agent) -> None:
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
    assert good["categoryName"] in await agent.mistake("read_catalog", category="None such")
    first = await agent.call("read_catalog", limit=7)
    second = await agent.call("read_catalog", limit=7, cursor=first["nextCursor"])
    assert first["rows"] + second["rows"] == whole[:14]


async def test_a_good_is_made_inactive_and_active_again(agent: Agent) -> None:
    good = (await agent.call("read_catalog", status="active", limit=1))["rows"][0]
    named = {"goodId": good["goodId"]}
    off = await agent.call("set_catalog_availability", **named, status="inactive")
    assert (off["changed"], off["before"]["goodStatus"]) == (True, "active")
    assert off["after"]["goodStatus"] == "inactive"
    again = await agent.call("set_catalog_availability", **named, status="inactive")
    assert (again["changed"], again["before"]) == (False, again["after"])
    goods = (await agent.call("read_catalog", search=good["name"], limit=100))["rows"]
    assert {row["status"] for row in goods if row["goodId"] == good["goodId"]} == {"inactive"}
    on = await agent.call("set_catalog_availability", **named, status="active")
    assert on["changed"]


async def test_a_single_variation_can_be_made_inactive(agent: Agent) -> None:
    good = (await agent.call("read_catalog", status="active", limit=1))["rows"][0]
    named = {"goodId": good["goodId"], "variationId": good["variations"][0]["variationId"]}
    off = await agent.call("set_catalog_availability", **named, status="inactive")
    assert off["after"] == {"goodStatus": "active", "variationStatus": "inactive"}
    assert (await agent.call("set_catalog_availability", **named, status="active"))["changed"]


@pytest.mark.parametrize("key", ["read only", "cut", "other organization"])
async def test_only_a_write_grant_for_all_locations_changes_anything(
    agent: Agent, key: str
) -> None:
    good = (await agent.call("read_catalog", status="active", limit=1))["rows"][0]
    named = {"goodId": good["goodId"], "status": "inactive"}
    if key == "read only":
        error = await agent.refused(
            "set_catalog_availability", agent.service.make_key(can_write=False), **named
        )
        assert error["code"] == -32602
        assert "write grant" in error["message"]
    elif key == "cut":
        cut = agent.service.make_key(locations=["loc-0001"])
        assert "all locations" in await agent.mistake("set_catalog_availability", cut, **named)
    else:
        other = agent.service.make_key(organization_id="org-0002")
        assert await agent.refused("set_catalog_availability", other, **named) == FOREIGN
        nobodys = named | {"goodId": NOBODYS}
        assert await agent.refused("set_catalog_availability", **nobodys) == FOREIGN
        stray = named | {"variationId": NOBODYS}
        assert await agent.refused("set_catalog_availability", **stray) == FOREIGN
    active_good = (await agent.call("read_catalog", status="active", limit=1))["rows"][0]
    assert active_good == good


async def test_an_unknown_tool_is_an_error_that_names_the_known(agent: Agent) -> None:
    error = await agent.refused("drop_tables")
    assert error["code"] == -32602
    assert "query_sales" in error["message"]
