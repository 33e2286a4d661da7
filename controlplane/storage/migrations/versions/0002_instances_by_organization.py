"""An instance id is an organization's own: another one's can neither be seen nor be taken."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

NAMES = {"uq": "%(table_name)s_%(column_0_name)s_key"}
"""What PostgreSQL calls a constraint that was given no name; SQLite gives none."""


def upgrade() -> None:
    with op.batch_alter_table("devices", naming_convention=NAMES) as devices:
        devices.drop_constraint("devices_instance_id_key", type_="unique")
        devices.create_unique_constraint("devices_by_instance", ["organization_id", "instance_id"])
    # A program that knows the first layout only refuses what it finds here.
    op.execute(sa.text("UPDATE schema_version SET version = 2"))
