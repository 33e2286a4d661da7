"""The states of a request, as a table.

        createRequest
             │
           queued ──received──▶ received ──running──▶ running
             │                      │                    │
             └──────────────────────┴─── result ─────────┴──▶ completed | partial | failed
             └──────────────────────┴─── expire, revoke ─┴──▶ expired ── result ──▲

Rules:

1. An acknowledgement never moves a request backwards. A repeated or late acknowledgement is
   accepted and changes nothing, so that a device can repeat it if the reply was lost.
2. A result is accepted in every state that has no result yet. No acknowledgement is needed before
   it, because acknowledgements can be lost. A result is also accepted in ``expired``, because its
   report exists and must not be lost.
3. ``completed``, ``partial`` and ``failed`` never change.
4. A request expires if it is not finished at its ``expiresAt``, or if its binding ends. An expired
   request cannot be acknowledged: the device should not start it.
5. A transition that is not in the table is refused.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

from agent.wire.vocabulary import AcknowledgedStatus, Outcome, RequestStatus

Event = Literal[
    "acknowledge:received",
    "acknowledge:running",
    "result:completed",
    "result:partial",
    "result:failed",
    "expire",
    "revoke",
]

INITIAL: Final[RequestStatus] = "queued"
FINISHED: Final[frozenset[RequestStatus]] = frozenset({"completed", "partial", "failed"})
OPEN: Final[frozenset[RequestStatus]] = frozenset({"queued", "received", "running"})
NOT_STARTED: Final[frozenset[RequestStatus]] = frozenset({"queued", "received"})
"""The states in which a request is sent to the device, because the device has not started it."""

_ENDS: Final[Mapping[Event, RequestStatus]] = {
    "result:completed": "completed",
    "result:partial": "partial",
    "result:failed": "failed",
    "expire": "expired",
    "revoke": "expired",
}
TRANSITIONS: Final[Mapping[RequestStatus, Mapping[Event, RequestStatus]]] = {
    "queued": {"acknowledge:received": "received", "acknowledge:running": "running", **_ENDS},
    "received": {"acknowledge:received": "received", "acknowledge:running": "running", **_ENDS},
    "running": {"acknowledge:received": "running", "acknowledge:running": "running", **_ENDS},
    "expired": _ENDS,
    "completed": {},
    "partial": {},
    "failed": {},
}


class TransitionRefusedError(Exception):
    """The table does not contain the transition."""

    def __init__(self, status: RequestStatus, event: Event) -> None:
        super().__init__(f"{event} is not possible for a request that is {status}")
        self.status: RequestStatus = status
        self.event: Event = event


def move(status: RequestStatus, event: Event) -> RequestStatus:
    """Return the status after ``event``, or raise ``TransitionRefusedError``."""
    try:
        return TRANSITIONS[status][event]
    except KeyError:
        raise TransitionRefusedError(status, event) from None


def acknowledgement_event(status: AcknowledgedStatus) -> Event:
    return "acknowledge:received" if status == "received" else "acknowledge:running"


def result_event(outcome: Outcome) -> Event:
    if outcome == "completed":
        return "result:completed"
    return "result:partial" if outcome == "partial" else "result:failed"


def is_due(status: RequestStatus, expires_at: datetime, now: datetime) -> bool:
    """Return whether the request is open and past its expiry."""
    return status in OPEN and now >= expires_at
