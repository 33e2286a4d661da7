"""The text, the printers and the incidents in the devices' newest reports, for lists."""

from datetime import datetime

from sqlalchemy import BigInteger, Index
from sqlalchemy.orm import Mapped, mapped_column

from agent.wire.payloads.history import Cause
from agent.wire.vocabulary import Kind
from controlplane.storage.tables import Base, Position, partial_index


class ReportText(Base):
    """The searchable text of the newest report of one kind from a device, in lower case.

    ``device`` is the position of the device. ``text`` is None for a report of an older release
    until the service has read the report.
    """

    __tablename__ = "report_texts"
    __table_args__ = (
        Index("report_texts_by_organization", "organization_id"),
        partial_index("report_texts_missing", "device", where="text IS NULL"),
    )
    device: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    kind: Mapped[Kind] = mapped_column(primary_key=True)
    organization_id: Mapped[str]
    text: Mapped[str | None]


class DevicePrinter(Base):
    """A printer in the newest network report of a device that lists printers.

    ``device`` is the position of the device. ``state`` is a number of
    `devices.overview.report_contents.PrinterState`, and ``since`` is when the first report with
    this state arrived.
    """

    __tablename__ = "device_printers"
    __table_args__ = (
        Index("device_printers_by_state", "organization_id", "state", "position"),
        Index("device_printers_by_device", "device"),
    )
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    organization_id: Mapped[str]
    device: Mapped[int] = mapped_column(BigInteger)
    printer_id: Mapped[str]
    name: Mapped[str]
    address: Mapped[str | None]
    state: Mapped[int]
    detail: Mapped[str]
    since: Mapped[datetime]


class DeviceIncident(Base):
    """An incident in the record of a device, at the location to which it was bound at the time.

    Times are seconds since 1970. ``reported_s`` is the begin by the clock of the device. It
    identifies the incident together with the device and the cause. ``began_s`` and ``ended_s`` are
    corrected by ``correction_s``. ``ended_s`` is None while the incident lasts.
    """

    __tablename__ = "device_incidents"
    __table_args__ = (
        Index("device_incidents_by_time", "organization_id", "began_s", "position", "location_id"),
        Index(
            "device_incidents_by_location", "organization_id", "location_id", "began_s", "device"
        ),
        Index("device_incidents_by_device", "device", "began_s"),
        Index("device_incidents_by_age", "began_s"),
    )
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    organization_id: Mapped[str]
    location_id: Mapped[str]
    device: Mapped[int] = mapped_column(BigInteger)
    cause: Mapped[Cause]
    reported_s: Mapped[int] = mapped_column(BigInteger)
    began_s: Mapped[int] = mapped_column(BigInteger)
    ended_s: Mapped[int | None] = mapped_column(BigInteger)
    downtime_s: Mapped[int] = mapped_column(BigInteger)
    count: Mapped[int]
    evidence: Mapped[str]
    correction_s: Mapped[int] = mapped_column(BigInteger)


class DeviceFinding(Base):
    """A finding in the newest report of one kind from a device.

    ``device`` is the position of the device, ``rule`` the id of the finding, and ``report`` the
    position of the report.
    """

    __tablename__ = "device_findings"
    __table_args__ = (Index("device_findings_by_rule", "organization_id", "rule", "device"),)
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    organization_id: Mapped[str]
    location_id: Mapped[str]
    device: Mapped[int] = mapped_column(BigInteger)
    kind: Mapped[Kind]
    rule: Mapped[str]
    severity: Mapped[str]
    sentence: Mapped[str]
    since: Mapped[datetime]
    last_seen: Mapped[datetime]
    report: Mapped[int] = mapped_column(BigInteger)


class RecordPeriod(Base):
    """A period, in seconds since 1970, in which a device at a location would have seen incidents.

    The device was bound to the location, and a report contains its record of this period.
    """

    __tablename__ = "record_periods"
    __table_args__ = (
        Index("record_periods_by_location", "organization_id", "location_id", "until_s"),
        Index("record_periods_by_device", "device"),
    )
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    organization_id: Mapped[str]
    location_id: Mapped[str]
    device: Mapped[int] = mapped_column(BigInteger)
    since_s: Mapped[int] = mapped_column(BigInteger)
    until_s: Mapped[int] = mapped_column(BigInteger)
