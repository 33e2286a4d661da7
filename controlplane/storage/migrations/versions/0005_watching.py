"""Places, silence, notices and wishes."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.types import TypeEngine

revision = "0005"
down_revision = "0004"

Position = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    _places()
    _silence()
    _notices()
    _wishes()
    # 5 stood before what is closed or worked on, which come between.
    op.execute(sa.text("UPDATE devices SET priority = 9 WHERE priority = 5"))


def _required(
    name: str, kind: TypeEngine[Any] | type[TypeEngine[Any]], *, unique: bool | None = None
) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, unique=unique)


def _key(name: str, kind: Any = sa.Text) -> sa.Column[Any]:
    return sa.Column(name, kind, primary_key=True)


def _position() -> sa.Column[Any]:
    return sa.Column("position", Position, primary_key=True, autoincrement=True)


def _partial(name: str, table: str, columns: list[str], where: str, *, unique: bool) -> None:
    op.create_index(
        name,
        table,
        columns,
        unique=unique,
        sqlite_where=sa.text(where),
        postgresql_where=sa.text(where),
    )


def _places() -> None:
    op.create_table(
        "location_hours",
        _key("organization_id"),
        _key("location_id"),
        _required("time_zone", sa.Text),
        sa.Column("opening_hours", sa.JSON),
    )
    op.create_table(
        "maintenance_windows",
        _position(),
        _required("organization_id", sa.Text),
        _required("location_id", sa.Text),
        sa.Column("instance_id", sa.Uuid),
        _required("since", Moment),
        _required("until", Moment),
        _required("reason", sa.Text),
    )
    op.create_index(
        "maintenance_by_place", "maintenance_windows", ["organization_id", "location_id", "until"]
    )


def _silence() -> None:
    op.create_table(
        "listened",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        _required("began_at", Moment),
        _required("judged_at", Moment),
        _required("resumed_at", Moment),
    )
    op.create_table(
        "gaps",
        _position(),
        sa.Column("device", sa.BigInteger),
        _required("since", Moment),
        sa.Column("until", Moment),
    )
    op.create_index("gaps_by_device", "gaps", ["device", "since"])
    _partial("gaps_open", "gaps", ["device"], "until IS NULL", unique=True)
    op.execute(
        sa.text(
            "INSERT INTO gaps (device, since)"
            " SELECT position, last_seen_at FROM devices WHERE priority IN (0, 1)"
        )
    )


def _notices() -> None:
    op.create_table(
        "watched_conditions",
        _key("organization_id"),
        _key("location_id"),
        _key("instance"),
        _key("condition"),
        _required("holds", sa.Boolean),
        sa.Column("began_at", Moment),
        sa.Column("gone_at", Moment),
        _required("is_told", sa.Boolean),
        _required("is_flapping", sa.Boolean),
        _required("changes", sa.JSON),
    )
    op.create_table(
        "notices",
        _position(),
        _required("id", sa.Uuid, unique=True),
        _required("organization_id", sa.Text),
        _required("location_id", sa.Text),
        _required("instance", sa.Text),
        _required("condition", sa.Text),
        _required("is_flapping", sa.Boolean),
        _required("opened_at", Moment),
        _required("told_at", Moment),
        sa.Column("ended_at", Moment),
        sa.Column("end_told_at", Moment),
        _required("detail", sa.Text),
    )
    op.create_index("notices_by_organization", "notices", ["organization_id", "position"])
    one_of_a_kind = ["organization_id", "location_id", "instance", "condition", "is_flapping"]
    _partial("notices_open", "notices", one_of_a_kind, "end_told_at IS NULL", unique=True)
    op.create_table(
        "notice_deliveries",
        _position(),
        _required("id", sa.Text, unique=True),
        _required("notice_id", sa.Uuid),
        _required("is_end", sa.Boolean),
        _required("body", sa.Text),
        _required("status", sa.Text),
        _required("attempts", sa.Integer),
        sa.Column("due_at", Moment),
        _required("created_at", Moment),
        _required("updated_at", Moment),
        sa.UniqueConstraint("notice_id", "is_end", name="notice_deliveries_once"),
    )
    where = "due_at IS NOT NULL"
    _partial("notice_deliveries_due", "notice_deliveries", ["due_at"], where, unique=False)


def _wishes() -> None:
    op.create_table(
        "wishes",
        _position(),
        _required("id", sa.Uuid, unique=True),
        _required("organization_id", sa.Text),
        _required("instance_id", sa.Uuid),
        _required("kind", sa.Text),
        _required("key_id", sa.Uuid),
        _required("state", sa.Text),
        sa.Column("request_id", sa.Uuid),
        _required("tries", sa.Integer),
        _required("until", Moment),
        _required("created_at", Moment),
        _required("updated_at", Moment),
    )
    where = "state IN ('waiting', 'asked')"
    one_of_a_kind = ["organization_id", "instance_id", "kind"]
    _partial("wishes_open", "wishes", one_of_a_kind, where, unique=True)
    op.create_index("wishes_by_instance", "wishes", ["instance_id", "position"])
