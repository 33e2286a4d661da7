"""What the service remembers of being heard: places, silence, notices, and wishes.

All times are UTC, ``position`` columns order listings, as in `controlplane.storage.tables`.
"""

from datetime import datetime
from uuid import UUID

from sqlalchemy import JSON, BigInteger, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from agent.wire.vocabulary import Kind
from controlplane.storage.tables import Base, Position


class LocationHours(Base):
    """When a place where devices are is open. ``opening_hours`` are the lines of
    `presence.opening_hours`, null for always open, and read on the clocks of ``time_zone``."""

    __tablename__ = "location_hours"
    organization_id: Mapped[str] = mapped_column(primary_key=True)
    location_id: Mapped[str] = mapped_column(primary_key=True)
    time_zone: Mapped[str]
    opening_hours: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))


class MaintenanceWindow(Base):
    """``instance_id`` null is the whole location."""

    __tablename__ = "maintenance_windows"
    __table_args__ = (Index("maintenance_by_place", "organization_id", "location_id", "until"),)
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    organization_id: Mapped[str]
    location_id: Mapped[str]
    instance_id: Mapped[UUID | None]
    since: Mapped[datetime]
    until: Mapped[datetime]
    reason: Mapped[str]


class Listened(Base):
    """One row: since when silence is noted at all, when somebody last looked who is heard, and
    since when without a break."""

    __tablename__ = "listened"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    began_at: Mapped[datetime]
    judged_at: Mapped[datetime]
    resumed_at: Mapped[datetime]


class Gap(Base):
    """A device was not heard; ``until`` null: it is not heard yet. Without a device, the service
    itself was down."""

    __tablename__ = "gaps"
    __table_args__ = (
        Index("gaps_by_device", "device", "since"),
        Index(
            "gaps_open",
            "device",
            unique=True,
            sqlite_where=text("until IS NULL"),
            postgresql_where=text("until IS NULL"),
        ),
    )
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    device: Mapped[int | None] = mapped_column(BigInteger)
    since: Mapped[datetime]
    until: Mapped[datetime | None]


class WatchedCondition(Base):
    """What is remembered of a condition between two looks (`notices.rules.Watch`).

    ``instance`` is the empty text for the location's own. A row goes when nothing is to be
    remembered.
    """

    __tablename__ = "watched_conditions"
    organization_id: Mapped[str] = mapped_column(primary_key=True)
    location_id: Mapped[str] = mapped_column(primary_key=True)
    instance: Mapped[str] = mapped_column(primary_key=True)
    condition: Mapped[str] = mapped_column(primary_key=True)
    holds: Mapped[bool]
    began_at: Mapped[datetime | None]
    gone_at: Mapped[datetime | None]
    is_told: Mapped[bool]
    is_flapping: Mapped[bool]
    changes: Mapped[list[str]]


class Notice(Base):
    """Something that was told. ``condition`` is offline, broken or dark; ``is_flapping`` that it
    comes and goes; ``instance`` is as in `WatchedCondition`. Of each kind one is open at most."""

    __tablename__ = "notices"
    __table_args__ = (
        Index(
            "notices_open",
            "organization_id",
            "location_id",
            "instance",
            "condition",
            "is_flapping",
            unique=True,
            sqlite_where=text("end_told_at IS NULL"),
            postgresql_where=text("end_told_at IS NULL"),
        ),
        Index("notices_by_organization", "organization_id", "position"),
    )
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    id: Mapped[UUID] = mapped_column(unique=True)
    organization_id: Mapped[str]
    location_id: Mapped[str]
    instance: Mapped[str]
    condition: Mapped[str]
    is_flapping: Mapped[bool]
    opened_at: Mapped[datetime]
    told_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    end_told_at: Mapped[datetime | None]
    detail: Mapped[str]


class NoticeDelivery(Base):
    """The outbox: what a webhook has to be sent, written with what it tells of. ``id`` is the same
    at each attempt."""

    __tablename__ = "notice_deliveries"
    __table_args__ = (
        UniqueConstraint("notice_id", "is_end", name="notice_deliveries_once"),
        Index(
            "notice_deliveries_due",
            "due_at",
            sqlite_where=text("due_at IS NOT NULL"),
            postgresql_where=text("due_at IS NOT NULL"),
        ),
    )
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(unique=True)
    notice_id: Mapped[UUID]
    is_end: Mapped[bool]
    body: Mapped[str]
    status: Mapped[str]
    attempts: Mapped[int]
    due_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class PendingRequest(Base):
    """A report that is asked of a device when it is heard (`remote_control.wishes`).

    ``key_id`` is who asked: an API key, or the user whose session it was. ``request_id`` is the
    request that was made of it; ``tries`` how many were. ``state`` is
    waiting, asked, done, cancelled, expired or revoked.
    """

    __tablename__ = "wishes"
    __table_args__ = (
        Index(
            "wishes_open",
            "organization_id",
            "instance_id",
            "kind",
            unique=True,
            sqlite_where=text("state IN ('waiting', 'asked')"),
            postgresql_where=text("state IN ('waiting', 'asked')"),
        ),
        Index("wishes_by_instance", "instance_id", "position"),
    )
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    id: Mapped[UUID] = mapped_column(unique=True)
    organization_id: Mapped[str]
    instance_id: Mapped[UUID]
    kind: Mapped[Kind]
    key_id: Mapped[UUID]
    state: Mapped[str]
    request_id: Mapped[UUID | None]
    tries: Mapped[int]
    until: Mapped[datetime]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
