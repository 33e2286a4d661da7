"""`locations.zone` becomes the only time zone of a location; `location_hours` loses its own.

A location without sales gets the zone of its opening hours. A location with sales keeps its zone,
because the rollups contain its local hours. If the two zones differ, a warning names the location:
its opening hours are now read in the zone of its sales.
"""

import logging
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

log = logging.getLogger("controlplane.storage.migrations")
LOCATION = "organization_id = :organization AND id = :location"


def upgrade() -> None:
    with op.batch_alter_table("locations") as batch:
        batch.alter_column("name", existing_type=sa.Text, nullable=True)
    connection = op.get_bind()
    rows = connection.execute(
        sa.text("SELECT organization_id, location_id, time_zone FROM location_hours")
    ).all()
    for organization, location, zone in rows:
        values = {"organization": organization, "location": location, "zone": zone}
        _set_zone(connection, values)
    with op.batch_alter_table("location_hours") as batch:
        batch.drop_column("time_zone")


def _set_zone(connection: sa.Connection, values: dict[str, str]) -> None:
    row = connection.execute(
        sa.text(f"SELECT position, zone FROM locations WHERE {LOCATION}"), values
    ).first()
    if row is None:
        insert = sa.text(
            "INSERT INTO locations (organization_id, id, zone, currency, created_at)"
            " VALUES (:organization, :location, :zone, 'XXX', :now)"
        ).bindparams(sa.bindparam("now", type_=sa.DateTime(timezone=True)))
        connection.execute(insert, {**values, "now": datetime.now(UTC)})
        return
    sales = sa.text("SELECT 1 FROM sales WHERE location = :position LIMIT 1")
    if connection.execute(sales, {"position": row.position}).first() is None:
        connection.execute(sa.text(f"UPDATE locations SET zone = :zone WHERE {LOCATION}"), values)
    elif row.zone != values["zone"]:
        log.warning(
            "location %s has opening hours in %s and sales in %s. Its opening hours are now in the"
            " time zone of its sales. To change it, use: venue-control locations set",
            values["location"],
            values["zone"],
            row.zone or "UTC",
        )
