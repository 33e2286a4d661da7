"""Every operation of the retail API, called by a till that maintains a catalog and reads sales."""

import uuid

from controlplane.retail import routes
from tests.contract.service.calls.recorder import (
    NOT_LISTED,
    OTHER_ORGANIZATION,
    UNKNOWN_ID,
    Json,
    Recorder,
)
from tests.unit.controlplane.retail.retailer import new_key

SOLD_FROM = "2026-11-10T00:00:00Z"


async def record(recorder: Recorder) -> None:
    tokens = await _record_tokens(recorder, new_key(recorder.service))
    refresh = {"refresh_token": tokens["refresh_token"]}
    recorder.access_token = (await recorder.call("POST", routes.REFRESH, body=refresh, secret=""))[
        "access_token"
    ]
    other = await _record_tokens(
        recorder, new_key(recorder.service, organization=OTHER_ORGANIZATION), title=NOT_LISTED
    )
    await _record_catalog(recorder)
    await _record_sales(recorder)
    await _record_refusals(recorder)
    for access_token in (recorder.access_token, other["access_token"]):
        for path in (routes.GOODS, routes.SALES):
            await _record_every_page(recorder, path, access_token)


async def _record_tokens(recorder: Recorder, api_key: str, title: str = "") -> Json:
    body = {"api_key": api_key}
    result: Json = await recorder.call("POST", routes.TOKENS, body=body, secret="", title=title)
    return result


async def _record_catalog(recorder: Recorder) -> None:
    uoms = await recorder.call("GET", routes.UOMS)
    fees = await recorder.call("GET", routes.FEES)
    categories = await recorder.call("GET", routes.CATEGORIES)
    piece = next(item for item in uoms["items"] if item["name"] == "Piece")
    vat = next(fee_item for fee_item in fees["fee_items"] if fee_item.get("percentage") == 5)
    good = _good(categories["items"][0]["id"], piece["id"], vat["id"])
    created = await recorder.call("POST", routes.GOODS, body=good)
    await recorder.call("POST", routes.GOODS, body=good, title="409 existing_entity_conflict")
    wrong = good | {"name": "", "variations": [{"codes": [_ean("400")]}]}
    await recorder.call("POST", routes.GOODS, body=wrong, title="400 for a good")
    await recorder.call(
        "GET", routes.GOOD.format(good_id=created["id"]), title=f"GET {routes.GOOD}"
    )
    await recorder.call("GET", routes.GOODS)
    minimal = {name: good[name] for name in ("name", "uom_id", "vat")} | {"category_id": None}
    await recorder.call("POST", routes.GOODS, body=minimal | {"variations": [{}]}, title=NOT_LISTED)


def _good(category: str, piece: str, vat: str) -> Json:
    return {
        "name": "Flat white",
        "description": "With oat milk",
        "external_data": {"id": "till-4711", "colour": "brown"},
        "category_id": category,
        "uom_id": piece,
        "vat": {"fee_item_id": vat},
        "variations": [
            {
                "name": "Small",
                "description": "200 ml",
                "external_data": {"id": "till-4711-s"},
                "default_price": {"value": 1800, "currency_code": "AED"},
                "codes": [_ean("4006381333931"), *_codes()],
            },
            {"name": "Large", "status": "inactive"},
        ],
    }


def _ean(value: str) -> Json:
    return {"type": "ean_13", "value": value}


def _codes() -> list[Json]:
    codes = {
        "ean_8": "73513537",
        "itf_14": "15400141288763",
        "upc_a": "036000291452",
        "sku": "FW-S",
        "other": "4711",
    }
    return [{"type": kind, "value": value} for kind, value in codes.items()]


async def _record_sales(recorder: Recorder) -> None:
    query = f"?status=completed&sort=initiated_at_asc&initiated_at_from={SOLD_FROM}"
    listed = await recorder.call("GET", routes.SALES, query=query)
    sale = next(item for item in listed["items"] if item["positions"])
    await recorder.call("GET", routes.SALE.format(sale_id=sale["id"]), title=f"GET {routes.SALE}")
    await recorder.call("GET", routes.EMPLOYEES)
    await recorder.call("GET", routes.POINTS_OF_SALE)


async def _record_refusals(recorder: Recorder) -> None:
    missing = routes.GOOD.format(good_id=UNKNOWN_ID)
    cursor = "?status=completed&cursor=none"
    await recorder.call("GET", routes.SALES, title="400 for a parameter")
    await recorder.call("GET", routes.SALES, query=cursor, title="400 for a cursor")
    await recorder.call("POST", routes.GOODS, body=[], title="400 for a list as the body")
    await recorder.call("GET", routes.SALES, secret="no token", title="401 in the retail API")
    reader = await _record_tokens(
        recorder, new_key(recorder.service, can_write=False), title=NOT_LISTED
    )
    access_token = reader["access_token"]
    await recorder.call(
        "POST", routes.GOODS, body={}, secret=access_token, title="403 in the retail API"
    )
    await recorder.call("GET", missing, title="404 in the retail API")
    plain = "text/plain"
    await recorder.call(
        "POST", routes.GOODS, body={}, media_type=plain, title="415 in the retail API"
    )
    # Many calls are necessary, because the rate limit recovers between them. Each call replaces the
    # example of the previous call, so the example has the last reply.
    for _ in range(400):
        wrong = {"api_key": f"venue_test_{uuid.UUID(int=7).hex * 2}"}
        await recorder.call(
            "POST", routes.TOKENS, body=wrong, secret="", title="429 in the retail API"
        )
        if recorder.replies[-1].status_code == 429:
            return
    raise AssertionError("no call was refused with 429")


async def _record_every_page(recorder: Recorder, path: str, access_token: str) -> None:
    """Read every page of a listing.

    The examples do not contain every form of its rows, and a test compares the forms in all replies
    with the contract.
    """
    first = "?status=completed" if path == routes.SALES else "?"
    query = first
    for _ in range(100):
        page = await recorder.call("GET", path, query=query, secret=access_token, title=NOT_LISTED)
        if page["cursor"] is None:
            return
        query = f"{first}&cursor={page['cursor']}"
    raise AssertionError(f"{path} has more pages than expected")
