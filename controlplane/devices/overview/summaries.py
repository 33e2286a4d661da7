"""The one-line summary of a report, computed when the report arrives and stored with it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from agent.presentation.findings.findings import findings_of
from agent.presentation.findings.rule import Finding
from agent.presentation.headline import headline_of
from agent.presentation.severity import Severity
from agent.wire.payloads.by_kind import ReportPayload
from controlplane.devices.overview.report_contents import (
    ReportContent,
    content_of,
    store_content,
)
from controlplane.devices.priority import update_severity
from controlplane.devices.records import EMPTY, payload_of
from controlplane.storage.report_tables import ReportText
from controlplane.storage.tables import Device, Report

log = logging.getLogger("controlplane.devices.overview.summaries")
HEADLINE_MAX: Final = 400
REPORTS_A_STEP: Final = 20
"""Maximum number of old reports that one transaction reads."""


@dataclass(frozen=True, slots=True)
class Summary:
    """``content`` is None if the report cannot be summarized."""

    headline: str
    severity: Severity
    content: ReportContent | None = None


def findings_in(report: Report) -> tuple[Finding, ...] | None:
    """Return the findings of a stored report, most severe first.

    This never fails. If the findings cannot be read, it returns None.
    """
    try:
        payload = payload_of(report)
        return () if payload is None else findings_of(payload)
    except Exception:
        # Every error is caught: many rules process untrusted content, and any of them may fail.
        log.exception("the findings of a report cannot be read")
        return None


def summary_of(payload: ReportPayload | None, *, is_empty: bool = True) -> Summary:
    """Return the summary of a report. It never fails, so that no report is lost.

    Args:
        payload: None for a report without a payload.
        is_empty: whether the report failed and has no content.
    """
    return _summary(lambda: payload, is_empty=is_empty)


def _summary(read_payload: Callable[[], ReportPayload | None], *, is_empty: bool) -> Summary:
    try:
        payload = read_payload()
        if payload is None and is_empty:
            return _without_findings("The device could not report anything.", "bad")
        if payload is None:
            return _without_findings("The report has no content that can be shown.", "muted")
        headline = headline_of(payload)
        content = content_of(payload, headline.verdict, headline.findings)
    except Exception:
        # Every error is caught: many rules process untrusted content, and any of them may fail.
        log.exception("a report cannot be summarized")
        return Summary("This report cannot be summarized.", "muted")
    return Summary(headline.verdict[:HEADLINE_MAX], headline.severity, content)


def _summary_of_stored(report: Report) -> Summary:
    is_empty = report.outcome == "failed" and report.payload == EMPTY
    return _summary(partial(payload_of, report), is_empty=is_empty)


def _without_findings(headline: str, severity: Severity) -> Summary:
    return Summary(headline, severity, content_of(None, headline, ()))


def summarize_old_reports(session: Session) -> int:
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
        summary = _summary_of_stored(report)
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


def store_old_contents(session: Session, now: datetime) -> int:
    """Store the `ReportContent` of some reports that an older release stored without it.

    Each of these reports is the newest of its kind from its device. Returns the number of reports.
    """
    query = (
        select(ReportText, Device)
        .join(Device, Device.position == ReportText.device)
        .where(ReportText.text.is_(None))
        .limit(REPORTS_A_STEP)
        .with_for_update(skip_locked=True)
    )
    rows = session.execute(query).all()
    for text, device in rows:
        position = device.network_report if text.kind == "network" else device.application_report
        report = session.get(Report, position or 0)
        summary = None if report is None else _summary_of_stored(report)
        text.text = ""  # not None any more, so that the report is read only once
        if report is not None and summary is not None and summary.content is not None:
            store_content(session, device, report, summary.content, now)
    return len(rows)
