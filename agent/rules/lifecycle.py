"""The life of a request as a table.

Rules:
- The journal is written before the service is called. If the agent crashes before it has stored the
  result of the call, it calls the service again.
- A request ends in one of three states. SUBMITTED: the service has the report. EXPIRED: the request
  expired before it started. REJECTED: the service refused the request or its report, or the agent
  dropped the report.
- RUNNING is written before the child process starts. A clean stop returns the row to ACKNOWLEDGED,
  so a row that is RUNNING when the agent starts means that the agent crashed. The collection is
  then repeated once. If the agent crashes again, or the request has expired, the agent sends a
  failed report with ``execution-interrupted``.
- REPORTED means that the sealed report is in the outbox. The report is sent unchanged, and no facts
  are collected again for the request.
- Every state has a boot action; every transition that is not in the table is an error.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from agent.wire.vocabulary import AcknowledgedStatus, RequestStatus

MAX_ATTEMPTS: Final = 2
"""A collection that a crash of the agent interrupted is repeated once."""


class State(StrEnum):
    """The state of a request."""

    RECEIVED = "received"
    ACKNOWLEDGED = "acknowledged"
    RUNNING = "running"
    REPORTED = "reported"
    SUBMITTED = "submitted"
    EXPIRED = "expired"
    REJECTED = "rejected"


class Event(StrEnum):
    """What changes the state of a request."""

    ACCEPTED = "accepted"  # the service accepted the acknowledgement
    REDELIVERED = "redelivered"  # the service lost the acknowledgement
    STARTED = "started"  # the child is about to start
    STOPPED = "stopped"  # the agent is stopping
    RETRIED = "retried"  # the agent crashed during the collection and has started again
    REPORT_SEALED = "report-sealed"
    REPORT_ACCEPTED = "report-accepted"  # the service has the report
    EXPIRED = "expired"  # the request's expiresAt has passed
    REFUSED = "refused"  # the service refused the request or its report, or the report is dropped


class BootAction(StrEnum):
    """What to do with a request when the agent starts."""

    ACKNOWLEDGE = "acknowledge"
    RUN = "run"
    RUN_AGAIN = "run-again"
    REPORT_INTERRUPTED = "report-interrupted"
    EXPIRE = "expire"
    RESEND = "resend"
    NOTHING = "nothing"


FINAL: Final = frozenset({State.SUBMITTED, State.EXPIRED, State.REJECTED})

TRANSITIONS: Final[Mapping[tuple[State, Event], State]] = MappingProxyType(
    {
        (State.RECEIVED, Event.ACCEPTED): State.ACKNOWLEDGED,
        (State.RECEIVED, Event.EXPIRED): State.EXPIRED,
        (State.RECEIVED, Event.REFUSED): State.REJECTED,
        (State.ACKNOWLEDGED, Event.REDELIVERED): State.RECEIVED,
        (State.ACKNOWLEDGED, Event.STARTED): State.RUNNING,
        (State.ACKNOWLEDGED, Event.EXPIRED): State.EXPIRED,
        (State.ACKNOWLEDGED, Event.REFUSED): State.REJECTED,
        (State.RUNNING, Event.STOPPED): State.ACKNOWLEDGED,
        (State.RUNNING, Event.RETRIED): State.ACKNOWLEDGED,
        (State.RUNNING, Event.REPORT_SEALED): State.REPORTED,
        (State.RUNNING, Event.REFUSED): State.REJECTED,
        (State.REPORTED, Event.REPORT_ACCEPTED): State.SUBMITTED,
        (State.REPORTED, Event.REFUSED): State.REJECTED,
    }
)


class LifecycleError(Exception):
    """A bug: an event that the state does not allow."""


def advance(state: State, event: Event) -> State:
    """Return the state after ``event``. Raises LifecycleError if the table has no such step."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise LifecycleError(f"{event} is not possible in {state}") from None


def boot_action(state: State, *, attempt: int, is_expired: bool) -> BootAction:
    """Return the action for a row when the agent starts.

    ``attempt`` counts the collections so far.
    """
    if state in FINAL:
        return BootAction.NOTHING
    if state is State.REPORTED:
        return BootAction.RESEND
    if state is State.RUNNING:
        is_retry_allowed = attempt < MAX_ATTEMPTS and not is_expired
        return BootAction.RUN_AGAIN if is_retry_allowed else BootAction.REPORT_INTERRUPTED
    if is_expired:
        return BootAction.EXPIRE
    return BootAction.ACKNOWLEDGE if state is State.RECEIVED else BootAction.RUN


def acknowledgement_to_repeat(
    state: State, delivered_status: RequestStatus
) -> AcknowledgedStatus | None:
    """Return the acknowledgement to repeat for a request that is delivered again, or None.

    ``delivered_status`` is its status at the service. If this status is behind ``state``, the
    service has lost the acknowledgement. A request that ended without a report is not acknowledged,
    so that the service does not wait for a report.
    """
    if state is State.ACKNOWLEDGED:
        return "received" if delivered_status == "queued" else None
    if state in {State.RUNNING, State.REPORTED, State.SUBMITTED}:
        return "running" if delivered_status in {"queued", "received"} else None
    return None
