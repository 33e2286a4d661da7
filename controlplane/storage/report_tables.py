"""Tables for the service's lists.

They contain the text, printers, findings and incidents in the newest reports of the devices.
``device`` is the primary key of a device (`Device.position`), and ``report`` that of a report
(`Report.position`).
"""

from datetime import datetime

from sqlalchemy import BigInteger, Index
from sqlalchemy.orm import Mapped, mapped_column

from agent.wire.payloads.history import Cause
from agent.wire.vocabulary import Kind
from controlplane.storage.tables import Base, Position, partial_index


class ReportText(Base):
    """The searchable text of the newest report of one kind from a device, in lower case.

    ``text`` is None for a report that an older release of the service stored, until this release
    has read the report.
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
    """A printer of a device, from the newest network report that has a list of printers.

    ``state`` is a number of `devices.overview.report_contents.PrinterState`, and ``since`` is when
    the first of the consecutive reports with this state arrived. ``detail`` is the reason that the
    report gives for the state, or empty.
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
    """An incident in the record of a device.

    ``location_id`` is the location to which the device was bound when the incident began. Times are
    seconds since 1970. ``reported_s`` is the start according to the clock of the device.
    ``device``, ``cause`` and ``reported_s`` together identify the incident. ``correction_s`` is
    added to the times of a clock that is wrong: ``began_s`` is ``reported_s`` plus
    ``correction_s``, and ``ended_s`` is corrected as well. ``ended_s`` is None while the incident
    lasts. ``count``, ``downtime_s`` and ``evidence`` are those of
    `agent.wire.payloads.history.Incident`.
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


class RecordPeriod(Base):
    """A period, in seconds since 1970, for which the incidents of a device at a location are known.

    In this period, the device was bound to the location, and a report contains the device's record
    of the period.
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


class PrinterProblem(Base):
    """A period that has ended, in which a printer was broken.

    The present state of a printer is in `DevicePrinter`.
    """

    __tablename__ = "printer_problems"
    __table_args__ = (
        # This index has all columns that the query for the worst printers needs, so that the query
        # does not read the rows.
        Index(
            "printer_problems_by_organization",
            "organization_id",
            "until",
            "since",
            "device",
            "printer_id",
            "name",
            "location_id",
        ),
        Index("printer_problems_by_device", "device"),
        Index("printer_problems_by_age", "until"),
    )
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    organization_id: Mapped[str]
    location_id: Mapped[str]
    device: Mapped[int] = mapped_column(BigInteger)
    printer_id: Mapped[str]
    name: Mapped[str]
    since: Mapped[datetime]
    until: Mapped[datetime]


class DeviceFinding(Base):
    """A finding in the newest report of one kind from a device that is not revoked.

    The rules are applied to each report with content (the report is then *judged*). After a report
    without content, the findings of the report before it remain.

    Attributes:
        rule: code of the rule (`agent.presentation.findings`).
        sentence: all sentences of the finding as one text (`devices.findings.rules.sentence_of`).
        since: when the first of the consecutive reports with this finding arrived.
        last_seen: when the newest of these reports arrived.
        report: the newest of these reports.
    """

    __tablename__ = "device_findings"
    __table_args__ = (
        Index("device_findings_by_device", "device", "kind", "rule", unique=True),
        # A report with the same findings changes no column of the following two indexes, so it does
        # not update them.
        Index(
            "device_findings_by_rule",
            "organization_id",
            "rule",
            "location_id",
            "since",
            "device",
            "kind",
        ),
        Index(
            "device_findings_by_begin",
            "organization_id",
            "rule",
            "since",
            "kind",
            "device",
            "location_id",
        ),
    )
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


class JudgedReport(Base):
    """The newest report of one kind from a device, among the reports with content.

    `DeviceFinding` has the findings of this report.

    Attributes:
        arrived_at: when the report arrived.
        rules_version: version of the rules that judged the report. 0 means that the report was not
            judged yet.
        is_recent: whether the findings of this report are included in `FindingCount`. The periodic
            tasks set this to False when the report is too old.
    """

    __tablename__ = "judged_reports"
    __table_args__ = (
        Index("judged_reports_by_version", "rules_version", "device"),
        Index("judged_reports_by_age", "is_recent", "arrived_at"),
    )
    device: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    kind: Mapped[Kind] = mapped_column(primary_key=True)
    report: Mapped[int] = mapped_column(BigInteger)
    arrived_at: Mapped[datetime]
    rules_version: Mapped[int]
    is_recent: Mapped[bool]


class CountedDevice(Base):
    """The part of the sums in `FindingCount` and `FindingDay` that comes from one device.

    ``subjects`` are the subjects of `FindingCount` that count this device. A revoked device has no
    subjects. ``version`` is the version of the agent, or "" if it is unknown.
    """

    __tablename__ = "counted_devices"
    device: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    organization_id: Mapped[str]
    location_id: Mapped[str]
    platform: Mapped[str]
    version: Mapped[str]
    subjects: Mapped[list[str]]


class FindingSubject(Base):
    """A subject of `FindingCount`, and its number (``position``).

    The number never changes. It determines the character that stands for the subject in
    `Device.symbols` (`devices.findings.counting`).
    """

    __tablename__ = "finding_subjects"
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    subject: Mapped[str] = mapped_column(unique=True)


class FindingCount(Base):
    """The present number of devices, by subject, location, platform and version of the agent.

    ``subject`` defines which devices are counted:

    - the code of a rule: devices with a finding of this rule
    - the kind of a report: devices with a recent report of this kind
    - ``any``: devices with a recent report of any kind
    - ``problem``: devices with problems or warnings, once for each problem or warning
    - ``device``: all devices that are not revoked

    ``location_id`` is "" for the whole organization.
    """

    __tablename__ = "finding_counts"
    __table_args__ = (
        Index("finding_counts_by_subject", "organization_id", "subject", "location_id", "devices"),
        {"sqlite_with_rowid": False},
    )
    organization_id: Mapped[str] = mapped_column(primary_key=True)
    location_id: Mapped[str] = mapped_column(primary_key=True)
    subject: Mapped[str] = mapped_column(primary_key=True)
    platform: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[str] = mapped_column(primary_key=True)
    devices: Mapped[int]


class FindingDay(Base):
    """The change of a `FindingCount` on one day (UTC).

    ``day`` is the number of days since 1970-01-01.
    """

    __tablename__ = "finding_days"
    __table_args__ = (
        Index("finding_days_by_age", "day"),
        {"sqlite_with_rowid": False},
    )
    organization_id: Mapped[str] = mapped_column(primary_key=True)
    location_id: Mapped[str] = mapped_column(primary_key=True)
    subject: Mapped[str] = mapped_column(primary_key=True)
    platform: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[str] = mapped_column(primary_key=True)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    change: Mapped[int]
