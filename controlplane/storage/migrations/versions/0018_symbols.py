"""Adds ``counted_devices.symbols``: one character for each subject that counts the device.

A subject defines which devices are counted, for example those with a finding of one rule. This step
also adds an index of these texts, and the subject ``device``, which counts each device that is not
revoked. The index of printer problems gets the columns that the list of the worst printers reads.
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
COUNTED = sa.table(
    "counted_devices",
    *map(sa.column, ("device", "organization_id", "location_id", "platform", "version")),
    sa.column("subjects", sa.JSON()),
    sa.column("symbols"),
)
DEVICES = sa.table("devices", *map(sa.column, ("position", "revoked_at")))
SUBJECTS = sa.table("finding_subjects", sa.column("position"), sa.column("subject"))
INSERT_MISSING_DEVICES = """
    INSERT INTO counted_devices (device, organization_id, location_id, platform, version, subjects)
    SELECT position, organization_id, location_id, platform, coalesce(app_version, ''), '[]'
    FROM devices
    WHERE revoked_at IS NULL AND position NOT IN (SELECT device FROM counted_devices)
"""
INSERT_DEVICE_COUNTS = """
    INSERT INTO finding_counts (organization_id, location_id, subject, platform, version, devices)
    SELECT organization_id, {location}, 'device', platform, version, count(*)
    FROM counted_devices
    WHERE device IN (SELECT position FROM devices WHERE revoked_at IS NULL)
    GROUP BY 1, 2, 4, 5
"""


def upgrade() -> None:
    op.create_table(
        "finding_subjects",
        sa.Column("position", POSITION, primary_key=True, autoincrement=True),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.UniqueConstraint("subject"),
    )
    empty = sa.text("''")
    symbols = sa.Column("symbols", sa.Text(), server_default=empty, nullable=False)
    op.add_column("counted_devices", symbols)
    op.execute(INSERT_MISSING_DEVICES)
    for location in ("location_id", "''"):
        op.execute(INSERT_DEVICE_COUNTS.format(location=location))
    _fill_symbols()
    columns = ["organization_id", "location_id", "platform", "version", "device", "symbols"]
    op.create_index("counted_devices_by_location", "counted_devices", columns)
    op.drop_index("printer_problems_by_organization", "printer_problems")
    columns = [
        "organization_id", "until", "since", "device", "printer_id", "name", "location_id",
    ]  # fmt: skip
    op.create_index("printer_problems_by_organization", "printer_problems", columns)


def _fill_symbols() -> None:
    """Add the subject ``device`` to each device that is not revoked, and store the characters of
    all subjects.
    """
    connection = op.get_bind()
    query = sa.select(COUNTED.c.device, COUNTED.c.subjects, DEVICES.c.revoked_at.is_(None))
    query = query.join(DEVICES, DEVICES.c.position == COUNTED.c.device)
    rows = [
        (device, ["device", *subjects] if is_bound else subjects)
        for device, subjects, is_bound in connection.execute(query)
    ]
    used = sorted({subject for _, subjects in rows for subject in subjects})
    if not used:
        return
    connection.execute(sa.insert(SUBJECTS), [{"subject": each} for each in used])
    numbers = connection.execute(sa.select(SUBJECTS.c.subject, SUBJECTS.c.position))
    symbols = {subject: chr(ord(" ") + number) for subject, number in numbers}
    key = COUNTED.c.device == sa.bindparam("key")
    connection.execute(
        sa.update(COUNTED)
        .where(key)
        .values(subjects=sa.bindparam("new_subjects"), symbols=sa.bindparam("new_symbols")),
        [
            {
                "key": device,
                "new_subjects": subjects,
                "new_symbols": "".join(symbols[each] for each in subjects),
            }
            for device, subjects in rows
        ],
    )
