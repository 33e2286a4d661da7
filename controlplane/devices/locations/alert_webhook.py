"""The webhook of an organization: the operations that set it, and the checks of its address."""

import base64
import re
import secrets
from datetime import datetime
from functools import partial
from ipaddress import IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

from sqlalchemy import update
from sqlalchemy.orm import Session

from controlplane.accounts.members.rules import require_owner
from controlplane.accounts.messages import EmptyRequest
from controlplane.devices.locations import messages
from controlplane.operation.audit_entries import Event, Subject
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import invalid_field
from controlplane.operation.operation import Procedure, procedure
from controlplane.storage.monitoring_tables import AlertRoute, Notification

PREFIX: Final = "/console/api/alert-webhook"
SECRET_BYTES: Final = 32
WEBHOOK: Final = "webhook"
"""The id of the route that these operations change."""
HOST_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})+")
IPV6_UNICAST: Final = IPv6Network("2000::/3")
"""Global unicast addresses (RFC 4291, section 2.4). A translator may map other IPv6 addresses, such
as those in 64:ff9b::/96 (RFC 6052), to private IPv4 addresses."""


def alert_webhook_operations() -> tuple[Procedure, ...]:
    write = partial(procedure, writes=True, requires_session=True)
    return (
        procedure(PREFIX, alert_webhook, requires_session=True),
        write(f"{PREFIX}/set", set_alert_webhook),
        write(f"{PREFIX}/remove", remove_alert_webhook),
    )


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
        host = host_of(body.url)
    except ValueError as error:
        raise invalid_field("url", str(error)) from None
    secret = new_secret()
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
    session, organization_id = context.session, context.organization_id
    row = session.get(AlertRoute, (organization_id, WEBHOOK))
    if row is not None:
        session.delete(row)
        fail_notifications(session, organization_id, WEBHOOK, context.now)
        subject = Subject("organization", organization_id)
        context.note(Event("alert_webhook.remove", subject, urlsplit(row.target).hostname or ""))
    return messages.AlertWebhookReply(host=None)


def fail_notifications(session: Session, organization_id: str, route: str, now: datetime) -> None:
    """Mark the undelivered notifications of a removed or disabled route as failed."""
    session.execute(
        update(Notification)
        .where(
            Notification.organization_id == organization_id,
            Notification.route == route,
            Notification.due_at.is_not(None),
        )
        .values(
            status="failed", due_at=None, updated_at=now, error="the route was removed or disabled"
        )
    )


def new_secret() -> str:
    """Return a new secret in the form that `web.webhooks.alerts.read_secret` reads."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()}"


def host_of(url: str) -> str:
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
