"""Tests of writing sales and refunds, of changed time zones, and of rebuilt rollups."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from sqlalchemy import CursorResult, select, text
from sqlalchemy.orm import Session

from controlplane.figures.local_time import clock_of, hour_of
from controlplane.merchant.locations import set_zone
from controlplane.merchant.rebuild import rebuild
from controlplane.merchant.sales import (
    NewLine,
    NewPayment,
    NewRefund,
    NewRefundLine,
    NewSale,
    SaleError,
    SoldArticle,
    line_rows,
)
from controlplane.merchant.writing import add_refund, add_sale
from controlplane.sandbox.loading import load
from controlplane.sandbox.plan import Plan
from controlplane.storage.database import Database
from controlplane.storage.merchant.merchant_tables import Location
from controlplane.storage.merchant.sales_tables import Refund, Sale

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
PAYMENT = NewPayment(None, "other", 1000)


@pytest.fixture(scope="module")
def merchant_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A database with the sales of a generated merchant at two locations."""
    database = Database(str(tmp_path_factory.mktemp("merchant") / "service.db"))
    plan = Plan(locations=2, days=45, sales_per_day=8, goods=6, until=NOW.date(), is_awkward=True)
    database.write(lambda session: load(session, plan, NOW))
    yield database
    database.close()


@pytest.fixture
def session(merchant_database: Database) -> Iterator[Session]:
    """A session whose changes are undone after the test.

    The fixture uses a session that `Database.read` has closed, and begins a new transaction in it,
    because a transaction of `Database.read` cannot write.
    """
    with merchant_database.read(lambda session: session) as opened, opened.begin():
        yield opened
        opened.rollback()


def new_sale(**changes: Any) -> NewSale:
    values: dict[str, Any] = {
        "id": uuid.uuid4(), "organization_id": "org-0001", "location": 1, "point_of_sale": 1,
        "employee": None, "number": "1", "ticket_number": "1", "initiated_at": NOW,
        "currency": "AED", "lines": [NewLine(SoldArticle(1, "pcs", 0, 5_000), 1, 1000)],
        "payments": (PAYMENT,),
    }  # fmt: skip
    return NewSale(**values | changes)


def test_the_tax_of_a_line_is_calculated_after_the_discount_of_the_sale() -> None:
    lines = [NewLine(SoldArticle(1, "pcs", 0, 25_000), 1, price) for price in (1000, 3000)]
    rows = line_rows(new_sale(lines=lines, discount=400))
    assert [(row.total, row.share, row.tax) for row in rows] == [(1000, 100, 180), (3000, 300, 540)]


@pytest.mark.parametrize(
    "changes",
    [
        {"payments": ()},
        {"payments": (replace(PAYMENT, amount=999),)},
        {"tip": 5},
        {"discount": 1001},
        {"total": 999},
        {"lines": [NewLine(SoldArticle(1, "pcs", 0, 5_000), 1, 1000, discount=1001)]},
        {"lines": None},
    ],
)
def test_an_inconsistent_sale_is_refused(session: Session, changes: dict[str, Any]) -> None:
    with pytest.raises(SaleError):
        add_sale(session, new_sale(**changes), NOW)


def test_a_refund_above_the_paid_amount_or_different_from_its_lines_is_refused(
    session: Session,
) -> None:
    position = add_sale(session, new_sale(), NOW)
    refund = NewRefund(
        id=uuid.uuid4(), sale=position, refunded_at=NOW, goods=600, payment=PAYMENT,
        lines=(NewRefundLine(1, 1, 600),),
    )  # fmt: skip
    add_refund(session, refund, NOW)
    with pytest.raises(SaleError, match="the refunds are higher than the payments"):
        add_refund(session, replace(refund, id=uuid.uuid4()), NOW)
    with pytest.raises(SaleError, match="do not add up"):
        add_refund(session, replace(refund, goods=300), NOW)


def test_a_refund_of_an_unresolved_order_is_refused(session: Session) -> None:
    position = add_sale(session, new_sale(status="unknown", lines=None, total=500), NOW)
    refund = NewRefund(id=uuid.uuid4(), sale=position, refunded_at=NOW, goods=1, payment=PAYMENT)
    with pytest.raises(SaleError, match="only a completed sale"):
        add_refund(session, refund, NOW)


def test_a_refund_counts_as_a_change_of_its_sale(session: Session) -> None:
    later = NOW + timedelta(hours=1)
    position = add_sale(session, new_sale(), NOW)
    refund = NewRefund(id=uuid.uuid4(), sale=position, refunded_at=later, goods=1, payment=PAYMENT)
    add_refund(session, refund, later)
    result = session.scalars(select(Sale).where(Sale.position == position)).one()
    assert (result.created_at, result.updated_at) == (NOW, later)


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Asia/Kathmandu", "Europe/Berlin", None])
def test_a_changed_zone_changes_the_local_hour_of_every_row(
    session: Session, zone: str | None
) -> None:
    (location,) = session.scalars(select(Location.id).where(Location.position == 1))
    set_zone(session, ("org-0001", location), zone, NOW)
    assert session.scalars(select(Location).where(Location.position == 1)).one().zone == zone
    for table, timestamp in ((Sale, Sale.initiated_at), (Refund, Refund.refunded_at)):
        rows = session.execute(select(timestamp, table.local_hour).where(table.location == 1)).all()
        assert rows
        for at, hour in rows:
            assert hour == (None if at is None else hour_of(at, clock_of(zone).zone))
    assert set(rebuild(session).values()) == {0}


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE hour_rollups SET undone = undone + 1 WHERE location = 1",
        "DELETE FROM day_rollups WHERE location = 2",
        "UPDATE item_day_rollups SET refund = 1 WHERE snapshot = 2",
        "DELETE FROM unit_rollups",
        "INSERT INTO item_span_rollups VALUES (1, 1, 'AED', 1, 1, 1, 1, 1, 1, 1)",
    ],
)
def test_a_rebuild_counts_and_fixes_wrong_rows(session: Session, damage: str) -> None:
    count = cast("CursorResult[Any]", session.execute(text(damage))).rowcount
    assert count > 0
    assert sum(rebuild(session).values()) == count
    assert set(rebuild(session).values()) == {0}
    assert set(rebuild(session, 1).values()) == {0}
