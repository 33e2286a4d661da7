"""Sends due messages to webhooks or by e-mail, with limited attempts for each message.

Before a message is sent, a transaction counts the attempt and sets the time of the next attempt.
Therefore neither a crash nor a second process on the same database can cause attempts beyond the
limit. An outbox defines the messages and where they are stored.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from typing import Final, Protocol
from uuid import UUID

import httpx2
from sqlalchemy.orm import Session

from agent.wire.addresses import is_loopback_url
from controlplane.web.core import Core
from controlplane.web.observability.metrics import Metrics, TrackerResult
from controlplane.web.webhooks.mail import send_mail

log = logging.getLogger("controlplane.web.webhooks.sending")
BATCH = 8
"""Maximum number of messages that are sent at the same time."""
BACKOFF_FIRST_S = 5
BACKOFF_MAX_S = 600
RETRY_AFTER_MAX_S: Final = 3600
"""Longest wait that a receiver can request with ``Retry-After``. It delays only messages for this
receiver."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One attempt to send a message.

    Attributes:
        id: id of the message, the same in each attempt. It is sent as ``Idempotency-Key``.
        key: primary key of the row in which the outbox stores the message.
        url: where the POST is sent. Empty for an e-mail.
        attempt: number of the attempt, from 1.
        content: body of the POST.
        headers: headers of the POST, in addition to ``Content-Type`` and ``Idempotency-Key``.
        mail: the e-mail to send instead of a POST.
    """

    id: str
    key: UUID | str
    url: str
    attempt: int
    content: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    mail: EmailMessage | None = None


class Outbox(Protocol):
    """The messages for one webhook, or for the routes of all organizations."""

    @property
    def name(self) -> str:
        """The name of the receiver in errors and in the log."""

    def claim(self, session: Session, now: datetime) -> Sequence[Claim]:
        """Return at most ``BATCH`` due messages, and count the attempts."""

    def conclude(
        self, session: Session, claim: Claim, now: datetime, *, reason: str, wait_s: float = 0
    ) -> str:
        """Store the result of an attempt. Return the new status of the message.

        Args:
            reason: why the attempt failed, or "" after success.
            wait_s: seconds to wait before the next message to this receiver, as it has requested.
        """

    def count(self, metrics: Metrics, result: TrackerResult) -> None:
        """Count the attempt in the metrics, if this outbox has a metric."""


def webhook_client(url: str, timeout_s: float) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        timeout=timeout_s,
        follow_redirects=False,
        # A proxy from the environment could not reach a loopback address of this machine.
        trust_env=not is_loopback_url(url),
    )


async def send_due(core: Core, client: httpx2.AsyncClient, outbox: Outbox) -> int:
    """Send at most ``BATCH`` due messages. Return the number of attempts."""
    now = core.clock()
    claims = await core.write(lambda session: outbox.claim(session, now))
    async with asyncio.TaskGroup() as tasks:
        for claim in claims:
            tasks.create_task(_send(core, client, outbox, claim))
    return len(claims)


def backoff_s(attempt: int) -> float:
    """Return the wait after the ``attempt``-th failure: 5, 10, 20 s and so on to 10 minutes."""
    # ``attempt`` can be large: some outboxes limit attempts by time, not by number.
    exponent = min(attempt - 1, 20)
    return float(min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2**exponent))


async def _send(core: Core, client: httpx2.AsyncClient, outbox: Outbox, claim: Claim) -> None:
    wait_s = 0.0
    try:
        if claim.mail is not None:
            reason = await asyncio.to_thread(send_mail, core.settings, claim.mail)
        else:
            async with asyncio.timeout(core.settings.delivery_timeout_s):
                reason, wait_s = await _post(outbox, client, claim)
    except TimeoutError:
        reason = f"the {outbox.name} did not answer in time"
    now = core.clock()
    status = await core.write(
        lambda session: outbox.conclude(session, claim, now, reason=reason, wait_s=wait_s)
    )
    result: TrackerResult = "failed" if reason else "sent"
    outbox.count(core.metrics, "retried" if status == "pending" else result)
    log.log(
        logging.WARNING if reason else logging.INFO,
        "%s event=%s attempt=%d status=%s %s",
        outbox.name,
        claim.id,
        claim.attempt,
        status,
        reason,
    )


async def _post(outbox: Outbox, client: httpx2.AsyncClient, claim: Claim) -> tuple[str, float]:
    """Return the reason of a failure, or "" after success, and the wait that the reply requests.

    The body of the reply is not read, because it may have any size.
    """
    headers = {"Content-Type": "application/json", "Idempotency-Key": claim.id, **claim.headers}
    try:
        async with client.stream(
            "POST", claim.url, content=claim.content, headers=headers
        ) as response:
            if response.is_success:
                return "", 0
            reason = f"the {outbox.name} answered {response.status_code}"
            return reason, _requested_wait_s(response.headers.get("Retry-After", ""))
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return f"{type(error).__name__}: {error}", 0


def _requested_wait_s(retry_after: str) -> float:
    """Return the seconds of a ``Retry-After``, or 0 for a date, which no known receiver sends."""
    is_number = retry_after.isascii() and retry_after.isdecimal()
    return min(float(retry_after), RETRY_AFTER_MAX_S) if is_number else 0
