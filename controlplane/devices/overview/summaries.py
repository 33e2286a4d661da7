"""The one-line summary of a report, computed when the report arrives and stored with it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from agent.presentation.headline import headline_of
from agent.presentation.severity import Severity
from agent.wire.payloads.by_kind import ReportPayload
from controlplane.devices.priority import update_severity
from controlplane.devices.records import payload_of
from controlplane.storage.tables import Device, Report

log = logging.getLogger("controlplane.devices.overview.summaries")
HEADLINE_MAX: Final = 400
REPORTS_A_STEP: Final = 20


@dataclass(frozen=True, slots=True)
class Summary:
    headline: str
    severity: Severity


def summary_of(report: ReportPayload | None) -> Summary:
    """Return the summary of a report. It never fails, so that no report is lost."""
    return _summary(lambda: report)


def _summary(read: Callable[[], ReportPayload | None]) -> Summary:
    try:
        report = read()
        if report is None:
            return Summary("The device could report nothing.", "bad")
        headline = headline_of(report)
    except Exception:
        # Every error is caught: many rules process untrusted content, and any of them may fail.
        log.exception("a report cannot be summarized")
        return Summary("This report cannot be summarized.", "muted")
    return Summary(headline.verdict[:HEADLINE_MAX], headline.severity)


def sum_up_old(session: Session) -> int:
    """Store the summaries of some reports that an older release stored without a summary.

    The newest reports come first. Returns the number of reports.
    """
    query = (
        select(Report)
        .where(Report.headline.is_(None))
        .order_by(Report.position.desc())
        .limit(REPORTS_A_STEP)
        .with_for_update(skip_locked=True)
    )
    reports = session.scalars(query).all()
    for report in reports:
        summary = _summary(partial(payload_of, report))
        report.headline, report.severity = summary.headline, summary.severity
    session.flush()
    positions = [report.position for report in reports]
    is_newest = Device.network_report.in_(positions) | Device.application_report.in_(positions)
    instances = [report.instance_id for report in reports]
    for device in session.scalars(
        select(Device).where(Device.instance_id.in_(instances), is_newest)
    ):
        update_severity(session, device)
    return len(reports)
