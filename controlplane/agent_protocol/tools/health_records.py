"""The records of read_business_records about findings and incidents of devices."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Dialect, TypeDecorator, func, select

from agent.presentation.connectivity.titles import CAUSE_TITLES
from agent.wire.vocabulary import Kind
from controlplane.agent_protocol.tools.record_models import (
    Dataset,
    DeviceFindingRecord,
    DeviceIncidentRow,
    Record,
)
from controlplane.agent_protocol.tools.tool import ToolContext
from controlplane.devices.findings.rules import rule_of
from controlplane.devices.findings.storing import RECENT
from controlplane.operation.records import record_of
from controlplane.storage.report_tables import DeviceFinding, DeviceIncident, JudgedReport
from controlplane.storage.tables import Device

KINDS: Final[dict[Dataset, tuple[Kind, ...]]] = {
    "findings": ("network", "application"),
    "incidents": ("application",),
}
"""The kinds of reports that the rows of a dataset come from."""


class EpochSeconds(TypeDecorator[datetime]):
    """A column with seconds since 1970 that is compared with a time."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return None if value is None else int(value.timestamp())


def finding_records(
    context: ToolContext, rows: Sequence[DeviceFinding], _ids: Any
) -> Iterable[Record]:
    ids = _instance_ids(context, rows)
    for row in rows:
        yield record_of(
            DeviceFindingRecord, row, instance_id=ids[row.device], fix=rule_of(row.rule).fix
        )


def incident_records(
    context: ToolContext, rows: Sequence[DeviceIncident], _ids: Any
) -> Iterable[Record]:
    ids = _instance_ids(context, rows)
    for row in rows:
        yield record_of(
            DeviceIncidentRow,
            row,
            instance_id=ids[row.device],
            title=CAUSE_TITLES[row.cause].sentence,
            began_at=_time_of(row.began_s),
            ended_at=None if row.ended_s is None else _time_of(row.ended_s),
            downtime_seconds=row.downtime_s,
        )


def is_recent(context: ToolContext) -> ColumnElement[bool]:
    """Return the SQL condition for findings that a recent report contains.

    Older findings may have ended.
    """
    return DeviceFinding.last_seen >= context.now - RECENT


def unknown_device_count(
    context: ToolContext, dataset: Dataset, locations: Sequence[str] | None, instance_id: Any
) -> int | None:
    """Return the number of devices without a recent report of the `KINDS` of ``dataset``.

    Returns None if ``dataset`` is neither findings nor incidents.

    Args:
        locations: the locations of the devices; None for all locations of the organization.
        instance_id: counts only the device with this id; None for all devices.
    """
    if dataset not in KINDS:
        return None
    reports = select(JudgedReport.device).where(
        JudgedReport.kind.in_(KINDS[dataset]),
        JudgedReport.arrived_at >= context.now - RECENT,
    )
    query = select(func.count()).where(
        Device.organization_id == context.caller.organization_id,
        Device.revoked_at.is_(None),
        Device.position.not_in(reports),
    )
    if locations is not None:
        query = query.where(Device.location_id.in_(locations))
    if instance_id is not None:
        query = query.where(Device.instance_id == instance_id)
    return context.session.scalars(query).one()


def _instance_ids(context: ToolContext, rows: Iterable[Any]) -> dict[int, Any]:
    """Return the instance ids of the devices of these rows, by position of the device."""
    positions = {row.device for row in rows}
    query = select(Device.position, Device.instance_id).where(Device.position.in_(positions))
    return {row.position: row.instance_id for row in context.session.execute(query)}


def _time_of(seconds: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)
