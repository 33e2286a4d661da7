"""The life of a request as a table.

Rules:
- The journal is written first, the service is told after; so a state here may be ahead of the
  service by one step, never behind.
- A request ends in exactly one of three states: SUBMITTED (the service has the report), EXPIRED
  (it ran out before it started) or REJECTED (the service no longer wants it).
- RUNNING is written before the child starts. A clean stop takes the row back to ACKNOWLEDGED, so
  a row found RUNNING at start means that the agent died: it gets one more attempt, then a failed
  report with ``execution-interrupted``.
- REPORTED means that the sealed report is in the outbox: it is sent again as it is, and nothing
  is ever collected again for it.
- Every state has a boot action; every transition not in the table is an error.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from agent.wire.vocabulary import AcknowledgedStatus, RequestStatus

MAX_ATTEMPTS: Final = 2
"""A collection that died with the agent is tried once more."""


class State(StrEnum):
    RECEIVED = "received"
    ACKNOWLEDGED = "acknowledged"
    RUNNING = "running"
    REPORTED = "reported"
    SUBMITTED = "submitted"
    EXPIRED = "expired"
    REJECTED = "rejected"


class Event(StrEnum):
    ACCEPTED = "accepted"  # the service took our acknowledgement
    CAME_AGAIN = "came-again"  # the service has lost our acknowledgement
    STARTED = "started"  # about to start the child
    STOPPED = "stopped"  # the agent was asked to stop meanwhile
    RETRIED = "retried"  # found running at start: the agent had died
    REPORT_SEALED = "report-sealed"
    REPORT_TAKEN = "report-taken"  # the service has the report
    RAN_OUT = "ran-out"  # expiresAt has passed
    REFUSED = "refused"  # the service no longer wants it


class BootAction(StrEnum):
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
        (State.RECEIVED, Event.RAN_OUT): State.EXPIRED,
        (State.RECEIVED, Event.REFUSED): State.REJECTED,
        (State.ACKNOWLEDGED, Event.CAME_AGAIN): State.RECEIVED,
        (State.ACKNOWLEDGED, Event.STARTED): State.RUNNING,
        (State.ACKNOWLEDGED, Event.RAN_OUT): State.EXPIRED,
        (State.ACKNOWLEDGED, Event.REFUSED): State.REJECTED,
        (State.RUNNING, Event.STOPPED): State.ACKNOWLEDGED,
        (State.RUNNING, Event.RETRIED): State.ACKNOWLEDGED,
        (State.RUNNING, Event.REPORT_SEALED): State.REPORTED,
        (State.RUNNING, Event.REFUSED): State.REJECTED,
        (State.REPORTED, Event.REPORT_TAKEN): State.SUBMITTED,
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
    """Say what a row found at start needs. ``attempt`` counts the collections begun so far."""
    if state in FINAL:
        return BootAction.NOTHING
    if state is State.REPORTED:
        return BootAction.RESEND
    if state is State.RUNNING:
        again = attempt < MAX_ATTEMPTS and not is_expired
        return BootAction.RUN_AGAIN if again else BootAction.REPORT_INTERRUPTED
    if is_expired:
        return BootAction.EXPIRE
    return BootAction.ACKNOWLEDGE if state is State.RECEIVED else BootAction.RUN


def acknowledgement_owed(state: State, said: RequestStatus) -> AcknowledgedStatus | None:
    """Say what to acknowledge again when a request in ``state`` is delivered as ``said``.

    A service whose word is behind ours has lost what it was told, or never got it. A request that
    ended without a report is not acknowledged: the service should not wait for one.
    """
    if state is State.ACKNOWLEDGED:
        return "received" if said == "queued" else None
    if state in {State.RUNNING, State.REPORTED, State.SUBMITTED}:
        return "running" if said in {"queued", "received"} else None
    return None
