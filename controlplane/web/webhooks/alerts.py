"""The outbox of alert notifications.

The notifications of an alert are sent in order. A notification is sent again until the webhook
accepts it, for up to three days. If the webhook has a secret, each notification is signed.
The headers and the signature follow Standard Webhooks (standardwebhooks.com, specification 1.0.0).
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session, aliased

from controlplane.settings import Settings
from controlplane.storage.monitoring_tables import Alert, AlertNotification, AlertWebhook
from controlplane.web.observability.metrics import Metrics, TrackerResult
from controlplane.web.webhooks.sending import BATCH, Claim, backoff_s

TRIED_FOR: Final = timedelta(days=3)
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - a prefix
SECRET_BYTES: Final = range(24, 65)


@dataclass(frozen=True, slots=True)
class AlertOutbox:
    """The notifications for the operator's webhook, or for the webhooks of organizations.

    Attributes:
        is_of_organizations: whether it has the notifications of organizations with their own
            webhook. Otherwise it has all other notifications.
    """

    settings: Settings
    is_of_organizations: bool = False

    @property
    def name(self) -> str:
        return "organization's webhook" if self.is_of_organizations else "webhook"

    def has_due(self, session: Session, now: datetime) -> bool:
        """Return whether a notification may be due."""
        due = select(AlertNotification.id).where(AlertNotification.due_at <= now).limit(1)
        return session.scalars(due).first() is not None

    def claim(self, session: Session, now: datetime) -> Sequence[Claim]:
        firing = aliased(AlertNotification)
        is_too_early = exists().where(
            AlertNotification.is_resolved,
            firing.alert_id == AlertNotification.alert_id,
            ~firing.is_resolved,
            firing.status == "pending",
        )
        own = AlertWebhook.organization_id
        due = (
            select(AlertNotification, AlertWebhook)
            .join(Alert, Alert.id == AlertNotification.alert_id)
            .outerjoin(AlertWebhook, own == Alert.organization_id)
            .where(AlertNotification.due_at <= now, ~is_too_early)
        )
        if self.is_of_organizations:
            # One notification of each organization: a slow webhook delays no other organization.
            oldest = due.where(own.is_not(None)).with_only_columns(
                func.min(AlertNotification.position)
            )
            positions = session.scalars(oldest.group_by(own).order_by(func.random()).limit(BATCH))
            due = due.where(AlertNotification.position.in_(positions.all()))
        query = (
            due.where(own.is_not(None) if self.is_of_organizations else own.is_(None))
            .order_by(AlertNotification.due_at, AlertNotification.position)
            .limit(BATCH)
            .with_for_update(of=AlertNotification, skip_locked=True)
        )
        return [self._claim(row, webhook, now) for row, webhook in session.execute(query).all()]

    def conclude(self, session: Session, claim: Claim, now: datetime, *, is_sent: bool) -> str:
        query = select(AlertNotification).where(AlertNotification.id == claim.id).with_for_update()
        row = session.scalars(query).one()
        if row.status != "pending":
            return row.status
        row.updated_at = now
        if is_sent or now - row.created_at > TRIED_FOR:
            row.status, row.due_at = "sent" if is_sent else "failed", None
        else:
            row.due_at = now + timedelta(seconds=backoff_s(claim.attempt))
        return row.status

    def count(self, metrics: Metrics, result: TrackerResult) -> None:
        """Do nothing: there is no metric for notifications."""

    def _claim(self, row: AlertNotification, webhook: AlertWebhook | None, now: datetime) -> Claim:
        url, secret = self.settings.notify_url or "", self.settings.notify_secret
        if webhook is not None:
            url, secret = webhook.url, read_secret(webhook.secret)
        row.attempts += 1
        wait_s = self.settings.tracker_timeout_s + backoff_s(row.attempts)
        row.due_at = now + timedelta(seconds=wait_s)
        row.updated_at = now
        content = row.body.encode()
        headers = {"webhook-id": row.id, "webhook-timestamp": str(int(now.timestamp()))}
        if secret is not None:
            headers["webhook-signature"] = signature(
                secret, row.id, headers["webhook-timestamp"], content
            )
        return Claim(row.id, row.alert_id, url, row.attempts, content, headers)


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
        raise ValueError("it must be whsec_ followed by Base64") from error
    if len(secret) not in SECRET_BYTES:
        raise ValueError("a secret has 24 to 64 bytes")
    return secret
