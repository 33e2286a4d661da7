"""The text, printers, findings and incidents of a device's newest reports, stored for lists."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from agent.presentation.findings.printers import complaints_of
from agent.presentation.findings.rule import Finding
from agent.presentation.findings.snapshot_facts import all_fields
from agent.presentation.plain_text import plain
from agent.presentation.printer_status import STATUS_SEVERITIES, printer_name, status_of
from agent.wire.payloads.by_kind import ReportPayload
from agent.wire.payloads.network import NetworkPayload, Printer
from controlplane.devices.findings.storing import (
    RECENT,
    FindingContent,
    contents_of,
    forget_findings,
    store_findings,
)
from controlplane.devices.incidents.contents import RecordContent, record_content_of
from controlplane.devices.incidents.storing import store_record
from controlplane.storage.report_tables import (
    DevicePrinter,
    JudgedReport,
    PrinterProblem,
    ReportText,
)
from controlplane.storage.statements import change_rows
from controlplane.storage.tables import Device, Report

TEXT_MAX: Final = 2000
"""Maximum length of the text by which a report is searched. A search reads the texts of all
devices, so they are short."""
VALUE_MAX: Final = 64
"""Snapshot values longer than this are not searched: they are neither names nor versions."""


class PrinterState(IntEnum):
    """The state of a printer, and its order in lists. The numbers are stored in the database."""

    BROKEN = 0
    WARNING = 1
    UNKNOWN = 2
    HEALTHY = 3


@dataclass(frozen=True, slots=True)
class PrinterContent:
    """A printer in a report. The fields are columns of `DevicePrinter`."""

    printer_id: str
    name: str
    address: str | None
    state: int
    detail: str


@dataclass(frozen=True, slots=True)
class ReportContent:
    """The part of a report that is stored for lists.

    ``text`` is the text by which the report is searched, in lower case. ``printers`` is None if the
    report does not list printers, ``record`` is None if it has no connectivity record, and
    ``findings`` is None if it has no content.
    """

    text: str
    printers: tuple[PrinterContent, ...] | None = None
    record: RecordContent | None = None
    findings: tuple[FindingContent, ...] | None = None


def content_of(
    payload: ReportPayload | None, headline: str, findings: tuple[Finding, ...]
) -> ReportContent:
    """Return what is stored of a report. ``payload`` is None for a report without content."""
    sentences = (each for finding in findings for each in finding.sentences)
    words = dict.fromkeys((headline, *sentences))  # without duplicates
    if payload is None:
        return ReportContent(_joined(words))
    if not isinstance(payload, NetworkPayload):
        values = (field.value for _, field in all_fields(payload) if field.status == "available")
        names = (plain(v) for v in values if isinstance(v, str) and len(v) <= VALUE_MAX)
        text = _joined((*words, *names))
        return ReportContent(text, None, record_content_of(payload), contents_of(findings))
    printers = None
    if payload.printers is not None:
        by_id = {each.printer_id: each for each in map(_printer_content, payload.printers)}
        printers = tuple(by_id.values())
    texts = (*words, *_texts(printers or ()))
    if payload.network_map is not None:
        system = payload.network_map.os
        texts = (*texts, system.platform, plain(system.version or ""))
    return ReportContent(_joined(texts), printers, findings=contents_of(findings))


def store_content(
    session: Session, device: Device, report: Report, content: ReportContent, now: datetime
) -> None:
    """Store the content of the newest report of a kind."""
    text = session.get(ReportText, (device.position, report.kind))
    if text is None:
        text = ReportText(device=device.position, kind=report.kind)
        text.organization_id = device.organization_id
        session.add(text)
    text.text = content.text
    if content.printers is not None:
        _store_printers(session, device, content.printers, report.created_at)
    if content.record is not None:
        store_record(session, device, content.record, report.created_at)
    if content.findings is not None:
        store_findings(session, device, report, content.findings, now)


def forget_contents(session: Session, device: Device, now: datetime) -> None:
    """Delete the text, printers and findings of a device that is enrolled at another location.

    Its reports belong to its previous location.
    """
    forget_printers_and_findings(session, device, now)
    change_rows(session, delete(ReportText).where(ReportText.device == device.position))


def forget_printers_and_findings(session: Session, device: Device, now: datetime) -> None:
    """Delete the printers and findings of a device that is revoked or enrolled elsewhere."""
    change_rows(session, delete(DevicePrinter).where(DevicePrinter.device == device.position))
    change_rows(session, delete(PrinterProblem).where(PrinterProblem.device == device.position))
    forget_findings(session, device, now)


def _store_printers(
    session: Session, device: Device, printers: tuple[PrinterContent, ...], at: datetime
) -> None:
    query = select(DevicePrinter).where(DevicePrinter.device == device.position)
    rows = {row.printer_id: row for row in session.scalars(query)}
    for each in printers:
        row = rows.pop(each.printer_id, None)
        if row is None:
            row = DevicePrinter(
                organization_id=device.organization_id,
                device=device.position,
                printer_id=each.printer_id,
                state=each.state,
                since=at,
            )
            session.add(row)
        if row.state != each.state:
            _end_problem(session, device, row, at)
            row.state, row.since = each.state, at
        row.name, row.address, row.detail = each.name, each.address, each.detail
    for row in rows.values():
        _end_problem(session, device, row, at)
        session.delete(row)


def _end_problem(session: Session, device: Device, row: DevicePrinter, at: datetime) -> None:
    """Store the period in which a printer was broken, if it was.

    ``at`` is the time of the report in which the printer is no longer broken.
    """
    if row.state != PrinterState.BROKEN:
        return
    newest = session.get(JudgedReport, (device.position, "network"))
    if newest is not None and newest.arrived_at < at - RECENT:
        at = newest.arrived_at  # the state of the printer is unknown since then
    session.add(
        PrinterProblem(
            organization_id=device.organization_id,
            location_id=device.location_id,
            device=device.position,
            printer_id=row.printer_id,
            name=row.name,
            since=row.since,
            until=at,
        )
    )


def _printer_content(printer: Printer) -> PrinterContent:
    return PrinterContent(
        printer_id=plain(printer.id),
        name=printer_name(printer),
        address=printer.address and plain(printer.address),
        state=_state_of(printer),
        detail=plain(printer.reason or ""),
    )


def _state_of(printer: Printer) -> PrinterState:
    status = status_of(printer)
    if STATUS_SEVERITIES[status] == "bad":
        return PrinterState.BROKEN
    if complaints_of(printer):
        return PrinterState.WARNING
    return PrinterState.UNKNOWN if status == "unknown" else PrinterState.HEALTHY


def _texts(printers: tuple[PrinterContent, ...]) -> Iterator[str]:
    for printer in printers:
        yield from (printer.name, printer.address or "", printer.detail)


def _joined(words: Iterable[str]) -> str:
    return " ".join(filter(None, words)).lower()[:TEXT_MAX]
