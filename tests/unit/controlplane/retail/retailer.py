"""A company with a small catalog, and a client of its retail API. Tests add the sales."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx2
from sqlalchemy.orm import Session

from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.retail import routes
from controlplane.retail.credentials import clients
from controlplane.storage.merchant.catalog_tables import CatalogExternalId, Category, LineSnapshot
from controlplane.storage.merchant.merchant_tables import (
    Employee,
    FeeItem,
    Location,
    PointOfSale,
    UnitOfMeasure,
)
from controlplane.storage.merchant.sales_tables import Sale, SaleLine
from tests.fakes.schemas.retail import require_fitting
from tests.unit.controlplane.running_service import RunningService

PIECE, VAT, EXEMPT, FOOD, MUNICIPALITY = (UUID(int=number) for number in range(1, 6))
UNKNOWN_ID = UUID(int=99)


@dataclass(frozen=True, slots=True)
class Retailer:
    """A client of a company's retail API.

    ``access`` is an access token that permits writing. ``location`` is the row key
    (``Location.position``) of the company's location.
    """

    service: RunningService
    access: str
    location: int = 0

    async def get(self, path: str, access: str | None = None, **parameters: str) -> httpx2.Response:
        headers = {"authorization": f"Bearer {access or self.access}"}
        return validated_reply(
            await self.service.http.get(path, params=parameters, headers=headers)
        )

    async def create_good(
        self, body: Any, access: str | None = None, **headers: str
    ) -> httpx2.Response:
        base_headers = {
            "authorization": f"Bearer {access or self.access}",
            "content-type": "application/json",
        }
        return validated_reply(
            await self.service.http.post(
                routes.GOODS, content=json.dumps(body), headers=base_headers | headers
            )
        )

    def add_sales(self, count: int, first_at: datetime, step: timedelta, **changes: Any) -> None:
        """Add completed sales, with the time ``step`` between them."""

        def work(session: Session) -> None:
            for number in range(count):
                session.add(sale_row(self.location, first_at + step * number, **changes))

        self.service.database.write(work)


def new_key(service: RunningService, *, can_write: bool = True, organization: str = "") -> str:
    """Create a retail API key. Return the key."""
    return service.database.write(
        lambda session: clients.create_key(
            session,
            name="test",
            organization_id=organization or DEFAULT_ORGANIZATION,
            environment="test",
            can_write=can_write,
            now=service.clock(),
        )
    )[1]


async def exchange(service: RunningService, api_key: str, **headers: str) -> httpx2.Response:
    return await post(service, routes.TOKENS, {"api_key": api_key}, **headers)


async def post(service: RunningService, path: str, body: Any, **options: str) -> httpx2.Response:
    headers = {"content-type": "application/json"}
    headers |= {name.replace("_", "-"): value for name, value in options.items()}
    return validated_reply(await service.http.post(path, content=json.dumps(body), headers=headers))


def validated_reply(reply: httpx2.Response) -> httpx2.Response:
    """Return a reply after validation against the schemas of the contract."""
    require_fitting(reply)
    return reply


async def access_of(service: RunningService, api_key: str) -> str:
    """Return an access token of the API key."""
    token: str = (await exchange(service, api_key)).json()["access_token"]
    return token


async def create_retailer(service: RunningService) -> Retailer:
    location = service.database.write(lambda session: add_company(session, service.clock()))
    return Retailer(service, await access_of(service, new_key(service)), location)


def add_company(session: Session, now: datetime, organization: str = DEFAULT_ORGANIZATION) -> int:
    """Write a company with a small catalog. Return the row key of its location."""
    common = {"organization_id": organization}
    timestamps = {"created_at": now, "updated_at": now}
    venue = Location(
        id="venue-1", name="Harbour", zone="Asia/Dubai", currency="AED", created_at=now, **common
    )
    session.add(venue)
    session.flush()
    session.add_all(
        [
            UnitOfMeasure(id=PIECE, name="Piece", symbol="pc", exponent=0, **common),
            FeeItem(id=VAT, name="VAT 5%", kind="vat", percentage_milli=5000, **common),
            FeeItem(id=EXEMPT, name="Exempt", kind="vat", percentage_milli=None, **common),
            FeeItem(
                id=MUNICIPALITY, name="Fee 7%", kind="municipality", percentage_milli=7000, **common
            ),
            Category(
                id=FOOD,
                name="Food",
                parent_id=None,
                status="active",
                external_data={"id": "cat-food", "colour": "red"},
                **common,
                **timestamps,
            ),
            CatalogExternalId(
                external_id="cat-food", kind="category", entity_id=FOOD, **common
            ),
            PointOfSale(
                position=1, id="till-1", location=venue.position, name="Till 1", status="active",
                **common, **timestamps,
            ),
            Employee(
                position=1, id="emp-1", location=venue.position, name="Ana", role="cashier",
                status="active", **common, **timestamps,
            ),
            LineSnapshot(position=1, content_hash="1", **snapshot(), **common),
            LineSnapshot(  # with an unknown tax
                position=2, content_hash="2", **snapshot(fee_item_id=None, fee_name=None), **common
            ),
        ]
    )  # fmt: skip
    return venue.position


def snapshot(**changes: Any) -> dict[str, Any]:
    return {
        "name": "Flat white",
        "source": "manual_input",
        "good_id": None,
        "variation_id": None,
        "category_id": FOOD,
        "codes": [["sku", "FW-01"]],
        "uom_id": PIECE,
        "uom_name": "Piece",
        "uom_symbol": "pc",
        "exponent": 0,
        "unit_milli": 1000,
        "fee_item_id": VAT,
        "fee_name": "VAT 5%",
        "percentage_milli": 5000,
    } | changes


def sale_row(location: int, at: datetime, **changes: Any) -> Sale:
    return Sale(
        **{
            "id": uuid4(),
            "organization_id": DEFAULT_ORGANIZATION,
            "location": location,
            "point_of_sale": 1,
            "employee": 1,
            "number": f"S-{uuid4().hex[:8]}",
            "ticket_number": "7",
            "status": "completed",
            "initiated_at": at,
            "created_at": at,
            "updated_at": at,
            "local_hour": 0,
            "comment": None,
            "external_data": None,
            "currency": "AED",
            "gross": 2100,
            "discount": 0,
            "total": 2100,
            "taxable_amount": 2000,
            "tax": 100,
            "municipality_fee": 0,
            "tip": 0,
            "has_lines": False,
            "pieces": 0,
            "unknown_tax_lines": 0,
            "payment_type": "cash",
            "payment_method": None,
        }
        | changes
    )


def line_row(sale: int, number: int = 1, **changes: Any) -> SaleLine:
    return SaleLine(
        **{
            "sale": sale,
            "number": number,
            "snapshot": 1,
            "quantity": 2,
            "unit_price": 1050,
            "gross": 2100,
            "discount": 0,
            "share": 0,
            "total": 2100,
            "tax": 100,
        }
        | changes
    )
