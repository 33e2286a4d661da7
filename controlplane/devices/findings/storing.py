"""Stores the findings of the newest reports of devices."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from agent.presentation.findings.rule import Finding
from controlplane.devices.findings.counting import count_again
from controlplane.devices.findings.rules import RULES_VERSION, sentence_of
from controlplane.storage.report_tables import DeviceFinding, JudgedReport
from controlplane.storage.statements import change_rows
from controlplane.storage.tables import Device, Report

RECENT: Final = timedelta(days=7)
"""Age up to which a report counts. The findings of a device with only older reports are unknown."""


@dataclass(frozen=True, slots=True)
class FindingContent:
    """A finding in a report. The fields are columns of `DeviceFinding`."""

    rule: str
    severity: str
    sentence: str


def contents_of(findings: Iterable[Finding]) -> tuple[FindingContent, ...]:
    return tuple(FindingContent(each.code, each.severity, sentence_of(each)) for each in findings)


def store_findings(
    session: Session,
    device: Device,
    report: Report,
    findings: tuple[FindingContent, ...],
    now: datetime,
) -> None:
    """Store the findings of a report.

    The report must have content, and must be the newest such report of its kind from this device.
    The row of the device must be locked.
    """
    _store_judged_report(session, device, report, now)
    is_own = (DeviceFinding.device == device.position) & (DeviceFinding.kind == report.kind)
    columns = (DeviceFinding.rule, DeviceFinding.severity, DeviceFinding.sentence)
    rows = session.execute(select(*columns).where(is_own))
    stored = {row.rule: FindingContent(*row) for row in rows}
    newest = {"last_seen": report.created_at, "report": report.position}
    by_rule = {each.rule: each for each in findings}
    if ended := stored.keys() - by_rule.keys():
        change_rows(session, delete(DeviceFinding).where(is_own, DeviceFinding.rule.in_(ended)))
    if stored.keys() & by_rule.keys():
        change_rows(session, update(DeviceFinding).where(is_own).values(**newest))
    for rule, each in by_rule.items():
        if rule in stored and stored[rule] != each:
            texts = {"severity": each.severity, "sentence": each.sentence}
            is_rule = DeviceFinding.rule == rule
            change_rows(session, update(DeviceFinding).where(is_own, is_rule).values(**texts))
    new_rows: list[dict[str, Any]] = [
        {
            "organization_id": device.organization_id,
            "location_id": device.location_id,
            "device": device.position,
            "kind": report.kind,
            "rule": each.rule,
            "severity": each.severity,
            "sentence": each.sentence,
            "since": report.created_at,
            **newest,
        }
        for each in by_rule.values()
        if each.rule not in stored
    ]
    if new_rows:
        session.execute(insert(DeviceFinding), new_rows)
    count_again(session, (device,), now)


def _store_judged_report(session: Session, device: Device, report: Report, now: datetime) -> None:
    row = session.get(JudgedReport, (device.position, report.kind))
    if row is None:
        row = JudgedReport(device=device.position, kind=report.kind)
        session.add(row)
    row.report, row.arrived_at = report.position, report.created_at
    row.rules_version = RULES_VERSION
    row.is_recent = now - report.created_at <= RECENT


def forget_findings(session: Session, device: Device, now: datetime) -> None:
    """Delete the findings of a device that is revoked, or enrolled at another location."""
    change_rows(session, delete(DeviceFinding).where(DeviceFinding.device == device.position))
    for row in session.scalars(select(JudgedReport).where(JudgedReport.device == device.position)):
        session.delete(row)
    count_again(session, (device,), now)
