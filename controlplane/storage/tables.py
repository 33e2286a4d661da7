"""The tables for devices, requests, reports and API keys, on SQLite or PostgreSQL.

``position`` is a generated primary key, by which most lists are ordered. ``id`` is the id in the
API. All times are UTC.
"""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    Index,
    Integer,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from agent.wire.payloads.history import Cause
from agent.wire.vocabulary import (
    FailureReason,
    Kind,
    Outcome,
    Platform,
    RequestStatus,
    TrackerStatus,
)


class UtcDateTime(TypeDecorator[datetime]):
    """A timestamp in UTC. SQLite stores no offset, so UTC is added when a timestamp is read."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if not isinstance(value, datetime):
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Position = BigInteger().with_variant(Integer, "sqlite")
"""The type of a generated primary key. SQLite generates keys only for INTEGER PRIMARY KEY."""


class Base(DeclarativeBase):
    type_annotation_map = {  # noqa: RUF012 - read by SQLAlchemy
        datetime: UtcDateTime,
        str: Text,
        list[str]: JSON,
        Cause: Text,
        Kind: Text,
        Outcome: Text,
        Platform: Text,
        RequestStatus: Text,
        TrackerStatus: Text,
        FailureReason: Text,
    }


def partial_index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """Return an index of the rows that match a condition."""
    condition = text(where)
    return Index(name, *columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


class Schema(Base):
    """One row with the number of a layout, so that release 0.1.0 refuses a later layout.

    Later releases use Alembic's version. They read this row only if the database has none.
    """

    __tablename__ = "schema_version"
    version: Mapped[int] = mapped_column(primary_key=True)


class ApiKey(Base):
    """An API key. Empty ``locations`` mean every location. ``hint`` is the end of the key.

    ``owner_id`` is the user whose permissions the key has. It is None for a key that the operator
    of the service created: such a key does not depend on a membership. A key that was never used is
    revoked after ``unused_until``, if this is set.
    """

    __tablename__ = "api_keys"
    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    secret_hash: Mapped[str] = mapped_column(unique=True)
    hint: Mapped[str]
    can_write: Mapped[bool]
    organization_id: Mapped[str]
    locations: Mapped[list[str]]
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    owner_id: Mapped[UUID | None] = mapped_column(index=True)
    unused_until: Mapped[datetime | None]


class Challenge(Base):
    """An enrollment challenge.

    ``signature`` and ``binding_id`` are stored when the device first answers the challenge. The
    service uses them to recognize a repeated answer.
    """

    __tablename__ = "challenges"
    id: Mapped[UUID] = mapped_column(primary_key=True)
    nonce: Mapped[str]
    key_id: Mapped[UUID]
    organization_id: Mapped[str]
    instance_id: Mapped[UUID]
    public_key: Mapped[str]
    platform: Mapped[Platform]
    location_id: Mapped[str]
    legacy_install_id: Mapped[str]
    app_version: Mapped[str | None]
    capabilities: Mapped[list[str]]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    signature: Mapped[str | None]
    binding_id: Mapped[UUID | None]


class Device(Base):
    """An installed agent and its current binding.

    ``key_id`` is the API key or session of the last enrollment, or the one to which a later
    heartbeat moved the device. The requests of the device are sent in the streams of this key.
    ``legacy_install_id`` is the name of the device. ``foreground`` is whether a user runs the agent
    in a terminal. ``created_at`` is the time of the first enrollment, and ``enrolled_at`` of the
    last one. ``user_id`` is the `Caller.user_id` of the last enrollment.
    ``priority`` and ``severity`` determine the order of devices in lists
    (`controlplane.devices.priority`). ``network_report`` and ``application_report`` are the
    `Report.position` of the newest report of each kind. ``symbols`` has one character for each of
    the device's findings and other properties that are counted (the subjects of `FindingCount`).
    """

    __tablename__ = "devices"
    __table_args__ = (
        Index("devices_by_location", "organization_id", "location_id", "position"),
        # This index has all columns by which lists are ordered, filtered and searched, so that a
        # page is found without reading the rows of other devices. It has no column that a heartbeat
        # of an online device changes, so that such heartbeats do not update it.
        Index(
            "devices_by_priority",
            "organization_id",
            "priority",
            "position",
            "severity",
            "location_id",
            "platform",
            "app_version",
            "legacy_install_id",
            "instance_id",
        ),
        # This index has all columns by which devices are grouped, filtered and searched to count
        # their findings. It begins with the columns by which devices are grouped.
        Index(
            "devices_by_group",
            "organization_id",
            "location_id",
            "platform",
            "app_version",
            "position",
            "symbols",
            "priority",
            "severity",
            "legacy_install_id",
            "instance_id",
            "binding_id",
        ),
        UniqueConstraint("organization_id", "instance_id", name="devices_by_instance"),
        UniqueConstraint("binding_id", name="devices_binding_id_key"),
    )
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    instance_id: Mapped[UUID]
    binding_id: Mapped[UUID]
    key_id: Mapped[UUID] = mapped_column(index=True)
    organization_id: Mapped[str]
    location_id: Mapped[str]
    legacy_install_id: Mapped[str]
    app_version: Mapped[str | None]
    capabilities: Mapped[list[str]]
    platform: Mapped[Platform]
    public_key: Mapped[str]
    user_id: Mapped[str]
    foreground: Mapped[bool]
    created_at: Mapped[datetime]
    enrolled_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    priority: Mapped[int] = mapped_column(server_default=text("4"))
    severity: Mapped[str | None]
    network_report: Mapped[int | None] = mapped_column(BigInteger)
    application_report: Mapped[int | None] = mapped_column(BigInteger)
    symbols: Mapped[str] = mapped_column(server_default=text("''"))

    @property
    def newest_reports(self) -> list[int]:
        """Return the `Report.position` of the newest report of each kind, network first."""
        return [each for each in (self.network_report, self.application_report) if each]


class Binding(Base):
    """A binding. Ended bindings are kept, so that a device with an old binding gets the error
    ``binding_revoked`` and not ``binding_not_found``.
    """

    __tablename__ = "bindings"
    id: Mapped[UUID] = mapped_column(primary_key=True)
    instance_id: Mapped[UUID] = mapped_column(index=True)
    organization_id: Mapped[str]
    location_id: Mapped[str]
    created_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


class Request(Base):
    """A request for a report of a device.

    ``requested_by_id`` is the `Caller.user_id` of the requester. ``received_at`` is when the device
    first acknowledged the request, and ``started_at`` when it acknowledged the request as running.
    ``finished_at`` is when the result arrived or the request expired.
    """

    __tablename__ = "requests"
    __table_args__ = (
        Index("requests_by_instance", "instance_id", "position"),
        Index("requests_by_binding", "binding_id", "status"),
        Index("requests_by_expiry", "status", "expires_at"),
        Index("requests_by_age", "created_at", "position"),
    )
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    id: Mapped[UUID] = mapped_column(unique=True)
    instance_id: Mapped[UUID]
    binding_id: Mapped[UUID]
    organization_id: Mapped[str]
    location_id: Mapped[str]
    requested_by_id: Mapped[str]
    kind: Mapped[Kind]
    status: Mapped[RequestStatus]
    expires_at: Mapped[datetime]
    received_at: Mapped[datetime | None]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class Report(Base):
    """A report. ``payload`` is canonical JSON, and ``payload_hash`` is its SHA-256.

    ``body_hash`` is the hash of the submitted body, which identifies a repeated submission.
    ``user_id`` is the `Device.user_id` at the time of the submission. The ``tracker_`` columns are
    about the message that the service sends to a webhook (`controlplane.web.webhooks.tracker`).

    ``headline`` and ``severity`` are None for a report that an older release of the service stored,
    until this release has summarized the report.
    """

    __tablename__ = "reports"
    __table_args__ = (
        Index("reports_by_instance", "instance_id", "position"),
        Index("reports_by_organization", "organization_id", "position", "location_id"),
        Index("reports_by_tracker", "tracker_status", "tracker_due_at"),
        Index("reports_by_age", "created_at", "position"),
        partial_index("reports_without_headline", "position", where="headline IS NULL"),
    )
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    id: Mapped[UUID] = mapped_column(unique=True)
    request_id: Mapped[UUID | None] = mapped_column(unique=True)
    instance_id: Mapped[UUID]
    binding_id: Mapped[UUID]
    organization_id: Mapped[str]
    location_id: Mapped[str]
    user_id: Mapped[str]
    kind: Mapped[Kind]
    outcome: Mapped[Outcome]
    failure_reason: Mapped[FailureReason | None]
    payload: Mapped[str]
    payload_hash: Mapped[str]
    body_hash: Mapped[str]
    tracker_status: Mapped[TrackerStatus]
    tracker_event_id: Mapped[str]
    tracker_attempts: Mapped[int]
    tracker_due_at: Mapped[datetime | None]
    headline: Mapped[str | None]
    severity: Mapped[str | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class ReportVolume(Base):
    """The size of the reports that a device, or an organization, sent on one day (UTC).

    ``instance`` is the instance id of the device, or empty for the organization. ``day`` is the
    number of days since 1970-01-01.
    """

    __tablename__ = "report_volumes"
    organization_id: Mapped[str] = mapped_column(primary_key=True)
    instance: Mapped[str] = mapped_column(primary_key=True)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    stored_bytes: Mapped[int] = mapped_column(BigInteger)
