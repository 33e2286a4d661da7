"""Sends what is due to a webhook, a bounded number of times.

What is sent is claimed first: the attempt is counted and its next turn fixed in one transaction. So
neither a crash nor a second process on the same database sends without end. What is to be sent, and
where that is kept, is an outbox's own.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

import httpx2
from sqlalchemy.orm import Session

from agent.wire.addresses import is_loopback_url
from controlplane.web.core import Core
from controlplane.web.observability.metrics import Metrics, TrackerResult

log = logging.getLogger("controlplane.web.webhooks.sending")
BATCH = 8
BACKOFF_FIRST_S = 5
BACKOFF_MAX_S = 600


@dataclass(frozen=True, slots=True)
class Claim:
    """One attempt to send. ``id`` is the same at each one, and goes out as ``Idempotency-Key``;
    ``key`` is by what the outbox knows it."""

    id: str
    key: UUID
    attempt: int
    content: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Outbox(Protocol):
    """Where it is kept what a webhook has to be sent."""

    @property
    def name(self) -> str: ...

    @property
    def url(self) -> str: ...

    def claim(self, session: Session, now: datetime) -> Sequence[Claim]:
        """Return what is due, at most ``BATCH``, each attempt counted."""

    def conclude(self, session: Session, claim: Claim, now: datetime, *, is_sent: bool) -> str:
        """Write down how the attempt ended. Returns the status from now on."""

    def count(self, metrics: Metrics, result: TrackerResult) -> None:
        """Count the attempt, where that is measured."""


@asynccontextmanager
async def webhook_client(url: str, timeout_s: float) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(
        timeout=timeout_s,
        follow_redirects=False,
        # The environment's proxy could not reach this machine's own loopback.
        trust_env=not is_loopback_url(url),
    ) as client:
        yield client


async def send_due(core: Core, client: httpx2.AsyncClient, outbox: Outbox) -> int:
    """Send what is due, at most ``BATCH``. Returns how many were tried."""
    now = core.clock()
    claims = await core.write(lambda session: outbox.claim(session, now))
    async with asyncio.TaskGroup() as tasks:
        for claim in claims:
            tasks.create_task(_send(core, client, outbox, claim))
    return len(claims)


def backoff_s(attempt: int) -> float:
    """Return the wait after the ``attempt``-th failure: 5, 10, 20 s and so on to 10 minutes."""
    return float(min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2 ** min(attempt - 1, 20)))


async def _send(core: Core, client: httpx2.AsyncClient, outbox: Outbox, claim: Claim) -> None:
    reason = await _post(outbox, client, claim)
    now = core.clock()
    status = await core.write(
        lambda session: outbox.conclude(session, claim, now, is_sent=not reason)
    )
    outbox.count(core.metrics, "retried" if status == "pending" else "failed" if reason else "sent")
    log.log(
        logging.WARNING if reason else logging.INFO,
        "%s event=%s attempt=%d status=%s %s",
        outbox.name,
        claim.id,
        claim.attempt,
        status,
        reason,
    )


async def _post(outbox: Outbox, client: httpx2.AsyncClient, claim: Claim) -> str:
    """Return why it failed, or nothing. The answer's body is not read: nobody bounds it."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": claim.id, **claim.headers}
    try:
        async with client.stream(
            "POST", outbox.url, content=claim.content, headers=headers
        ) as response:
            if response.is_success:
                return ""
            return f"the {outbox.name} answered {response.status_code}"
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return f"{type(error).__name__}: {error}"
