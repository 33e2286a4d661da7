"""Evaluates the stored reports again, and counts the findings of the fleet from the results.

It reads only the devices, their bindings and their reports, and not the sums that the service
stores. A report without content is ignored.
"""

import json
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from agent.presentation.findings.findings import findings_of
from agent.wire.codec import validate
from agent.wire.payloads.by_kind import PAYLOADS
from agent.wire.vocabulary import Kind
from controlplane.storage.tables import Binding, Device, Report

WEEK = timedelta(days=7)


@dataclass(frozen=True)
class ReportContent:
    """A report with content: its kind, when it arrived, and the codes of its findings."""

    kind: Kind
    at: datetime
    codes: frozenset[str]


@cache
def codes_of(kind: Kind, payload: str) -> frozenset[str]:
    findings = findings_of(validate(json.loads(payload), PAYLOADS[kind]))
    return frozenset(each.code for each in findings)


class Oracle:
    """Findings computed from the reports. ``reports`` has the reports with content of each binding,
    oldest first.
    """

    def __init__(self, session: Session) -> None:
        self.devices = session.scalars(select(Device)).all()
        self.bindings = session.scalars(select(Binding)).all()
        self.reports: dict[Any, list[ReportContent]] = {each.id: [] for each in self.bindings}
        for report in session.scalars(select(Report).order_by(Report.position)):
            if report.payload != "null":
                content = ReportContent(
                    report.kind, report.created_at, codes_of(report.kind, report.payload)
                )
                self.reports[report.binding_id].append(content)

    def newest(self, binding_id: Any, at: datetime) -> list[ReportContent]:
        """Return the newest report of each kind up to a time, if it is at most seven days old."""
        newest = {each.kind: each for each in self.reports[binding_id] if each.at <= at}
        return [each for each in newest.values() if at - each.at <= WEEK]

    def findings(self, binding_id: Any, at: datetime) -> set[str]:
        return {code for each in self.newest(binding_id, at) for code in each.codes}

    def begin(self, binding_id: Any, kind: Kind, code: str) -> datetime:
        """Return when a finding of the newest report of this kind began.

        From this time on, all reports of this kind have the finding.
        """
        reports = [each for each in self.reports[binding_id] if each.kind == kind]
        begin = reports[-1].at
        for each in reversed(reports):
            if code not in each.codes:
                break
            begin = each.at
        return begin

    def count(self, at: datetime, location: str | None = None) -> Counter[str]:
        """Return how many devices had each finding at this time."""
        counts = Counter[str]()
        for binding in self.bindings:
            is_bound = binding.created_at <= at and (
                binding.ended_at is None or at < binding.ended_at
            )
            if is_bound and location in (None, binding.location_id):
                counts.update(self.findings(binding.id, at))
        return counts

    def bound_devices(self) -> list[Device]:
        """Return the devices that are not revoked."""
        return [each for each in self.devices if each.revoked_at is None]
