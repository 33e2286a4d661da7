"""Operations for alerts: the list, acknowledging, and the delivery log of their notifications."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import select

from controlplane.accounts.members.rules import require_owner
from controlplane.alerts.notifications import OPERATOR_ROUTE
from controlplane.alerts.operations import messages
from controlplane.devices.locations.operations import device_names
from controlplane.operation.audit_entries import Event, Subject, actor_of
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import not_found
from controlplane.operation.paging import Order, listing_of, page
from controlplane.operation.records import record_of
from controlplane.storage.monitoring_tables import Alert, AlertRoute, Notification, NotifiedAlert

TEXTS_MAX: Final = 20
"""Maximum number of alerts that an entry of the delivery log names."""


def alerts(context: RequestContext, body: messages.AlertsRequest) -> messages.AlertsReply:
    """Return a page of the alerts at the locations that the caller may see, newest first."""
    query = select(Alert).where(context.visible(Alert))
    if body.id is not None:
        query = query.where(Alert.id == body.id)
    if body.open is not None:
        is_open = Alert.resolved_at.is_(None)
        query = query.where(is_open if body.open else ~is_open)
    if body.location is not None:
        query = query.where(Alert.location_id == body.location)
    rows, next_cursor = page(
        context,
        query,
        Order(Alert.position, is_descending=True),
        listing_of(context, "alerts", body),
        cursor=body.cursor,
        limit=body.size or messages.PAGE_DEFAULT,
    )
    return messages.AlertsReply(
        alerts=_records(context, rows), next_cursor=next_cursor, can_write=context.caller.can_write
    )


def acknowledge(context: RequestContext, body: messages.AcknowledgeRequest) -> messages.AlertRecord:
    """Acknowledge an alert. A repeated call changes nothing."""
    query = select(Alert).where(Alert.id == body.alert_id).with_for_update()
    row = context.session.scalars(query).first()
    if row is None:
        raise not_found("alert")
    context.require_access(row.organization_id, row.location_id, "alert")
    if row.acknowledged_at is None:
        row.acknowledged_at = context.now
        row.acknowledged_by = actor_of(context.session, context.caller).name
        detail = f"{row.condition} at {row.location_id} {row.instance}".strip()
        context.note(Event("alert.acknowledge", Subject("alert", str(row.id)), detail))
    return _records(context, [row])[0]


def deliveries(
    context: RequestContext, body: messages.DeliveriesRequest
) -> messages.DeliveriesReply:
    """Return a page of the notifications of the organization, newest first."""
    require_owner(context)
    rows, next_cursor = page(
        context,
        select(Notification).where(Notification.organization_id == context.organization_id),
        Order(Notification.position, is_descending=True),
        listing_of(context, "deliveries", body),
        cursor=body.cursor,
        limit=body.size or messages.PAGE_DEFAULT,
    )
    texts = _texts(context, [row.id for row in rows])
    query = select(AlertRoute).where(AlertRoute.organization_id == context.organization_id)
    names = {row.id: row.name for row in context.session.scalars(query)}
    names[OPERATOR_ROUTE] = "operator"
    return messages.DeliveriesReply(
        deliveries=tuple(
            record_of(
                messages.DeliveryRecord,
                row,
                route=names.get(row.route, row.route),
                texts=tuple(texts[row.id][:TEXTS_MAX]),
            )
            for row in rows
        ),
        next_cursor=next_cursor,
    )


def _records(context: RequestContext, rows: Sequence[Alert]) -> tuple[messages.AlertRecord, ...]:
    names = device_names(context, (UUID(row.instance) for row in rows if row.instance))
    return tuple(
        record_of(
            messages.AlertRecord,
            row,
            instance_id=UUID(row.instance) if row.instance else None,
            name=names.get(row.instance, row.instance or row.location_id),
            rule=row.condition,
            flapping=row.is_flapping,
            silenced=row.is_muted,
        )
        for row in rows
    )


def _texts(context: RequestContext, notifications: Iterable[str]) -> dict[str, list[str]]:
    """Return the texts of the alerts of notifications, by the id of the notification."""
    results: defaultdict[str, list[str]] = defaultdict(list)
    query = select(NotifiedAlert).where(NotifiedAlert.notification.in_(notifications))
    for row in context.session.scalars(query.order_by(NotifiedAlert.position)):
        results[row.notification].append(json.loads(row.body)["text"])
    return results
