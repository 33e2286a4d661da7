"""Tests of the catalog: goods are created, refused and listed."""

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import update

from agent.wire import codec
from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.retail import limits, routes
from controlplane.retail import models as wire
from controlplane.retail.barcodes import check_digit, mistake_in
from controlplane.storage.merchant.catalog_tables import Category, Good, GoodVariation
from controlplane.storage.merchant.merchant_tables import FeeItem, UnitOfMeasure
from tests.unit.controlplane.nested_lists import nested_list
from tests.unit.controlplane.retail.retailer import (
    EXEMPT,
    FOOD,
    MUNICIPALITY,
    PIECE,
    UNKNOWN_ID,
    VAT,
    Retailer,
    access_of,
    create_retailer,
    new_key,
)
from tests.unit.controlplane.running_service import RunningService


@pytest.fixture
async def company(service: RunningService) -> Retailer:
    return await create_retailer(service)


def body(**changes: Any) -> dict[str, Any]:
    """Return the body of a call that creates a good. A change to ``...`` removes the field."""
    fields = {
        "name": "Flat white",
        "uom_id": str(PIECE),
        "vat": {"fee_item_id": str(VAT)},
        "variations": [{}],
    } | changes
    return {name: value for name, value in fields.items() if value is not ...}


UNSTORABLE_CHARACTERS = ("\x00", "\n", "\x1b", "\x7f", "\x85", "\ud800", "\udfff")
"""Characters that are refused in a text: control characters, and halves of surrogate pairs."""
REFUSED_DATA: tuple[dict[str, Any], ...] = (
    {"a": "\x00"},
    {"a": [1, {"b": "\ud800"}]},
    {"a": {"b\x00": 1}},
    {"\ud800": 1},
    {"a": nested_list(32)},
)
"""Fields that are refused in external data, although its id is valid."""


async def test_a_good_is_created_and_returned(company: Retailer) -> None:
    full = body(
        description="With oat milk",
        external_data={"id": "good-1", "depth": [1, {"a": None}]},
        category_id=str(FOOD),
        variations=[
            {
                "name": "Small",
                "description": "200 ml",
                "external_data": {"id": "variation-1"},
                "status": "inactive",
                "default_price": {"value": 0, "currency_code": "AED"},
                "codes": [
                    {"type": "ean_13", "value": "4006381333931"},
                    {"type": "sku", "value": "FW-S"},
                ],
            },
            {"name": "Large"},
        ],
    )
    reply = await company.create_good(full)
    assert reply.status_code == 201, reply.text
    good = reply.json()
    assert good["uom"] == {"id": str(PIECE), "name": "Piece", "symbol": "pc", "exponent": 0}
    assert good["vat"] == {
        "fee_item_id": str(VAT),
        "fee_item_name": "VAT 5%",
        "fee_item_percentage": 5.0,
    }
    assert good["external_data"] == full["external_data"]
    assert (good["status"], good["business_type"]) == ("active", "regular")
    small, large = good["variations"]
    assert {name: small[name] for name in full["variations"][0]} == full["variations"][0]
    assert (large["name"], large["status"], large["codes"]) == ("Large", "active", [])
    assert "default_price" not in large
    output = await company.get(routes.GOOD.format(good_id=good["id"]))
    assert (output.status_code, output.json()) == (200, good)
    codec.decode(output.content, wire.Good)


@pytest.mark.parametrize("status", ["active", "inactive", "unknown"])
async def test_a_good_is_returned_as_stored(company: Retailer, status: str) -> None:
    """No operation sets the status or image of a good, so the test writes them to the database."""
    good = (await company.create_good(body())).json()
    image = "https://cdn.example.com/" + "x" * (2048 - 24)

    def change(session: Any) -> None:
        session.execute(update(Good).values(status=status))
        session.execute(update(GoodVariation).values(image_url=image))

    company.service.database.write(change)
    good = (await company.get(routes.GOOD.format(good_id=good["id"]))).json()
    assert (good["status"], good["variations"][0]["image_url"]) == (status, image)


async def test_a_single_variation_can_have_no_name(company: Retailer) -> None:
    good = (await company.create_good(body())).json()
    assert [each["name"] for each in good["variations"]] == [None]
    assert good["category_id"] is None


async def test_every_listed_fee_can_be_the_vat_of_a_good(company: Retailer) -> None:
    fees = (await company.get(routes.FEES)).json()["fee_items"]
    assert str(MUNICIPALITY) in {fee["id"] for fee in fees}
    for fee in fees:
        reply = await company.create_good(body(vat={"fee_item_id": fee["id"]}))
        assert reply.status_code == 201, reply.text
        assert reply.json()["vat"]["fee_item_name"] == fee["name"]


async def test_external_data_can_be_null(company: Retailer) -> None:
    request_body = body(external_data=None, variations=[{"external_data": None}])
    good = (await company.create_good(request_body)).json()
    assert good["external_data"] is None
    assert good["variations"][0]["external_data"] is None


async def test_doubtful_values_are_accepted_and_logged(
    company: Retailer, caplog: pytest.LogCaptureFixture
) -> None:
    request_body = body(
        name="  ",
        vat={"fee_item_id": str(MUNICIPALITY)},
        variations=[{"codes": [{"type": "ean_13", "value": "4006381333932"}]}],
    )
    with caplog.at_level("WARNING"):
        good = (await company.create_good(request_body)).json()
    assert good["variations"][0]["codes"] == request_body["variations"][0]["codes"]
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "name is blank",
        "vat.fee_item_id is the id of a fee that is not VAT",
        "variations[0].codes[0].value must end with its check digit, which is 1",
    ]
    caplog.clear()
    assert (await company.create_good(body())).status_code == 201
    assert caplog.records == []


async def test_an_exempt_good_has_no_percentage(company: Retailer) -> None:
    good = (await company.create_good(body(vat={"fee_item_id": str(EXEMPT)}))).json()
    assert good["vat"] == {"fee_item_id": str(EXEMPT), "fee_item_name": "Exempt"}


def codes(count: int) -> list[dict[str, str]]:
    return [{"type": "other", "value": f"code-{number}"} for number in range(count)]


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "ab"},
        {"name": "x" * 128},
        {"name": "🍵" * 128},
        {"description": "ab"},
        {"description": "x" * 1024},
        {"external_data": {"id": "abcd"}},
        {"external_data": {"id": "x" * 128}},
        {
            "external_data": {
                "id": "good-1",
                "deep": nested_list(31),
                "wide": 10**40,
                "other": [None, "é"],
            }
        },
        {"external_data": None},
        {"description": "two\r\n\tlines"},
        {"category_id": None},
        {"variations": [{"name": f"{number}"} for number in range(150)]},
        {"variations": [{"name": "x" * 128}, {"name": "y"}]},
        {"variations": [{"description": "ab", "external_data": {"id": "abcd"}}]},
        {"variations": [{"description": "x" * 1024, "external_data": {"id": "x" * 128}}]},
        {"variations": [{"external_data": None}]},
        {"name": "  "},
        {"variations": [{"name": " "}, {"name": "  "}]},
        {"vat": {"fee_item_id": str(MUNICIPALITY)}},
        {"variations": [{"codes": codes(20)}]},
        {"variations": [{"codes": [{"type": "ean_13", "value": "4006381333932"}]}]},
        {"variations": [{"codes": [{"type": "ean_8", "value": "abcd"}]}]},
        {"variations": [{"codes": [{"type": "upc_a", "value": "x" * 128}]}]},
        {"variations": [{"codes": [{"type": "sku", "value": "x" * 128}]}]},
        {"variations": [{"default_price": {"value": 2**63 - 1, "currency_code": "AED"}}]},
        {"variations": [{"default_price": {"value": 5.0, "currency_code": "AED"}}]},
    ],
)
async def test_permitted_values_are_accepted(company: Retailer, changes: dict[str, Any]) -> None:
    reply = await company.create_good(body(**changes))
    assert reply.status_code == 201, reply.text


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ...}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x"}, "name"),
        ({"name": "x" * 129}, "name"),
        ({"name": None}, "name"),
        ({"description": "x"}, "description"),
        ({"description": "x" * 1025}, "description"),
        ({"description": None}, "description"),
        ({"external_data": {}}, "external_data.id"),
        ({"external_data": {"id": "abc"}}, "external_data.id"),
        ({"external_data": {"id": "x" * 129}}, "external_data.id"),
        ({"category_id": str(UNKNOWN_ID)}, "category_id"),
        ({"category_id": "root"}, "category_id"),
        ({"uom_id": ...}, "uom_id"),
        ({"uom_id": ""}, "uom_id"),
        ({"uom_id": str(UNKNOWN_ID)}, "uom_id"),
        ({"vat": ...}, "vat"),
        ({"vat": {}}, "vat.fee_item_id"),
        ({"vat": {"fee_item_id": str(UNKNOWN_ID)}}, "vat.fee_item_id"),
        ({"variations": ...}, "variations"),
        ({"variations": []}, "variations"),
        ({"variations": [{"name": f"{number}"} for number in range(151)]}, "variations"),
        ({"variations": [{"name": "a"}, {}]}, "variations[1].name"),
        ({"variations": [{"name": "a"}, {"name": ""}]}, "variations[1].name"),
        ({"variations": [{"name": "a"}, {"name": "x" * 129}]}, "variations[1].name"),
        ({"variations": [{"name": "a"}]}, "variations[0].name"),
        ({"variations": [{"description": "x"}]}, "variations[0].description"),
        ({"variations": [{"description": "x" * 1025}]}, "variations[0].description"),
        ({"variations": [{"external_data": {"id": "abc"}}]}, "variations[0].external_data.id"),
        ({"variations": [{"external_data": {"id": "x" * 129}}]}, "variations[0].external_data.id"),
        ({"variations": [{"status": "unknown"}]}, "variations[0].status"),
        ({"variations": [{"codes": codes(21)}]}, "variations[0].codes"),
        ({"variations": [{"codes": [{"type": "sku", "value": "abc"}]}]},
         "variations[0].codes[0].value"),
        ({"variations": [{"codes": [{"type": "sku", "value": "x" * 129}]}]},
         "variations[0].codes[0].value"),
        ({"variations": [{"codes": [{"type": "qr", "value": "abcd"}]}]},
         "variations[0].codes[0].type"),
        ({"variations": [{"codes": [{"type": "ean_13", "value": "400"}]}]},
         "variations[0].codes[0].value"),
        ({"variations": [{"default_price": {"value": -1, "currency_code": "AED"}}]},
         "variations[0].default_price.value"),
        ({"variations": [{"default_price": {"value": 2**63, "currency_code": "AED"}}]},
         "variations[0].default_price.value"),
        ({"variations": [{"default_price": {"value": 1.5, "currency_code": "AED"}}]},
         "variations[0].default_price.value"),
        ({"variations": [{"default_price": {"value": 1, "currency_code": "EUR"}}]},
         "variations[0].default_price.currency_code"),
        ({"variations": [{"default_price": {"value": 1}}]},
         "variations[0].default_price.currency_code"),
        ({"variations": [{"default_price": {"currency_code": "AED"}}]},
         "variations[0].default_price.value"),
        ({"colour": "red"}, "colour"),
        *(({"name": f"tea{character}"}, "name") for character in UNSTORABLE_CHARACTERS),
        ({"description": "one\x00two"}, "description"),
        ({"description": "one\ud800"}, "description"),
        *(
            ({"external_data": {"id": f"tea-{character}"}}, "external_data.id")
            for character in UNSTORABLE_CHARACTERS
        ),
        *(
            ({"external_data": {"id": "good-1", **extra}}, "external_data")
            for extra in REFUSED_DATA
        ),
        ({"variations": [{"name": "a"}, {"name": "b\n"}]}, "variations[1].name"),
        ({"variations": [{"external_data": {"id": "good-1", "a": "\ud800"}}]},
         "variations[0].external_data"),
        ({"variations": [{"codes": [{"type": "sku", "value": "abc\x00"}]}]},
         "variations[0].codes[0].value"),
    ],
)  # fmt: skip
async def test_the_refusal_of_a_value_beyond_the_limits_names_its_field(
    company: Retailer, changes: dict[str, Any], field: str
) -> None:
    reply = await company.create_good(body(**changes))
    assert (reply.status_code, reply.json()["code"]) == (400, "validation_error")
    assert list(reply.json()["errors"]) == [field]
    assert (await company.get(routes.GOODS)).json()["items"] == []


async def test_a_number_that_is_too_large_to_store_is_refused(company: Retailer) -> None:
    text = json.dumps(body(external_data={"id": "good-1", "a": ["large"]}))
    reply = await company.service.http.post(
        routes.GOODS,
        content=text.replace('"large"', "1e999"),
        headers={"authorization": f"Bearer {company.access}", "content-type": "application/json"},
    )
    assert reply.status_code == 400
    assert list(reply.json()["errors"]) == ["external_data"]


async def test_one_refusal_names_all_invalid_fields(company: Retailer) -> None:
    codes = [{"type": "x", "value": ""}, {"type": "ean_13", "value": "400"}]
    reply = await company.create_good({"name": "", "vat": {}, "variations": [{"codes": codes}]})
    assert set(reply.json()["errors"]) == {
        "name",
        "uom_id",
        "vat.fee_item_id",
        "variations[0].codes[0].type",
        "variations[0].codes[0].value",
        "variations[0].codes[1].value",
    }


@pytest.mark.parametrize(
    "first",
    [
        None,
        {"external_data": {"id": "taken"}},
        {"variations": [{"external_data": {"id": "taken"}}]},
    ],
)
@pytest.mark.parametrize("entity", ["good", "variation"])
async def test_an_external_id_must_be_unique_in_a_company(
    company: Retailer, first: dict[str, Any] | None, entity: str
) -> None:
    # If ``first`` is None, a category of the company already has the external id.
    external_data = {"id": "cat-food" if first is None else "taken"}
    if first is not None:
        assert (await company.create_good(body(**first))).status_code == 201
    second = {"external_data": external_data}
    reply = await company.create_good(
        body(**second) if entity == "good" else body(variations=[second])
    )
    assert reply.status_code == 409
    problem = reply.json()
    assert (problem["code"], problem["reason"]) == (
        "existing_entity_conflict",
        "duplicate_external_data_id",
    )


async def test_an_external_id_must_be_unique_in_a_body(company: Retailer) -> None:
    twice = {"external_data": {"id": "twice"}}
    assert (await company.create_good(body(**twice, variations=[twice]))).status_code == 409
    assert (await company.get(routes.GOODS)).json()["items"] == []


async def test_another_company_may_use_the_same_external_id(company: Retailer) -> None:
    service = company.service
    # The other company has no fees and units. Its good is refused for that reason (400), not
    # because of the external id (409).
    other = await access_of(service, new_key(service, organization="org-other"))
    with_shared_id = body(external_data={"id": "shared"})
    assert (await company.create_good(with_shared_id)).status_code == 201
    assert (await company.create_good(with_shared_id, other)).status_code == 400


async def test_a_good_of_another_company_returns_404(company: Retailer) -> None:
    good = (await company.create_good(body())).json()
    other = await access_of(company.service, new_key(company.service, organization="org-other"))
    reply = await company.get(routes.GOOD.format(good_id=good["id"]), other)
    assert (reply.status_code, reply.content) == (404, b"")
    reply = await company.get(routes.GOOD.format(good_id=uuid4()))
    assert (reply.status_code, reply.content) == (404, b"")
    assert (await company.get(routes.GOODS, other)).json() == {"cursor": None, "items": []}


async def test_a_read_only_key_cannot_create_a_good(company: Retailer) -> None:
    reader = await access_of(company.service, new_key(company.service, can_write=False))
    reply = await company.create_good(body(), reader)
    assert (reply.status_code, reply.content) == (403, b"")
    assert (await company.get(routes.GOODS, reader)).status_code == 200


async def test_another_content_type_is_refused(company: Retailer) -> None:
    reply = await company.create_good(body(), **{"content-type": "text/plain"})
    assert (reply.status_code, reply.json()["code"]) == (415, "invalid_request")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_another_method_is_refused(company: Retailer, method: str) -> None:
    headers = {"authorization": f"Bearer {company.access}"}
    reply = await company.service.http.request(method, routes.GOODS, headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (405, "invalid_request")
    assert reply.headers["allow"] == "GET, POST"


async def test_an_invalid_json_body_is_refused(company: Retailer) -> None:
    headers = {"authorization": f"Bearer {company.access}", "content-type": "application/json"}
    for content in (b"", b"{", b"[]", b'{"name": "a", "name": "b"}', b"\xff"):
        reply = await company.service.http.post(routes.GOODS, content=content, headers=headers)
        assert (reply.status_code, reply.json()["code"]) == (400, "invalid_request")


async def test_goods_are_listed_in_pages(company: Retailer) -> None:
    goods = [
        (await company.create_good(body(name=f"Good {number}"))).json() for number in range(41)
    ]
    ids: list[str] = []
    cursor: dict[str, str] = {}
    for expected in (20, 20, 1):
        reply = await company.get(routes.GOODS, **cursor)
        page = codec.decode(reply.content, wire.GoodPage)
        assert len(page.items) == expected
        ids += [str(each.id) for each in page.items]
        cursor = {"cursor": page.cursor or ""}
    assert cursor == {"cursor": ""}
    assert ids == [each["id"] for each in goods]


async def test_units_and_fees_are_listed_in_pages(company: Retailer) -> None:
    def add(session: Any) -> None:
        for number in range(40):
            common = {"id": uuid4(), "organization_id": DEFAULT_ORGANIZATION}
            session.add(UnitOfMeasure(**common, name=f"U{number:02}", symbol="u", exponent=3))
            session.add(FeeItem(**common, name=f"F{number:02}", kind="vat", percentage_milli=1))

    company.service.database.write(add)
    for path, name, count in ((routes.UOMS, "items", 41), (routes.FEES, "fee_items", 43)):
        names: list[str] = []
        cursor: dict[str, str] = {}
        for _ in range(3):
            page = (await company.get(path, **cursor)).json()
            names += [each["name"] for each in page[name]]
            cursor = {"cursor": page["cursor"]}
        assert cursor == {"cursor": None}
        assert names == sorted(names)
        assert len(set(names)) == count


async def test_the_refusal_of_an_invalid_good_id_names_the_parameter(company: Retailer) -> None:
    reply = await company.get(routes.GOOD.format(good_id="7"))
    assert (reply.status_code, list(reply.json()["errors"])) == (400, ["good_id"])


async def test_categories_fees_and_units_are_listed(company: Retailer) -> None:
    company.service.database.write(
        lambda session: _add_category_of_another_company(session, company.service.clock())
    )
    categories = (await company.get(routes.CATEGORIES)).json()
    assert categories["cursor"] is None
    assert [each["id"] for each in categories["items"]] == [str(FOOD)]
    assert categories["items"][0]["external_data"] == {"id": "cat-food", "colour": "red"}
    fees = (await company.get(routes.FEES)).json()
    assert {UUID(each["id"]): each.get("percentage") for each in fees["fee_items"]} == {
        VAT: 5.0,
        EXEMPT: None,
        MUNICIPALITY: 7.0,
    }
    units = (await company.get(routes.UOMS)).json()
    assert [each["symbol"] for each in units["items"]] == ["pc"]


def _add_category_of_another_company(session: Any, now: Any) -> None:
    session.add(
        Category(
            id=uuid4(),
            organization_id="org-other",
            name="Other",
            parent_id=None,
            status="active",
            external_data=None,
            created_at=now,
            updated_at=now,
        )
    )


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("ean_8", "73513537"),
        ("ean_13", "4006381333931"),
        ("upc_a", "036000291452"),
        ("itf_14", "15400141288763"),
    ],
)
def test_real_codes_have_valid_check_digits(kind: str, value: str) -> None:
    assert mistake_in(kind, value) is None
    for digit in set("0123456789") - {value[-1]}:
        assert mistake_in(kind, value[:-1] + digit) == (
            f"must end with its check digit, which is {value[-1]}"
        )
    assert mistake_in(kind, value[1:]) == f"must have {len(value)} digits"
    assert mistake_in(kind, "١" * len(value)) == f"must have {len(value)} digits"
    assert check_digit(value[:-1]) == value[-1]


def test_codes_without_a_check_digit_accept_any_value() -> None:
    assert mistake_in("sku", "anything") is None


def test_a_variation_can_have_20_codes() -> None:
    assert limits.CODES_MAX == 20
