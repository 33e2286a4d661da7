"""Moves ``symbols`` to the table ``devices``.

``symbols`` has one character for each subject of a device (see 0018_symbols.py). To count findings,
devices are filtered by these characters, and also by state and search text. ``devices`` has the
columns for state and search text, so after the move these queries need no join. The new index
``devices_by_group`` has all columns by which devices are grouped, filtered and searched. It
replaces ``counted_devices_by_location``.
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"

COPY_SYMBOLS = """
    UPDATE devices SET symbols = (
        SELECT counted_devices.symbols FROM counted_devices
        WHERE counted_devices.device = devices.position
    )
    WHERE position IN (SELECT device FROM counted_devices)
"""


def upgrade() -> None:
    symbols = sa.Column("symbols", sa.Text(), server_default=sa.text("''"), nullable=False)
    op.add_column("devices", symbols)
    op.execute(COPY_SYMBOLS)
    op.drop_index("counted_devices_by_location", "counted_devices")
    op.drop_column("counted_devices", "symbols")
    columns = [
        "organization_id", "location_id", "platform", "app_version", "position", "symbols",
        "priority", "severity", "legacy_install_id", "instance_id", "binding_id",
    ]  # fmt: skip
    op.create_index("devices_by_group", "devices", columns)
