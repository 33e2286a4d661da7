"""The text and the printers of the devices' newest reports, for the search and for lists."""

from datetime import datetime

from sqlalchemy import BigInteger, Index
from sqlalchemy.orm import Mapped, mapped_column

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
