"""Writes the rollups of a large merchant directly into the database. A dashboard reads only the
rollups, so no sales are needed.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy.orm import Session

from controlplane.accounts.keys.key_store import create_key
from controlplane.analytics import routes
from controlplane.figures.local_time import EPOCH_ORDINAL
from controlplane.merchant.contributions import SPAN_DAYS
from controlplane.storage.database import Database
from controlplane.storage.merchant import rollup_tables
from controlplane.storage.merchant.catalog_tables import LineSnapshot
from controlplane.storage.merchant.merchant_tables import Location, Organization
from controlplane.storage.statements import Row, insert_rows

LOCATIONS: Final = 60
DAYS: Final = 92
"""Number of days of the dashboard. The service always permits a period of this length. It permits a
longer period only for a limited number of locations (docs/figures.md). The reply also has the
figures of the previous period.
"""
HOURS: Final = range(10, 18)
ITEMS: Final = 60
CURRENCY: Final = "AED"
PAYMENT_TYPES: Final = ("card", "cash")


def populate_merchant(database: Database, organization_id: str, keys: int) -> list[str]:
    """Write the merchant, and return ``keys`` read-only API keys for all of its locations."""
    now = datetime.now(UTC)
    last_day = now.date().toordinal() - EPOCH_ORDINAL

    def work(session: Session) -> list[str]:
        session.add(Organization(id=organization_id, name="Large", sandbox=None, created_at=now))
        rows = [
            Location(
                id=f"venue-{number:03}",
                organization_id=organization_id,
                name=f"Venue {number}",
                zone="Asia/Dubai",
                currency=CURRENCY,
                created_at=now,
            )
            for number in range(LOCATIONS)
        ]
        snapshots = [_snapshot(organization_id, number) for number in range(ITEMS)]
        session.add_all([*rows, *snapshots])
        session.flush()
        days = range(last_day - 2 * DAYS, last_day + 1)
        for row in rows:
            _add_rollups(session, row.position, days, [each.position for each in snapshots])
        return [_read_only_key(session, organization_id, now) for _ in range(keys)]

    return database.write(work)


def dashboard_request() -> tuple[str, dict[str, str]]:
    """Return path and body of the request for a dashboard of all locations over `DAYS` days."""
    today = datetime.now(UTC).date()
    return routes.DASHBOARD, {
        "locationId": "venue-000",
        "locationMode": "all",
        "period": "custom",
        "from": (today - timedelta(days=DAYS - 1)).isoformat(),
        "to": today.isoformat(),
    }


def _read_only_key(session: Session, organization_id: str, now: datetime) -> str:
    return create_key(
        session,
        name="viewer",
        can_write=False,
        locations=(),
        organization_id=organization_id,
        now=now,
    )[1]


def _snapshot(organization_id: str, number: int) -> LineSnapshot:
    return LineSnapshot(
        organization_id=organization_id,
        content_hash=f"{organization_id} {number}",
        name=f"Item {number}",
        source="catalog",
        codes=[],
        uom_name="piece",
        uom_symbol="pc",
        exponent=0,
        unit_milli=1000,
    )


def _add_rollups(session: Session, location: int, days: range, snapshots: list[int]) -> None:
    for rollup, rows in (
        (rollup_tables.HourRollup, _hours(location, days)),
        (rollup_tables.DayRollup, _days(rollup_tables.DayRollup, location, days)),
        (rollup_tables.UnitRollup, _units(location, days)),
        (rollup_tables.ItemDayRollup, _item_days(location, days, snapshots)),
        (rollup_tables.ItemSpanRollup, _item_spans(location, days, snapshots)),
    ):
        insert_rows(session, rollup, rows)


def _hours(location: int, days: range) -> Iterator[Row]:
    for day in days:
        for hour in HOURS:
            yield (location, day * 24 + hour, CURRENCY, 1000 * hour, 0, hour, 0, 0, 0)


def _days(rollup: type, location: int, days: range) -> Iterator[Row]:
    table = rollup.__table__  # type: ignore[attr-defined]
    sums = [column.name for column in table.columns if not column.primary_key]
    values = tuple(10_000 if name in {"gross", "sale_count"} else 0 for name in sums)
    for day in days:
        for payment_type in PAYMENT_TYPES:
            yield (location, day, CURRENCY, payment_type, 0, *values)


def _units(location: int, days: range) -> Iterator[Row]:
    for day in days:
        for payment_type in PAYMENT_TYPES:
            yield (location, day, CURRENCY, payment_type, "piece", 50_000, 50)


def _item_days(location: int, days: range, snapshots: list[int]) -> Iterator[Row]:
    # Only the first and the last days of a period are read from this rollup. The days between them
    # are read from `ItemSpanRollup`.
    for day in (*days[:SPAN_DAYS], *days[-SPAN_DAYS:]):
        for snapshot in snapshots:
            yield (location, day, CURRENCY, snapshot, "card", 1000, 1, 1000, 0, 0, 0)


def _item_spans(location: int, days: range, snapshots: list[int]) -> Iterator[Row]:
    for span in range(days[0] // SPAN_DAYS, days[-1] // SPAN_DAYS + 1):
        for snapshot in snapshots:
            yield (location, span, CURRENCY, snapshot, 8000, 8, 8000, 0, 0, 0)
