"""Operations with which owners set the routes of notifications, and test them.

The alert webhook of an organization is a route too, but has operations of its own.
"""

import base64
import json
import re
import secrets
import uuid
from ipaddress import IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

from sqlalchemy import func, select, update

from agent.wire.device_operations import EmptyRequest
from controlplane.accounts.members.rules import require_owner
from controlplane.accounts.names import require_known
from controlplane.accounts.users import require_email
from controlplane.alerts.messages import json_time
from controlplane.alerts.notifications import is_grouped, new_notification, split_groups
from controlplane.alerts.operations import messages
from controlplane.operation.audit_entries import Event, Operation, Subject
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import conflict, invalid_field, not_found
from controlplane.operation.records import record_of
from controlplane.storage.monitoring_tables import AlertRoute, Notification, NotifiedAlert

ROUTES_MAX: Final = 20
ADDRESSES_MAX: Final = 10
SECRET_BYTES: Final = 32
WEBHOOK: Final = "webhook"
"""The id of the route that the operations for the alert webhook change."""
HOST_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})+")
IPV6_UNICAST: Final = IPv6Network("2000::/3")
"""Global unicast addresses (RFC 4291, section 2.4). A translator may map other IPv6 addresses, such
as those in 64:ff9b::/96 (RFC 6052), to private IPv4 addresses."""
ROUTING_KEY: Final = re.compile(r"(eu:)?[A-Za-z0-9]{32}")
"""A routing key of PagerDuty. The prefix selects the service region EU."""


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
    if row.id == WEBHOOK and body.kind != "webhook":
        raise invalid_field("kind", "must be webhook, because this route is the alert webhook")
    secret = None
    if body.kind != row.kind or body.target is not None:
        target = _target(context, body)
        secret = _new_secret() if body.kind == "webhook" else None
        row.target, row.secret = target, secret or ""
    if body.digest and body.kind != "email":
        raise invalid_field("digest", "must be false: only e-mail routes can send a digest")
    if body.group_minutes and body.kind == "pagerduty":
        raise invalid_field("groupMinutes", "must be 0: PagerDuty groups alerts itself")
    was_grouped = is_grouped(row)
    row.name, row.kind, row.is_digest = body.name, body.kind, body.digest
    row.severities, row.locations = list(body.severities), list(body.locations)
    row.group_minutes, row.is_enabled = body.group_minutes, body.enabled
    context.session.add(row)
    if was_grouped and not is_grouped(row):
        split_groups(context.session, context.organization_id, row.id, context.now)
    if not body.enabled:
        _fail_notifications(context, row.id)
    _note(context, "alert_route.set", row)
    return messages.RouteReply(route=_record(row), secret=secret)


def remove_route(context: RequestContext, body: messages.RouteIdRequest) -> messages.RemoveReply:
    """Remove a route. Its undelivered notifications are not sent any more."""
    require_owner(context)
    row = _route(context, body.route_id)
    _note(context, "alert_route.remove", row)
    context.session.delete(row)
    _fail_notifications(context, row.id)
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
    # The test has a notification of its own, even if the route groups alerts, so it is sent now.
    notification = new_notification(
        context.organization_id, row.id, f"test {alert_id}", context.now, context.now
    )
    notified_alert = NotifiedAlert(
        notification=notification.id,
        route=row.id,
        alert_id=alert_id,
        is_resolved=False,
        body=json.dumps(content),
    )
    context.session.add_all((notification, notified_alert))
    _note(context, "alert_route.test", row)
    return messages.RouteTestReply(notification_id=notification.id)


def alert_webhook(context: RequestContext, _body: EmptyRequest) -> messages.AlertWebhookReply:
    """Return the host of the organization's webhook. The other parts of the address are secret."""
    require_owner(context)
    row = context.session.get(AlertRoute, (context.organization_id, WEBHOOK))
    return messages.AlertWebhookReply(host=None if row is None else urlsplit(row.target).hostname)


def set_alert_webhook(
    context: RequestContext, body: messages.AlertWebhookRequest
) -> messages.NewAlertWebhookReply:
    """Set the webhook for the alerts of the organization, and create its secret."""
    require_owner(context)
    try:
        host = _host_of(body.url)
    except ValueError as error:
        raise invalid_field("url", str(error)) from None
    secret = _new_secret()
    organization_id = context.organization_id
    context.session.merge(
        AlertRoute(
            organization_id=organization_id,
            id=WEBHOOK,
            name="Webhook",
            kind="webhook",
            target=body.url,
            secret=secret,
            severities=[],
            locations=[],
            group_minutes=0,
            is_digest=False,
            is_enabled=True,
        )
    )
    context.note(Event("alert_webhook.set", Subject("organization", organization_id), host))
    return messages.NewAlertWebhookReply(host=host, secret=secret)


def remove_alert_webhook(
    context: RequestContext, _body: EmptyRequest
) -> messages.AlertWebhookReply:
    """Remove the webhook of the organization. Undelivered notifications are not sent any more."""
    require_owner(context)
    organization_id = context.organization_id
    row = context.session.get(AlertRoute, (organization_id, WEBHOOK))
    if row is not None:
        context.session.delete(row)
        _fail_notifications(context, WEBHOOK)
        subject = Subject("organization", organization_id)
        context.note(Event("alert_webhook.remove", subject, urlsplit(row.target).hostname or ""))
    return messages.AlertWebhookReply(host=None)


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
        _host_of(target)  # raises ValueError if the target is not the address of a webhook
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


def _fail_notifications(context: RequestContext, route: str) -> None:
    """Mark the undelivered notifications of a removed or disabled route as failed."""
    context.session.execute(
        update(Notification)
        .where(
            Notification.organization_id == context.organization_id,
            Notification.route == route,
            Notification.due_at.is_not(None),
        )
        .values(
            status="failed",
            due_at=None,
            updated_at=context.now,
            error="the route was removed or disabled",
        )
    )


def _new_secret() -> str:
    """Return a new secret in the form that `web.webhooks.alerts.read_secret` reads."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()}"


def _host_of(url: str) -> str:
    """Return the host of a webhook's address.

    Raises ValueError, with a text for users, if the address is invalid or clearly not public.
    """
    try:
        parts = urlsplit(url)
        host, has_valid_port = parts.hostname or "", parts.port != 0
    except ValueError:
        host, has_valid_port = "", False
    is_https = bool(host) and parts.scheme == "https"
    if not (has_valid_port and is_https and url.isascii() and url.isprintable()):
        raise ValueError("must be an address like https://hooks.example.com/alerts")
    if " " in url or parts.username is not None:
        raise ValueError("must not have spaces or a user name")
    try:
        has_public_host = is_public(host)
    except ValueError:
        is_name = HOST_NAME.fullmatch(host) is not None
        has_public_host = is_name and not host.endswith((".localhost", ".local"))
    if not has_public_host:
        raise ValueError("must be an address of the public internet")
    return host


def is_public(text: str) -> bool:
    """Return whether an IP address belongs to the public internet.

    Raises ValueError if the text is not an IP address.
    """
    address = ip_address(text)
    if address.version == 6 and (address not in IPV6_UNICAST or address.sixtofour is not None):
        return False
    return address.is_global and not address.is_multicast
