"""Every operation of the retail API, called by a till that maintains a catalog and reads sales."""

import uuid

from controlplane.retail import routes
from tests.contract.service.calls.recorder import NEVER, NOT_LISTED, OTHER, Json, Recorder
from tests.unit.controlplane.retail.retailer import new_key

SOLD_FROM = "2026-11-10T00:00:00Z"


async def record(kept: Recorder) -> None:
    tokens = await _tokens(kept, new_key(kept.service))
    again = {"refresh_token": tokens["refresh_token"]}
    kept.access = (await kept.call("POST", routes.REFRESH, sent=again, secret=""))["access_token"]
    other = await _tokens(kept, new_key(kept.service, organization=OTHER), of=NOT_LISTED)
    await _catalog(kept)
    await _sales(kept)
    await _refusals(kept)
    for access in (kept.access, other["access_token"]):
        for path in (routes.GOODS, routes.SALES):
            await _every_page(kept, path, access)


async def _tokens(kept: Recorder, api_key: str, of: str = "") -> Json:
    body = {"api_key": api_key}
    result: Json = await kept.call("POST", routes.TOKENS, sent=body, secret="", of=of)
    return result


async def _catalog(kept: Recorder) -> None:
    uoms = await kept.call("GET", routes.UOMS)
    fees = await kept.call("GET", routes.FEES)
    categories = await kept.call("GET", routes.CATEGORIES)
    piece = next(item for item in uoms["items"] if item["name"] == "Piece")
    vat = next(fee_item for fee_item in fees["fee_items"] if fee_item.get("percentage") == 5)
    good = _good(categories["items"][0]["id"], piece["id"], vat["id"])
    made = await kept.call("POST", routes.GOODS, sent=good)
    await kept.call("POST", routes.GOODS, sent=good, of="409 existing_entity_conflict")
    wrong = good | {"name": "", "variations": [{"codes": [_ean("400")]}]}
    await kept.call("POST", routes.GOODS, sent=wrong, of="400 of a good")
    await kept.call("GET", routes.GOOD.format(good_id=made["id"]), of=f"GET {routes.GOOD}")
    await kept.call("GET", routes.GOODS)
    plain = {name: good[name] for name in ("name", "uom_id", "vat")} | {"category_id": None}
    await kept.call("POST", routes.GOODS, sent=plain | {"variations": [{}]}, of=NOT_LISTED)


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
    known = {
        "ean_8": "73513537",
        "itf_14": "15400141288763",
        "upc_a": "036000291452",
        "sku": "FW-S",
        "other": "4711",
    }
    return [{"type": kind, "value": value} for kind, value in known.items()]


async def _sales(kept: Recorder) -> None:
    query = f"?status=completed&sort=initiated_at_asc&initiated_at_from={SOLD_FROM}"
    listed = await kept.call("GET", routes.SALES, query=query)
    sale = next(item for item in listed["items"] if item["positions"])
    await kept.call("GET", routes.SALE.format(sale_id=sale["id"]), of=f"GET {routes.SALE}")
    await kept.call("GET", routes.EMPLOYEES)
    await kept.call("GET", routes.POINTS_OF_SALE)


async def _refusals(kept: Recorder) -> None:
    missing = routes.GOOD.format(good_id=NEVER)
    cursor = "?status=completed&cursor=none"
    await kept.call("GET", routes.SALES, of="400 of a parameter")
    await kept.call("GET", routes.SALES, query=cursor, of="400 of a cursor")
    await kept.call("POST", routes.GOODS, sent=[], of="400 of no object")
    await kept.call("GET", routes.SALES, secret="no token", of="401 of retail")
    reader = await _tokens(kept, new_key(kept.service, can_write=False), of=NOT_LISTED)
    access = reader["access_token"]
    await kept.call("POST", routes.GOODS, sent={}, secret=access, of="403 of retail")
    await kept.call("GET", missing, of="404 of retail")
    plain = "text/plain"
    await kept.call("POST", routes.GOODS, sent={}, media_type=plain, of="415 of retail")
    for _ in range(400):  # many calls, because the rate limit recovers between them
        wrong = {"api_key": f"venue_test_{uuid.UUID(int=7).hex * 2}"}
        await kept.call("POST", routes.TOKENS, sent=wrong, secret="", of="429 of retail")
        if kept.replies[-1].status_code == 429:
            return


async def _every_page(kept: Recorder, path: str, access: str) -> None:
    """Read every page of a listing, because the examples do not contain every form of its rows."""
    first = "?status=completed" if path == routes.SALES else "?"
    query = first
    for _ in range(100):
        page = await kept.call("GET", path, query=query, secret=access, of=NOT_LISTED)
        if page["cursor"] is None:
            return
        query = f"{first}&cursor={page['cursor']}"
