"""Measures the first and the ten thousandth page of the retail API's sales: `make bench-retail`.

A real service on SQLite serves `SALES` sales of one company, with three lines each, over loopback.
Then 100 sales a second arrive while a client reads many pages of earlier sales in every order. Each
earlier sale must be listed exactly once. Goal: 95 of 100 pages take at most 25 ms, both at the
start of the list and far from it.
"""

import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, get_args
from uuid import UUID, uuid4

import httpx2
from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.clock import system_clock
from controlplane.operation.cursors import Cursors, SortKey
from controlplane.retail import routes
from controlplane.retail.credentials import clients, signing_keys
from controlplane.retail.limits import PAGE_SIZE
from controlplane.retail.models import SaleOrder
from controlplane.storage.database import Database
from controlplane.storage.merchant.catalog_tables import LineSnapshot
from controlplane.storage.merchant.columns import microseconds
from controlplane.storage.merchant.merchant_tables import Employee, PointOfSale
from controlplane.storage.merchant.sales_tables import Sale, SaleLine
from tests.bench.fleet.service import service

SALES: Final = 200_040
PAGES: Final = 10_000
CALLS: Final = 100
WALKED_PAGES: Final = 150
ARRIVALS_PER_S: Final = 100
GOAL_MS: Final = 25
BATCH: Final = 10_000
BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)
STEP: Final = timedelta(seconds=60)
"""Time between two existing sales."""
LINES: Final = 3


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "retail.db")
        database = Database(file)
        try:
            api_key = _fill(database)
            with service(file) as running:
                http = httpx2.Client(base_url=f"http://127.0.0.1:{running.port}", timeout=30)
                with http:
                    return _measure(database, http, api_key)
        finally:
            database.close()


def _measure(database: Database, http: httpx2.Client, api_key: str) -> int:
    reply = http.post(routes.TOKENS, json={"api_key": api_key})
    http.headers["authorization"] = f"Bearer {reply.json()['access_token']}"
    has_met_goals = True
    print(f"{SALES:,} sales, pages of {PAGE_SIZE}; ms, {CALLS} calls each")
    print(f"{'order':18} {'page 1':>8} {'p95':>6} {f'page {PAGES:,}':>12} {'p95':>6}")
    for sort in get_args(SaleOrder):
        cursor = _cursor_at(database, sort, PAGE_SIZE * (PAGES - 1))
        first, far = _times_ms(http, sort, None), _times_ms(http, sort, cursor)
        has_met_goals &= max(first[1], far[1]) <= GOAL_MS
        print(f"{sort:18} {first[0]:8.1f} {first[1]:6.1f} {far[0]:12.1f} {far[1]:6.1f}")
    print(f"while {ARRIVALS_PER_S} sales a second arrive, {WALKED_PAGES} pages of each order:")
    with _arriving(database):
        for sort in get_args(SaleOrder):
            repeated, missing = _walk(database, http, sort)
            has_met_goals &= not repeated and not missing
            print(f"{sort:18} {repeated} repeated, {missing} missing")
    return 0 if has_met_goals else 1


# ---------------------------------------------------------------------------- measuring


def _page(http: httpx2.Client, sort: str, cursor: str | None) -> dict[str, Any]:
    parameters = {"status": "completed", "sort": sort} | ({"cursor": cursor} if cursor else {})
    reply = http.get(routes.SALES, params=parameters)
    while reply.status_code == 429:
        time.sleep(float(reply.headers["retry-after"]))
        reply = http.get(routes.SALES, params=parameters)
    reply.raise_for_status()
    page: dict[str, Any] = reply.json()
    return page


def _times_ms(http: httpx2.Client, sort: str, cursor: str | None) -> tuple[float, float]:
    """Return the median and the 95th percentile of the duration of a page, in milliseconds."""
    took: list[float] = []
    for _ in range(CALLS):
        began_s = time.perf_counter()
        page = _page(http, sort, cursor)
        took.append((time.perf_counter() - began_s) * 1000)
        assert len(page["items"]) == PAGE_SIZE
        assert all(len(sale["positions"]) == LINES for sale in page["items"])
    return statistics.median(took), statistics.quantiles(took, n=20)[-1]


def _walk(database: Database, http: httpx2.Client, sort: str) -> tuple[int, int]:
    """Page through the sales while new sales arrive. Return how many sales were listed more than
    once, and how many earlier sales were not listed.
    """
    name, _, direction = sort.rpartition("_")
    column = getattr(Sale, name)
    order = (column, Sale.position)
    query = select(Sale.id).where(Sale.organization_id == DEFAULT_ORGANIZATION)
    query = query.order_by(*(each.desc() if direction == "desc" else each for each in order))
    count = WALKED_PAGES * PAGE_SIZE
    expected = {str(each) for each in database.read(lambda s: s.scalars(query.limit(count)).all())}
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(WALKED_PAGES):
        page = _page(http, sort, cursor)
        seen += [sale["id"] for sale in page["items"]]
        cursor = page["cursor"]
    # New sales can be listed between the earlier sales, so permit twice as many pages.
    for _ in range(WALKED_PAGES):
        if expected <= set(seen) or cursor is None:
            break
        page = _page(http, sort, cursor)
        seen += [sale["id"] for sale in page["items"]]
        cursor = page["cursor"]
    return len(seen) - len(set(seen)), len(expected - set(seen))


class _arriving:  # noqa: N801 - used like a function
    """Write new sales while the block runs. Their dates are before, between and after the dates of
    the existing sales.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        rng, number = random.Random(7), 0
        while not self._stop.wait(1 / ARRIVALS_PER_S):
            number += 1
            at = BEGAN + STEP * rng.randrange(-1000, SALES + 1000)
            row = _sale(at, system_clock(), f"{rng.randrange(10**6):06}-{number}")
            self._database.write(lambda session, row=row: session.execute(insert(Sale), [row]))


def _cursor_at(database: Database, sort: str, offset: int) -> str:
    """Return the cursor of the page that begins after ``offset`` sales."""
    name, _, direction = sort.rpartition("_")
    column = getattr(Sale, name)
    order = (column, Sale.position)
    query = select(column, Sale.position).where(Sale.organization_id == DEFAULT_ORGANIZATION)
    query = query.order_by(*(each.desc() if direction == "desc" else each for each in order))

    def work(session: Session) -> str:
        value, position = session.execute(query.offset(offset - 1).limit(1)).one()
        keys = signing_keys.load(session)
        assert keys is not None
        sort_key = SortKey(microseconds(value) if isinstance(value, datetime) else 0, position)
        listing = (DEFAULT_ORGANIZATION, "sales", sort, "", "")
        return Cursors(keys.cursor_key, system_clock()).write(listing, sort_key)

    return database.read(work)


# ---------------------------------------------------------------------------- filling


def _fill(database: Database) -> str:
    now = system_clock()

    def work(session: Session) -> str:
        session.add_all(_referenced_rows(now))
        for batch in _batches():
            session.execute(insert(Sale), [sale for sale, _ in batch])
            session.execute(insert(SaleLine), [line for _, lines in batch for line in lines])
        signing_keys.create(session, now)
        return clients.create_key(
            session,
            name="bench",
            organization_id=DEFAULT_ORGANIZATION,
            environment="test",
            can_write=False,
            now=now,
        )[1]

    return database.write(work)


def _referenced_rows(now: datetime) -> list[Any]:
    common = {"position": 1, "organization_id": DEFAULT_ORGANIZATION}
    state = {"created_at": now, "updated_at": now, "status": "active"}
    return [
        PointOfSale(id="till-1", location=1, name="Till 1", **common, **state),
        Employee(id="emp-1", location=1, name="Ana", role="cashier", **common, **state),
        LineSnapshot(
            content_hash="1",
            name="Flat white",
            source="manual_input",
            good_id=None,
            variation_id=None,
            category_id=None,
            codes=[["sku", "FW-01"]],
            uom_id=UUID(int=1),
            uom_name="Piece",
            uom_symbol="pc",
            exponent=0,
            unit_milli=1000,
            fee_item_id=UUID(int=2),
            fee_name="VAT 5%",
            percentage_milli=5000,
            **common,
        ),
    ]


def _batches() -> Iterator[list[tuple[dict[str, Any], list[dict[str, Any]]]]]:
    rng = random.Random(11)
    batch: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    for number in range(1, SALES + 1):
        at = BEGAN + STEP * number
        sale = _sale(at, at, f"{rng.randrange(10**6):06}-{number}") | {"position": number}
        batch.append((sale, [_line(number, each) for each in range(1, LINES + 1)]))
        if len(batch) == BATCH or number == SALES:
            yield batch
            batch = []


def _sale(at: datetime, now: datetime, number: str) -> dict[str, Any]:
    return {
        "id": uuid4(),
        "organization_id": DEFAULT_ORGANIZATION,
        "location": 1,
        "point_of_sale": 1,
        "employee": 1,
        "number": number,
        "ticket_number": "7",
        "status": "completed",
        "initiated_at": at,
        "created_at": now,
        "updated_at": now,
        "local_hour": 0,
        "comment": None,
        "external_data": None,
        "currency": "AED",
        "gross": 6300,
        "discount": 0,
        "total": 6300,
        "taxable_amount": 6000,
        "tax": 300,
        "municipality_fee": 0,
        "tip": 0,
        "has_lines": True,
        "pieces": 6,
        "unknown_tax_lines": 0,
        "payment_type": "cash",
        "payment_method": None,
    }


def _line(sale: int, number: int) -> dict[str, Any]:
    return {
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


if __name__ == "__main__":
    sys.exit(main())
