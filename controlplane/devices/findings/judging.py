"""Periodic work on findings.

It judges the stored reports by the rules of a new release, and stops counting the findings in
reports that have become too old. To judge a report is to apply the rules to it.
"""

from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from controlplane.devices.findings.counting import count_again
from controlplane.devices.findings.rules import RULES_VERSION
from controlplane.devices.findings.storing import RECENT, contents_of, store_findings
from controlplane.devices.overview.summaries import findings_in
from controlplane.devices.records import has_payload
from controlplane.storage.report_tables import JudgedReport
from controlplane.storage.tables import Device, Report

REPORTS_A_STEP: Final = 20
"""Maximum number of reports that one call of `judge_again` judges."""
OLD_A_STEP: Final = 200
"""Maximum number of reports that one call of `stop_counting_old_reports` marks as too old."""


def judge_again(session: Session, now: datetime) -> int:
    """Judge some reports that an older release judged.

    Returns the number of reports.
    """
    is_older = JudgedReport.rules_version < RULES_VERSION
    rows = _lock_judged_reports(session, is_older, REPORTS_A_STEP)
    for judged, device in rows:
        report = session.get(Report, judged.report)
        if report is not None and not has_payload(report):
            session.delete(judged)
            continue
        # The findings remain if the report was deleted because of its age, or cannot be read.
        judged.rules_version = RULES_VERSION
        if report is not None and (findings := findings_in(report)) is not None:
            store_findings(session, device, report, contents_of(findings), now)
    return len(rows)


def stop_counting_old_reports(session: Session, now: datetime) -> int:
    """Stop counting the findings in some reports that are too old.

    Returns the number of reports.
    """
    is_old = JudgedReport.is_recent & (JudgedReport.arrived_at < now - RECENT)
    rows = _lock_judged_reports(session, is_old, OLD_A_STEP)
    for judged, _ in rows:
        judged.is_recent = False
    devices = {device.position: device for _, device in rows}
    if devices:
        count_again(session, list(devices.values()), now)
    return len(rows)


def _lock_judged_reports(
    session: Session, condition: ColumnElement[bool], count: int
) -> list[tuple[JudgedReport, Device]]:
    """Return some judged reports that match a condition, with their devices.

    The rows of the devices are locked before their judged reports are read, as when a report is
    submitted. Devices whose rows are already locked are left out.
    """
    positions = session.scalars(
        select(JudgedReport.device).where(condition).order_by(JudgedReport.device).limit(count)
    ).all()
    locked = select(Device).where(Device.position.in_(positions)).order_by(Device.position)
    devices = {
        device.position: device
        for device in session.scalars(locked.with_for_update(skip_locked=True))
    }
    query = select(JudgedReport).where(JudgedReport.device.in_(devices), condition)
    return [(row, devices[row.device]) for row in session.scalars(query)]
