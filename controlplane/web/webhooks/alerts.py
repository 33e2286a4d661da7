"""The outbox of alert notifications.

The notifications of a group are sent in order. A notification is sent again until its receiver
accepts it, for up to three days. Notifications for a webhook with a secret are signed: the headers
and the signature follow Standard Webhooks (standardwebhooks.com, specification 1.0.0).
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from sqlalchemy import exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from controlplane.alerts.notifications import OPERATOR_ROUTE, bodies_of
from controlplane.settings import Settings
from controlplane.storage.monitoring_tables import AlertRoute, Notification
from controlplane.web.observability.metrics import Metrics, TrackerResult
from controlplane.web.webhooks.bodies import body_for, url_for
from controlplane.web.webhooks.mail import REPLY_TIMEOUT_S, mail_of
from controlplane.web.webhooks.sending import BATCH, Claim, backoff_s

RETRY_PERIOD: Final = timedelta(days=3)
ERROR_MAX: Final = 300
"""Maximum length of the error that is stored with a notification."""
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - a prefix
SECRET_BYTES: Final = range(24, 65)
"""The permitted sizes of a secret (Standard Webhooks)."""
Receivers = Literal["operator", "webhooks", "mail"]
"""The operator's webhook, or the routes of all organizations to webhooks or to e-mail addresses."""


@dataclass(frozen=True, slots=True)
class AlertOutbox:
    """The notifications for some of the receivers.

    E-mails have an outbox of their own, because an SMTP server can take a minute for each one. They
    must not delay notifications for webhooks.
    """

    settings: Settings
    receivers: Receivers = "operator"

    @property
    def name(self) -> str:
        return "webhook" if self.receivers == "operator" else "organization's route"

    def has_due(self, session: Session, now: datetime) -> bool:
        """Return whether the due time of any notification has passed.

        The notification may belong to another outbox, or wait for an earlier one of its group.
        """
        due = select(Notification.id).where(Notification.due_at <= now).limit(1)
        return session.scalars(due).first() is not None

    def claim(self, session: Session, now: datetime) -> Sequence[Claim]:
        earlier = aliased(Notification)
        has_pending_predecessor = exists().where(
            earlier.organization_id == Notification.organization_id,
            earlier.route == Notification.route,
            earlier.group_key == Notification.group_key,
            earlier.position < Notification.position,
            earlier.status == "pending",
        )
        is_route = (AlertRoute.organization_id == Notification.organization_id) & (
            AlertRoute.id == Notification.route
        )
        due = (
            select(Notification, AlertRoute)
            .outerjoin(AlertRoute, is_route)
            .where(Notification.due_at <= now, ~has_pending_predecessor)
        )
        if self.receivers == "operator":
            due = due.where(Notification.route == OPERATOR_ROUTE)
        else:
            is_mail = AlertRoute.kind == "email"
            is_webhook = or_(AlertRoute.id.is_(None), ~is_mail)
            due = due.where(
                Notification.route != OPERATOR_ROUTE,
                is_mail if self.receivers == "mail" else is_webhook,
            )
            # Only one notification of each route, so that a slow receiver delays no other route.
            oldest = due.with_only_columns(func.min(Notification.position)).group_by(
                Notification.organization_id, Notification.route
            )
            positions = session.scalars(oldest.order_by(func.random()).limit(BATCH))
            due = due.where(Notification.position.in_(positions.all()))
        query = (
            due.order_by(Notification.due_at, Notification.position)
            .limit(BATCH)
            .with_for_update(of=Notification, skip_locked=True)
        )
        return [self._claim(session, row, route, now) for row, route in session.execute(query)]

    def conclude(
        self, session: Session, claim: Claim, now: datetime, *, reason: str, wait_s: float = 0
    ) -> str:
        query = select(Notification).where(Notification.id == claim.id).with_for_update()
        row = session.scalars(query).one()
        if row.status != "pending":
            return row.status
        row.updated_at, row.error = now, reason[:ERROR_MAX]
        if not reason or now - row.scheduled_at > RETRY_PERIOD:
            row.status, row.due_at = "failed" if reason else "sent", None
        else:
            row.due_at = now + timedelta(seconds=max(backoff_s(claim.attempt), wait_s))
        if wait_s:
            _postpone(session, row, now + timedelta(seconds=wait_s))
        return row.status

    def count(self, metrics: Metrics, result: TrackerResult) -> None:
        """Do nothing: there is no metric for notifications."""

    def _claim(
        self, session: Session, row: Notification, route: AlertRoute | None, now: datetime
    ) -> Claim:
        row.attempts += 1
        is_mail = route is not None and route.kind == "email"
        timeout_s = self.settings.delivery_timeout_s + (REPLY_TIMEOUT_S if is_mail else 0)
        row.due_at = now + timedelta(seconds=timeout_s + backoff_s(row.attempts))
        row.updated_at = now
        bodies = bodies_of(session, row)
        if route is not None and route.kind == "email":
            mail = mail_of(row.id, route.target, bodies, self.settings.smtp, row.scheduled_at)
            return Claim(
                id=row.id, key=row.id, url="", attempt=row.attempts, content=b"", mail=mail
            )
        kind = "webhook" if route is None else route.kind
        secret, url = self.settings.notify_secret, self.settings.notify_url or ""
        if route is not None:
            secret, url = read_secret(route.secret) if route.secret else None, route.target
        content = body_for(kind, url, bodies)
        headers = {"webhook-id": row.id, "webhook-timestamp": str(int(now.timestamp()))}
        if secret is not None:
            headers["webhook-signature"] = signature(
                secret, row.id, headers["webhook-timestamp"], content
            )
        return Claim(row.id, row.id, url_for(kind, url), row.attempts, content, headers)


def _postpone(session: Session, notification: Notification, until: datetime) -> None:
    """Send nothing to the receiver of a notification before ``until``.

    Slack limits messages for each webhook, and may disable an app that ignores the limit.
    """
    query = select(Notification).where(
        Notification.route == notification.route, Notification.due_at < until
    )
    if notification.route != OPERATOR_ROUTE:
        query = query.where(Notification.organization_id == notification.organization_id)
    # A locked row is skipped: another process is starting or concluding an attempt to send it.
    for row in session.scalars(query.with_for_update(skip_locked=True)):
        row.due_at = until


def signature(secret: bytes, message_id: str, timestamp: str, content: bytes) -> str:
    """Return ``v1,`` and the Base64 of the HMAC-SHA256 of id, time and body, joined by dots."""
    signed_bytes = b".".join((message_id.encode(), timestamp.encode(), content))
    return "v1," + base64.b64encode(hmac.digest(secret, signed_bytes, hashlib.sha256)).decode()


def read_secret(text: str) -> bytes:
    """Return the bytes of a secret that is written as ``whsec_`` and Base64.

    Raises ValueError with a text for users.
    """
    try:
        secret = base64.b64decode(text.strip().removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("the secret must be whsec_ followed by Base64") from error
    if len(secret) not in SECRET_BYTES:
        raise ValueError("the secret must have 24 to 64 bytes")
    return secret
