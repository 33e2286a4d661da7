"""Limits of the total size of the reports of a day, for each device and each organization.

Without them, one API key could fill the disk. A refused report stays in the outbox of its device,
which sends it again later. The sizes are counted in the transaction that stores the report.
"""

import math
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import delete
from sqlalchemy.orm import Session

from controlplane.operation.context import RequestContext
from controlplane.operation.errors import rate_limited
from controlplane.operation.fairness import spread
from controlplane.storage.statements import add_to_sums, change_rows
from controlplane.storage.tables import Report, ReportVolume

ROW_BYTES: Final = 1024
"""Assumed size of the row and the index entries of a report, in addition to its payload."""
RETRY_S: Final = 1800
"""Longest wait in seconds that is passed to `spread`. `spread` makes the wait random, so that the
devices do not return together at midnight, and at most doubles it. The result is therefore at most
an hour, which is the longest wait that an agent accepts."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
DAY: Final = timedelta(days=1)


def add_volume(context: RequestContext, report: Report, payload_bytes: int) -> None:
    """Add the size of a new report to the total of the day.

    Raises a refusal if the total had already reached a limit.

    Call this last in the transaction. Until the transaction ends, other reports of the organization
    wait.
    """
    settings, day = context.settings, (context.now - EPOCH) // DAY
    size = payload_bytes + ROW_BYTES
    for instance, limit, sender in (  # the instance "" stands for all devices
        (str(report.instance_id), settings.device_report_bytes, "this device"),
        ("", settings.organization_report_bytes, "this organization"),
    ):
        key = (report.organization_id, instance, day)
        add_to_sums(context.session, ReportVolume, [(*key, size)])
        if not limit:
            continue
        row = context.session.get_one(ReportVolume, key, populate_existing=True)
        if row.stored_bytes - size >= limit:
            wait_s = math.ceil((EPOCH + (day + 1) * DAY - context.now).total_seconds())
            reason = f"{sender} has sent its {limit} bytes of reports for today (UTC)"
            raise rate_limited(spread(min(wait_s, RETRY_S)), reason)


def delete_old_volumes(session: Session, now: datetime) -> None:
    """Delete the sizes of past days."""
    change_rows(session, delete(ReportVolume).where(ReportVolume.day < (now - EPOCH) // DAY))
