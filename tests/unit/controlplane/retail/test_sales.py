"""Tests of listed sales: their fields, pages, sort orders and time filters."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import update

from agent.wire import codec
from controlplane.operation.cursors import Cursors, SortKey
from controlplane.retail import routes
from controlplane.retail.limits import CURSOR_MAX
from controlplane.retail.models import Sale, SalePage
from controlplane.retail.registry import OPERATIONS
from controlplane.storage.merchant import sales_tables as rows
from controlplane.storage.merchant.catalog_tables import LineSnapshot
from controlplane.web.openapi.interfaces import RETAIL_API, document_bytes
from tests.unit.controlplane.retail.retailer import (
    VAT,
    Retailer,
    access_of,
    create_retailer,
    line_row,
    new_key,
    sale_row,
)
from tests.unit.controlplane.running_service import RunningService

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
async def company(service: RunningService) -> Retailer:
    return await create_retailer(service)


async def page(company: Retailer, **parameters: str) -> SalePage:
    reply = await company.get(routes.SALES, status="completed", **parameters)
    assert reply.status_code == 200, reply.text
    return codec.decode(reply.content, SalePage)


async def sales_of_all_pages(company: Retailer, **parameters: str) -> list[Sale]:
    sales: list[Sale] = []
    query = dict(parameters)
    for _ in range(100):
        result = await page(company, **query)
        sales += result.items
        if result.cursor is None:
            return sales
        assert (len(result.items), len(result.cursor) <= CURSOR_MAX) == (20, True)
        query["cursor"] = result.cursor
    raise AssertionError("the list does not end")


def add(company: Retailer, sale: rows.Sale, *lines: dict[str, Any]) -> UUID:
    def work(session: Any) -> UUID:
        session.add(sale)
        session.flush()
        session.add_all(
            line_row(sale.position, number, **each) for number, each in enumerate(lines, start=1)
        )
        return sale.id

    return company.service.database.write(work)


async def test_a_sale_has_every_documented_field(company: Retailer) -> None:
    sale_id = add(
        company,
        sale_row(
            company.location, NOON, has_lines=True, discount=50, total=2050, comment="no sugar",
            external_data={"id": "order-7", "channel": "web"},
        ),
        {"discount": 100, "total": 2000},
        {"tax": None, "quantity": -3},
    )  # fmt: skip
    listing = (await company.get(routes.SALES, status="completed")).json()
    assert listing["cursor"] is None
    [item] = listing["items"]
    assert item == (await company.get(routes.SALE.format(sale_id=sale_id))).json()
    aed = {"currency_code": "AED"}
    assert item["totals"] == {
        "discount": {"value": 50, **aed},
        "taxable_amount": {"value": 2000, **aed},
        "tax": {"value": 100, **aed},
        "total": {"value": 2050, **aed},
    }
    assert (item["point_of_sale_id"], item["initiated_by_id"]) == ("till-1", "emp-1")
    assert item["external_data"] == {"id": "order-7", "channel": "web"}
    assert item["initiated_at"] == "2026-11-20T12:00:00Z"
    first, second = item["positions"]
    assert first == {
        "id": f"{sale_id}-1",
        "name": "Flat white",
        "quantity": {
            "value": 2,
            "exponent": 0,
            "uom_id": "00000000-0000-0000-0000-000000000001",
            "uom_name": "Piece",
            "uom_symbol": "pc",
        },
        "codes": [{"type": "sku", "value": "FW-01"}],
        "catalog_good_id": None,
        "catalog_good_variation_id": None,
        "source": "manual_input",
        "vat": {
            "fee_item_id": str(VAT),
            "fee_item_name": "VAT 5%",
            "fee_item_percentage": 5.0,
        },
        "unit_price_including_tax": {"value": 1050, **aed},
        "total_price": {"value": 2000, **aed},
        "discount_amount": {"value": 100, **aed},
        "taxable_amount": {"value": 1900, **aed},
        "tax_percentage": 5.0,
    }
    assert second["discount_amount"] is None


async def test_unknown_values_of_a_sale_are_null(company: Retailer) -> None:
    add(company, sale_row(company.location, NOON, employee=None))
    add(company, sale_row(company.location, NOON, has_lines=True), {}, {"snapshot": 2})
    for sale in (await page(company)).items:
        assert (sale.positions, sale.totals.discount) == (None, None)
    assert {sale.initiated_by_id for sale in (await page(company)).items} == {None, "emp-1"}


@pytest.mark.parametrize("source", ["catalog", "manual_input", "custom_amount"])
async def test_a_position_is_returned_with_its_source(company: Retailer, source: str) -> None:
    def change(session: Any) -> None:
        session.execute(update(LineSnapshot).values(source=source))

    company.service.database.write(change)
    add(company, sale_row(company.location, NOON, has_lines=True), {})
    [sale] = (await page(company)).items
    assert [each.source for each in sale.positions or ()] == [source]


async def test_a_sale_with_the_longest_values_is_returned(company: Retailer) -> None:
    def change(session: Any) -> None:
        codes = [["other", f"{number:0128}"] for number in range(20)]
        unit = {"uom_name": "n" * 32, "uom_symbol": "s" * 16, "exponent": 3}
        fee = {"fee_name": "f" * 64, "percentage_milli": 100_000}
        longest = {"name": "x" * 512, "codes": codes, **unit, **fee}
        session.execute(update(LineSnapshot).values(longest))

    company.service.database.write(change)
    texts = {"number": "1" * 36, "ticket_number": "2" * 16, "comment": "c" * 1024}
    external = {"id": "e" * 128}
    add(
        company,
        sale_row(company.location, NOON, has_lines=True, external_data=external, **texts),
        {},
    )
    [sale] = (await company.get(routes.SALES, status="completed")).json()["items"]
    assert {name: sale[name] for name in texts} == texts
    assert sale["external_data"] == external
    [position] = sale["positions"]
    assert (len(position["name"]), len(position["codes"])) == (512, 20)
    assert position["quantity"] | {"value": 0, "uom_id": ""} == {
        "value": 0, "exponent": 3, "uom_id": "", "uom_name": "n" * 32, "uom_symbol": "s" * 16,
    }  # fmt: skip
    assert position["vat"]["fee_item_name"] == "f" * 64
    assert position["tax_percentage"] == position["vat"]["fee_item_percentage"] == 100


async def test_only_completed_sales_of_the_company_are_listed(company: Retailer) -> None:
    unknown = add(company, sale_row(company.location, NOON, status="unknown"))
    in_euros = add(company, sale_row(company.location, NOON, currency="EUR"))
    completed = add(company, sale_row(company.location, NOON))
    assert [sale.id for sale in (await page(company)).items] == [str(completed)]
    other = await access_of(company.service, new_key(company.service, organization="org-other"))
    for sale_id, access in (
        (unknown, None),
        (in_euros, None),
        (completed, other),
        ("no-uuid", None),
        ("%00", None),
    ):
        reply = await company.get(routes.SALE.format(sale_id=sale_id), access)
        assert (reply.status_code, reply.content) == (404, b"")
    reply = await company.get(routes.SALES, other, status="completed")
    assert reply.json() == {"cursor": None, "items": []}


ORDERS = [
    f"{name}_{direction}"
    for name in ("initiated_at", "created_at", "updated_at", "number")
    for direction in ("asc", "desc")
]


@pytest.mark.parametrize("sort", ORDERS)
async def test_pages_contain_each_sale_once_in_every_order(company: Retailer, sort: str) -> None:
    # Many sales have the same time. Only the order in which they were stored distinguishes them.
    for number in range(3):
        company.add_sales(17, NOON - MINUTE * number, timedelta(0), number=f"N-{number}")
    company.add_sales(12, NOON - MINUTE * 9, MINUTE)
    sales = await sales_of_all_pages(company, sort=sort)
    name = sort.rpartition("_")[0]
    keys = [getattr(sale, name) for sale in sales]
    assert keys == sorted(keys, reverse=sort.endswith("desc"))
    assert len({sale.id for sale in sales}) == len(sales) == 63


@pytest.mark.parametrize("sort", ORDERS)
async def test_sales_added_between_two_pages_cause_no_repeated_or_skipped_sale(
    company: Retailer, sort: str
) -> None:
    company.add_sales(61, NOON, MINUTE)
    before = {sale.id for sale in await sales_of_all_pages(company, sort=sort)}
    ids: list[str] = []
    query: dict[str, str] = {"sort": sort}
    while True:
        page_of_sales = await page(company, **query)
        ids += [sale.id for sale in page_of_sales.items]
        if page_of_sales.cursor is None or len(ids) > 200:
            break
        query["cursor"] = page_of_sales.cursor
        company.add_sales(5, NOON - MINUTE * 90, MINUTE * 40)
    assert len(ids) == len(set(ids))
    assert before <= set(ids)


async def test_sales_are_newest_first_by_default(company: Retailer) -> None:
    company.add_sales(3, NOON, MINUTE)
    page_of_sales = (await page(company)).items
    assert [sale.initiated_at for sale in page_of_sales] == [NOON + MINUTE * n for n in (2, 1, 0)]


@pytest.mark.parametrize(
    ("first", "last", "count"),
    [
        ("2026-11-20T12:01:00Z", "2026-11-20T12:03:00Z", 3),
        ("2026-11-20T16:01:00+04:00", "2026-11-20T16:03:00+04:00", 3),
        ("2026-11-20T12:01:00.000001Z", "2026-11-20T12:02:59.999999Z", 1),
        ("2026-11-20T12:02:00Z", "2026-11-20T12:02:00Z", 1),
        ("2026-11-20T12:08:00Z", None, 2),
        (None, "2026-11-20T12:00:00Z", 1),
        ("2027-01-01T00:00:00Z", None, 0),
    ],
)
async def test_both_bounds_of_the_time_filter_are_inclusive(
    company: Retailer, first: str | None, last: str | None, count: int
) -> None:
    company.add_sales(10, NOON, MINUTE)
    bounds = {"initiated_at_from": first, "initiated_at_to": last}
    page_of_sales = await page(company, **{name: value for name, value in bounds.items() if value})
    assert len(page_of_sales.items) == count


@pytest.mark.parametrize(
    ("parameters", "parameter"),
    [
        ({}, "status"),
        ({"status": "unknown"}, "status"),
        ({"status": "completed", "sort": "total_asc"}, "sort"),
        ({"status": "completed", "initiated_at_from": "yesterday"}, "initiated_at_from"),
        (
            {
                "status": "completed",
                "initiated_at_from": "2026-11-20T12:00:00Z",
                "initiated_at_to": "2026-11-20T11:00:00Z",
            },
            "initiated_at_to",
        ),
        ({"status": "completed", "company_id": "7"}, "company_id"),
    ],
)
async def test_the_refusal_of_an_invalid_parameter_names_the_parameter(
    company: Retailer, parameters: dict[str, str], parameter: str
) -> None:
    reply = await company.get(routes.SALES, **parameters)
    assert (reply.status_code, reply.json()["code"]) == (400, "validation_error")
    assert list(reply.json()["errors"]) == [parameter]


async def test_a_repeated_parameter_is_refused(company: Retailer) -> None:
    reply = await company.service.http.get(
        routes.SALES + "?status=completed&status=completed",
        headers={"authorization": f"Bearer {company.access}"},
    )
    assert reply.json()["errors"] == {"status": ["must be given once"]}


async def test_a_cursor_is_valid_for_a_day_and_its_own_query(company: Retailer) -> None:
    company.add_sales(21, NOON, MINUTE)
    cursor = (await page(company)).cursor
    assert cursor is not None
    other = await access_of(company.service, new_key(company.service, organization="org-other"))
    forged_cursor = ("B" if cursor[20] == "A" else "A").join((cursor[:20], cursor[21:]))
    for parameters, access in (
        ({"cursor": cursor, "sort": "number_asc"}, None),
        ({"cursor": cursor, "initiated_at_from": "2026-01-01T00:00:00Z"}, None),
        ({"cursor": cursor}, other),
        ({"cursor": forged_cursor}, None),
        ({"cursor": cursor + "A"}, None),
        ({"cursor": cursor[:-8]}, None),
        ({"cursor": ""}, None),
        ({"cursor": "ä"}, None),
        ({"cursor": "\x00"}, None),
        ({"cursor": "A" * 129}, None),
    ):
        reply = await company.get(routes.SALES, access, status="completed", **parameters)
        assert (reply.status_code, reply.json()["code"]) == (400, "invalid_cursor")
    assert len((await page(company, cursor=cursor)).items) == 1
    company.service.clock.advance(24 * 3600)
    access = await access_of(company.service, new_key(company.service))
    reply = await company.get(routes.SALES, access, status="completed", cursor=cursor)
    assert reply.json()["code"] == "invalid_cursor"


async def test_a_cursor_of_another_listing_is_refused(company: Retailer) -> None:
    company.add_sales(21, NOON, MINUTE)
    cursor = (await page(company)).cursor
    assert cursor is not None
    reply = await company.get(routes.GOODS, cursor=cursor)
    assert reply.json()["code"] == "invalid_cursor"


def test_the_longest_cursor_fits_the_limit_of_the_contract() -> None:
    cursors = Cursors(b"k" * 32, NOON)
    listing = ("org" * 100, "sales")
    for number in (0, -(2**63), 2**63 - 1):
        cursor = cursors.write(listing, SortKey(number, 2**63 - 1))
        assert len(cursor) <= CURSOR_MAX
        assert cursors.read(listing, cursor) == SortKey(number, 2**63 - 1)


async def test_points_of_sale_and_employees_are_listed(company: Retailer) -> None:
    terminals = (await company.get(routes.POINTS_OF_SALE)).json()
    assert terminals == {
        "cursor": None,
        "items": [
            {
                "id": "till-1",
                "name": "Till 1",
                "location_id": "venue-1",
                "location_name": "Harbour",
            }
        ],
    }
    employees = (await company.get(routes.EMPLOYEES)).json()
    assert employees == {"cursor": None, "items": [{"id": "emp-1", "name": "Ana"}]}


async def test_every_retail_operation_requires_a_token(company: Retailer) -> None:
    for each in OPERATIONS:
        path = each.path.format(good_id=VAT, sale_id=VAT)
        for headers in ({}, {"authorization": "Bearer a.b.c"}, {"authorization": "Basic YTpi"}):
            reply = await company.service.http.request(each.method, path, headers=headers)
            assert (reply.status_code, reply.content) == (401, b"")
    reply = await company.get(routes.BASE + "/nothing")
    assert (reply.status_code, reply.content) == (404, b"")


def test_the_document_states_that_only_sales_in_aed_are_listed() -> None:
    document = json.loads(document_bytes(RETAIL_API))
    assert "Sales in other currencies are not listed" in document["info"]["description"]
    description = document["paths"][routes.SALES]["get"]["description"]
    assert "Sales in other currencies are not listed" in description
