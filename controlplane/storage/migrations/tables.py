"""Creates the newest tables from the models, and converts the tables of release 0.1.0."""

from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import (
    JSON,
    Connection,
    Insert,
    ScalarSelect,
    Table,
    false,
    func,
    insert,
    inspect,
    literal,
    select,
    update,
)

from agent.wire.vocabulary import Kind
from controlplane.storage.layout import Base
from controlplane.storage.report_tables import (
    CountedDevice,
    FindingCount,
    FindingSubject,
    JudgedReport,
    ReportText,
)
from controlplane.storage.statements import advance_position
from controlplane.storage.tables import Device, Report, Schema

SCHEMA_VERSION = 2
"""The version in `Schema`. Programs of release 0.1.0 refuse a database with this version."""
FIRST_TABLES = frozenset(
    {"api_keys", "bindings", "challenges", "devices", "reports", "requests", "schema_version"}
)
"""The tables of release 0.1.0."""
CONSTRAINT_NAMES = {"uq": "%(table_name)s_%(column_0_name)s_key"}
"""How PostgreSQL names a constraint that is created without a name. In SQLite, such a constraint
has no name, so Alembic finds it by this convention.
"""


def create_tables(connection: Connection) -> None:
    """Create the newest tables in an empty database."""
    Base.metadata.create_all(connection, checkfirst=False)
    connection.execute(insert(Schema).values(version=SCHEMA_VERSION))


def convert_first_release(connection: Connection) -> None:
    """Change the tables of release 0.1.0 to the newest layout, and create the new tables.

    Raises an error if a new table exists already, because it must belong to another program.
    """
    operations = Operations(MigrationContext.configure(connection))
    operations.drop_index("devices_by_place", "devices")
    with operations.batch_alter_table("devices", naming_convention=CONSTRAINT_NAMES) as devices:
        devices.drop_constraint("devices_instance_id_key", type_="unique")
        devices.create_unique_constraint("devices_by_instance", ["organization_id", "instance_id"])
    tables = Base.metadata.sorted_tables
    for table in tables:
        if table.name in FIRST_TABLES:
            _add_columns(operations, table)
    new_tables = [table for table in tables if table.name not in FIRST_TABLES]
    Base.metadata.create_all(connection, new_tables, checkfirst=False)
    _fill_columns(connection)


def _fill_columns(connection: Connection) -> None:
    """Fill the new columns of old rows, and add rows about old devices and reports to new tables.

    The running service adds ``headline`` and ``severity`` to the reports.
    """
    # 9 is `controlplane.devices.priority.Priority.REVOKED`.
    revoked = update(Device).where(Device.revoked_at.is_not(None)).values(priority=9)
    newest = update(Device).values(
        network_report=_newest_report("network"), application_report=_newest_report("application")
    )
    version = update(Schema).values(version=SCHEMA_VERSION)
    for statement in (revoked, newest, version):
        connection.execute(statement)
    for kind, report in (
        ("network", Device.network_report),
        ("application", Device.application_report),
    ):
        devices = select(Device.position, literal(kind), Device.organization_id)
        texts = insert(ReportText).from_select(
            ["device", "kind", "organization_id"], devices.where(report.is_not(None))
        )
        connection.execute(texts)
        connection.execute(_reports_to_judge(kind))
    _count_devices(connection)


def _count_devices(connection: Connection) -> None:
    """Count each device that is not revoked, as migration 0018 does.

    A subject defines which devices are counted. Here, devices are counted only for the subject
    ``device``, which stands for all of them. The running service counts devices for the other
    subjects, such as the rules of findings. The symbol of the subject with number 1 is "!"
    (`controlplane.devices.findings.counting`).
    """
    subject = "device"
    connection.execute(insert(FindingSubject).values(position=1, subject=subject))
    advance_position(connection, FindingSubject.__table__)
    columns = (Device.position, Device.organization_id, Device.location_id, Device.platform)
    values = (func.coalesce(Device.app_version, ""), literal([subject], JSON()))
    names = ["device", "organization_id", "location_id", "platform", "version"]
    rows = select(*columns, *values).where(Device.revoked_at.is_(None))
    connection.execute(insert(CountedDevice).from_select([*names, "subjects"], rows))
    is_bound = Device.revoked_at.is_(None)
    connection.execute(update(Device).where(is_bound).values(symbols="!"))
    for location in (CountedDevice.location_id, literal("")):
        key = (CountedDevice.organization_id, location, CountedDevice.platform)
        numbers = select(*key, CountedDevice.version, literal(subject), func.count())
        numbers = numbers.group_by(*key, CountedDevice.version)
        names = ["organization_id", "location_id", "platform", "version", "subject", "devices"]
        connection.execute(insert(FindingCount).from_select(names, numbers))


def _reports_to_judge(kind: str) -> Insert:
    """Return the statement that inserts, for each current binding, its newest report with content.

    Migration 0015 inserts the same rows.
    """
    newest = select(func.max(Report.position)).where(
        Report.instance_id == Device.instance_id,
        Report.binding_id == Device.binding_id,
        Report.kind == kind,
        Report.payload.like("{%"),
    )
    columns = (Device.position, literal(kind), Report.position, Report.created_at)
    rows = select(*columns, literal(0), false()).join(
        Report, Report.position == newest.correlate(Device).scalar_subquery()
    )
    names = ["device", "kind", "report", "arrived_at", "rules_version", "is_recent"]
    return insert(JudgedReport).from_select(names, rows.where(Device.revoked_at.is_(None)))


def _newest_report(kind: Kind) -> ScalarSelect[int | None]:
    """Return a subquery for an UPDATE of `Device`: the position of the device's newest report."""
    return (
        select(func.max(Report.position))
        .where(
            Report.instance_id == Device.instance_id,
            Report.organization_id == Device.organization_id,
            Report.kind == kind,
        )
        .scalar_subquery()
    )


def _add_columns(operations: Operations, table: Table) -> None:
    """Add the columns and indexes that an old table lacks."""
    connection = operations.get_bind()
    old_columns = {column["name"] for column in inspect(connection).get_columns(table.name)}
    for column in table.columns:
        if column.name not in old_columns:
            operations.add_column(table.name, column)
    for index in table.indexes:
        index.create(connection, checkfirst=True)
