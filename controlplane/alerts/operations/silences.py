"""Operations for silences."""

import uuid
from uuid import UUID

from sqlalchemy import or_, select

from agent.wire.device_operations import EmptyRequest
from controlplane.accounts.names import require_known
from controlplane.alerts.operations import messages
from controlplane.devices.locations.operations import period_of
from controlplane.devices.locations.status import describe_period
from controlplane.operation.audit_entries import Event, Subject, actor_of
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import foreign_location, manager_required, not_found
from controlplane.operation.records import record_of
from controlplane.storage.monitoring_tables import AlertSilence


def silences(context: RequestContext, _body: EmptyRequest) -> messages.SilencesReply:
    """Return the current and planned silences that the caller may see."""
    query = select(AlertSilence).where(
        AlertSilence.organization_id == context.organization_id, AlertSilence.until > context.now
    )
    if context.caller.locations:
        is_visible = AlertSilence.location_id.in_(context.caller.locations)
        query = query.where(or_(is_visible, AlertSilence.location_id == ""))
    rows = context.session.scalars(query.order_by(AlertSilence.until).limit(messages.LISTED_MAX))
    return messages.SilencesReply(
        silences=tuple(map(_record, rows)), can_write=context.caller.can_write
    )


def add_silence(context: RequestContext, body: messages.SilenceRequest) -> messages.SilenceRecord:
    """Silence the matching alerts until a time."""
    location_id = body.location_id or ""
    if body.instance_id is not None:
        device = context.device(body.instance_id)
        if location_id not in {"", device.location_id}:
            raise not_found("device")
        location_id = device.location_id
    _require_access(context, location_id)
    if location_id:
        require_known(context, [location_id])
    location_key = (context.organization_id, location_id)
    since, until = period_of(context, location_key, body.since, body.until)
    row = AlertSilence(
        id=uuid.uuid4(),
        organization_id=context.organization_id,
        location_id=location_id,
        instance="" if body.instance_id is None else str(body.instance_id),
        rule=body.rule or "",
        since=since,
        until=until,
        reason=body.reason,
        created_by=actor_of(context.session, context.caller).name,
    )
    context.session.add(row)
    detail = f"{describe(row)} {describe_period(since, until)} {body.reason}".strip()
    context.note(Event("silence.add", Subject("silence", str(row.id)), detail))
    return _record(row)


def end_silence(
    context: RequestContext, body: messages.SilenceEndRequest
) -> messages.SilenceRecord:
    """End a silence now. Notifications are sent for its alerts that are still firing."""
    query = select(AlertSilence).where(
        AlertSilence.id == body.silence_id,
        AlertSilence.organization_id == context.organization_id,
    )
    row = context.session.scalars(query.with_for_update()).first()
    if row is None:
        raise not_found("silence")
    _require_access(context, row.location_id)
    if row.until > context.now:
        row.since = min(row.since, context.now)  # a planned silence has not begun
        row.until = context.now
        context.note(Event("silence.end", Subject("silence", str(row.id)), describe(row)))
    return _record(row)


def describe(row: AlertSilence) -> str:
    """Return the matchers of a silence as text."""
    matchers = (("location", row.location_id), ("device", row.instance), ("rule", row.rule))
    return ", ".join(f"{name} {value}" for name, value in matchers if value) or "all alerts"


def _require_access(context: RequestContext, location_id: str) -> None:
    if not location_id and context.caller.locations:
        raise manager_required()
    if location_id and not context.caller.has_access_to(location_id):
        raise foreign_location()


def _record(row: AlertSilence) -> messages.SilenceRecord:
    return record_of(
        messages.SilenceRecord,
        row,
        location_id=row.location_id or None,
        instance_id=UUID(row.instance) if row.instance else None,
        rule=row.rule or None,
    )
