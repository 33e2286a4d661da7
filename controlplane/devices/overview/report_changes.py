"""Differences between reports, computed on demand and cached.

Reports never change, so the differences between two reports never change either and can be cached
([0033](../../../docs/adr/0033-report-differences.md)). Without the cache, the content of both
reports would be read for each request.
"""

import logging
import threading
from collections import OrderedDict
from typing import Final

from sqlalchemy import select

from agent.presentation.changes.change import Changes
from agent.presentation.changes.changes import changes_between
from agent.wire.payloads.by_kind import ReportPayload
from controlplane.devices.overview.records import ReportChange, ReportChanges
from controlplane.devices.records import EMPTY, has_payload, payload_of
from controlplane.operation.context import RequestContext
from controlplane.operation.records import record_of
from controlplane.storage.tables import Device, Report

log = logging.getLogger("controlplane.devices.overview.report_changes")
CACHED_MAX: Final = 2000
"""Maximum number of cached comparisons: two for each of a thousand devices."""
EARLIER_MAX: Final = 20
"""Maximum number of reports that are read to find one with a payload."""


class ReportChangeCache:
    """A cache of differences, in the order of their last use. It is thread-safe.

    The differences between two reports are cached under the row keys (``Report.position``) of the
    earlier and the later report. The value None means that these two reports cannot be compared.
    """

    def __init__(self) -> None:
        self._comparisons: OrderedDict[tuple[int, int], ReportChanges | None] = OrderedDict()
        self._lock = threading.Lock()

    def of_device(self, context: RequestContext, device: Device) -> tuple[ReportChanges, ...]:
        """Return how the newest report of each kind differs from the previous report of that kind.

        Reports that the caller has no access to are not compared. For example, the earlier reports
        of a moved device may belong to a location that the caller has no access to.
        """
        query = select(Report).where(
            context.visible(Report), Report.position.in_(device.newest_reports)
        )
        reports = context.session.scalars(query.order_by(Report.kind.desc())).all()
        results = (self._of_report(context, report) for report in reports)
        return tuple(each for each in results if each is not None)

    def _of_report(self, context: RequestContext, report: Report) -> ReportChanges | None:
        earlier = previous_report(context, report)
        if earlier is None or report.payload == EMPTY:
            return None
        pair = earlier.position, report.position
        with self._lock:
            if pair in self._comparisons:
                self._comparisons.move_to_end(pair)
                return self._comparisons[pair]
        changes = _record(earlier, report)
        with self._lock:
            self._comparisons[pair] = changes
            while len(self._comparisons) > CACHED_MAX:
                self._comparisons.popitem(last=False)
        return changes


def previous_report(context: RequestContext, report: Report) -> Report | None:
    """Return the previous report of the same device and kind that has a payload.

    Reports that the caller has no access to are left out.
    """
    before = report.position
    for _ in range(EARLIER_MAX):
        query = select(Report).where(
            context.visible(Report),
            Report.instance_id == report.instance_id,
            Report.kind == report.kind,
            Report.position < before,
            Report.payload != EMPTY,
        )
        earlier = context.session.scalars(query.order_by(Report.position.desc()).limit(1)).first()
        if earlier is None or has_payload(earlier):
            return earlier
        before = earlier.position
    return None


def compare_reports(earlier: Report, payload: ReportPayload) -> Changes | None:
    """Return the differences, or None if the reports cannot be compared."""
    try:
        before = payload_of(earlier)
        return None if before is None else changes_between(before, payload)
    except Exception:
        # Every error is caught: many rules process untrusted content, and any of them may fail.
        log.exception("two reports cannot be compared")
        return None


def _record(earlier: Report, report: Report) -> ReportChanges | None:
    try:
        payload = payload_of(report)
    except ValueError:
        log.exception("a report cannot be read")
        return None
    changes = None if payload is None else compare_reports(earlier, payload)
    if changes is None:
        return None
    return record_of(
        ReportChanges,
        changes,
        report_id=report.id,
        kind=report.kind,
        earlier_id=earlier.id,
        since=earlier.created_at,
        changes=tuple(record_of(ReportChange, each) for each in changes.listed),
    )
