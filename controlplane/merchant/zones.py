"""Changes a location's time zone: its sales and refunds get other local hours, and its rollups with
them."""

from datetime import timedelta
from typing import Final

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from controlplane.figures.local_time import clock_of, offsets
from controlplane.merchant.rebuild import rebuild
from controlplane.storage.merchant.columns import MICROSECOND, microseconds
from controlplane.storage.merchant.merchant_tables import Location
from controlplane.storage.merchant.sales_tables import Refund, Sale

HOUR_US: Final = timedelta(hours=1) // MICROSECOND


def set_zone(session: Session, location: int, zone: str | None) -> None:
    """``location`` is a position; ``zone`` an IANA name, or None."""
    row = session.scalars(
        select(Location).where(Location.position == location).with_for_update()
    ).one()
    row.zone = zone
    session.flush()
    for column in (Sale.initiated_at, Refund.refunded_at):
        table = column.class_
        first, last = session.execute(
            select(func.min(column), func.max(column)).where(table.location == location)
        ).one()
        if first is None or last is None:
            continue
        change = text(
            f"UPDATE {table.__tablename__} SET local_hour = ({column.key} + :shift) / {HOUR_US}"
            f" WHERE location = :location AND {column.key} >= :start AND {column.key} < :end"
        )
        for start, end, offset in offsets(clock_of(zone).zone, first, last + MICROSECOND):
            session.execute(
                change,
                {
                    "shift": offset // MICROSECOND,
                    "location": location,
                    "start": microseconds(start),
                    "end": microseconds(end),
                },
            )
    rebuild(session, location)
