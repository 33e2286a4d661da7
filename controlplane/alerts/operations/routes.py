"""Operations with which owners set the routes of notifications, and test them."""

import json
import re
import uuid
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from sqlalchemy import func, select

from controlplane.accounts.members.rules import require_owner
from controlplane.accounts.messages import EmptyRequest
from controlplane.accounts.names import require_known
from controlplane.accounts.users import require_email
from controlplane.alerts.messages import json_time
from controlplane.alerts.notifications import Route, add_alert, split_groups
from controlplane.alerts.operations import messages
from controlplane.alerts.operations.alerts import PREFIX as ALERTS
from controlplane.devices.locations.alert_webhook import fail_notifications, host_of, new_secret
from controlplane.operation.audit_entries import Event, Operation, Subject
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import conflict, invalid_field, not_found
from controlplane.operation.operation import Procedure, procedure
from controlplane.operation.records import record_of
from controlplane.storage.monitoring_tables import AlertRoute, NotifiedAlert

PREFIX: Final = f"{ALERTS}/routes"
ROUTES_MAX: Final = 20
ADDRESSES_MAX: Final = 10
ROUTING_KEY: Final = re.compile(r"(eu:)?[A-Za-z0-9]{32}")
"""A routing key of PagerDuty. The prefix selects the service region EU."""


def route_operations() -> tuple[Procedure, ...]:
    writing = partial(procedure, writes=True, requires_session=True)
    return (
        procedure(PREFIX, routes, requires_session=True),
        writing(f"{PREFIX}/set", set_route),
        writing(f"{PREFIX}/remove", remove_route),
        writing(f"{PREFIX}/test", test_route),
    )


def routes(context: RequestContext, _body: EmptyRequest) -> messages.RoutesReply:
    """Return the routes of the organization, ordered by name."""
    require_owner(context)
    query = select(AlertRoute).where(AlertRoute.organization_id == context.organization_id)
    rows = context.session.scalars(query.order_by(AlertRoute.name, AlertRoute.id))
    return messages.RoutesReply(
        routes=tuple(map(_record, rows)), has_mail=context.settings.smtp is not None
    )


def set_route(context: RequestContext, body: messages.RouteRequest) -> messages.RouteReply:
    """Add or change a route. If ``body`` has a target for a webhook, create a new secret."""
    require_owner(context)
    require_known(context, body.locations)
    row = _new_route(context) if body.id is None else _route(context, body.id)
    secret = None
    if body.kind != row.kind or body.target is not None:
        target = _target(context, body)
        secret = new_secret() if body.kind == "webhook" else None
        row.target, row.secret = target, secret or ""
    if body.digest and body.kind != "email":
        raise invalid_field("digest", "must be false: only e-mail routes can send a digest")
    if body.group_minutes and body.kind == "pagerduty":
        raise invalid_field("groupMinutes", "must be 0: PagerDuty groups alerts itself")
    was_grouped = row.is_digest or bool(row.group_minutes)
    row.name, row.kind, row.is_digest = body.name, body.kind, body.digest
    row.severities, row.locations = list(body.severities), list(body.locations)
    row.group_minutes, row.is_enabled = body.group_minutes, body.enabled
    context.session.add(row)
    if was_grouped and not (body.digest or body.group_minutes):
        split_groups(context.session, context.organization_id, row.id, context.now)
    if not body.enabled:
        fail_notifications(context.session, context.organization_id, row.id, context.now)
    _note(context, "alert_route.set", row)
    return messages.RouteReply(route=_record(row), secret=secret)


def remove_route(context: RequestContext, body: messages.RouteIdRequest) -> messages.RemoveReply:
    """Remove a route. Its undelivered notifications are not sent any more."""
    require_owner(context)
    row = _route(context, body.route_id)
    _note(context, "alert_route.remove", row)
    context.session.delete(row)
    fail_notifications(context.session, context.organization_id, row.id, context.now)
    return messages.RemoveReply(removed=True)


def test_route(context: RequestContext, body: messages.RouteIdRequest) -> messages.RouteTestReply:
    """Queue a test notification for a route. The delivery log shows the result."""
    require_owner(context)
    row = _route(context, body.route_id)
    if not row.is_enabled:
        raise conflict("route_disabled", "the route is disabled: enable it first")
    alert_id = uuid.uuid4()
    origin = context.settings.origin
    content = {
        "type": "alert.test",
        "text": f"This is a test of the route {row.name}.",
        "alertId": str(alert_id),
        "organizationId": context.organization_id,
        "locationId": "",
        "instanceId": None,
        "name": row.name,
        "condition": "test",
        "argument": "",
        "severity": "info",
        "flapping": False,
        "since": json_time(context.now),
        "until": None,
        "detail": "",
        "url": None if origin is None else f"{origin}/#/alerts",
    }
    notified = NotifiedAlert(alert_id=alert_id, is_resolved=False, body=json.dumps(content))
    route = Route(row.id)  # no group interval, so that the test is sent now
    add_alert(
        context.session, context.organization_id, route, f"test {alert_id}", notified,
        now=context.now,
    )  # fmt: skip
    _note(context, "alert_route.test", row)
    return messages.RouteTestReply(notification_id=notified.notification)


def _new_route(context: RequestContext) -> AlertRoute:
    query = select(func.count()).where(AlertRoute.organization_id == context.organization_id)
    if (context.session.scalar(query) or 0) >= ROUTES_MAX:
        raise conflict(
            "too_many_routes",
            f"an organization can have at most {ROUTES_MAX} routes. Remove one first",
        )
    return AlertRoute(
        organization_id=context.organization_id, id=str(uuid.uuid4()), kind="", secret=""
    )


def _route(context: RequestContext, route_id: str) -> AlertRoute:
    row = context.session.get(AlertRoute, (context.organization_id, route_id))
    if row is None:
        raise not_found("route")
    return row


def _target(context: RequestContext, body: messages.RouteRequest) -> str:
    """Return the target in the form in which it is stored. Raises a refusal if it is invalid."""
    target = body.target or ""
    try:
        if body.kind == "email":
            return _addresses(context, target)
        if body.kind == "pagerduty":
            if not ROUTING_KEY.fullmatch(target):
                raise ValueError(
                    "must be a routing key, which has 32 letters and digits; "
                    "begin it with eu: for the region EU"
                )
            return target
        host_of(target)  # raises ValueError if the target is not the address of a webhook
    except ValueError as error:
        raise invalid_field("target", str(error)) from None
    return target


def _addresses(context: RequestContext, target: str) -> str:
    if context.settings.smtp is None:
        raise ValueError("the service has no SMTP server, so it cannot send e-mail")
    addresses = [require_email(each) for each in target.split(",")]
    if len(addresses) > ADDRESSES_MAX:
        raise ValueError(f"must have at most {ADDRESSES_MAX} addresses")
    return ",".join(addresses)


def _receiver(row: AlertRoute) -> str:
    """Return the part of a target that may be displayed. The other parts are secret."""
    if row.kind == "email":
        return row.target.replace(",", ", ")
    return f"…{row.target[-4:]}" if row.kind == "pagerduty" else urlsplit(row.target).hostname or ""


def _note(context: RequestContext, operation: Operation, row: AlertRoute) -> None:
    state = "" if row.is_enabled else " (disabled)"
    subject = Subject("alert_route", row.id, row.name)
    context.note(Event(operation, subject, f"{row.kind} {_receiver(row)}{state}"))


def _record(row: AlertRoute) -> messages.RouteRecord:
    return record_of(
        messages.RouteRecord,
        row,
        receiver=_receiver(row),
        severities=tuple(row.severities),
        locations=tuple(row.locations),
        digest=row.is_digest,
        enabled=row.is_enabled,
    )
