"""What the results of calls to the service show about the connection.

A failed call does not show the cause, so a probe of the path follows. A probe sends no request to
the service, but only connects to it. If calls fail although connections succeed, the service itself
is the cause.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from agent.errors import WITHOUT_CONTACT, ServiceError, ServiceUnavailable
from agent.rules.connectivity.cause import Diagnosis, Sample, diagnose_reply

_WITHOUT_BINDING: Final = frozenset({"challenge", "enroll", "current"})
"""Operations that also succeed for a device whose heartbeats are refused."""


@dataclass(slots=True)
class Suspicion:
    """The signs of a possible interruption, since the last successful call.

    A sign is a failed call or a broken command stream. ``since`` is when the first of them began.
    """

    since: datetime | None = None
    failed_until: datetime | None = None
    """When the last failed call began. None unless the service refused a heartbeat (`_refusal`), or
    calls failed although a connection was possible (`_failing`). During such an interruption the
    probes succeed, so only a call can show its end."""
    _refusal: Diagnosis | None = None
    """The diagnosis of the last heartbeat's reply, if it was an error. The next success clears it,
    unless the operation is in `_WITHOUT_BINDING`."""
    _failing: Diagnosis | None = None
    """The diagnosis of calls that failed although a connection was possible."""
    _connected_at: datetime | None = None
    """The time since which every probe has connected to the service. None if the last probe did not
    connect, or if a call has succeeded after the last probe."""

    def note_success(self, operation: str) -> None:
        self.since = self._connected_at = self._failing = None
        if operation not in _WITHOUT_BINDING:
            self._refusal = None

    def note_failure(self, operation: str, error: ServiceError, began_at: datetime) -> bool:
        """Note a failed call. Returns whether the connection should be probed."""
        if isinstance(error, ServiceUnavailable) and error.cause in WITHOUT_CONTACT:
            if self._connected_at is not None and began_at > self._connected_at:
                self._failing = _diagnose_failure(error)
        elif operation == "heartbeat" and (refusal := diagnose_reply(error)) is not None:
            self._refusal = refusal
        else:
            return False
        self.failed_until = began_at if self._refusal or self._failing else None
        self.note_sign(began_at)
        return True

    def note_sign(self, at: datetime) -> None:
        """Note that the connection may be interrupted since ``at``."""
        self.since = at if self.since is None else min(self.since, at)

    def shift(self, by: timedelta) -> None:
        """Move the times, because the wall clock was set."""
        self.since = self.since and self.since + by
        self._connected_at = self._connected_at and self._connected_at + by
        self.failed_until = self.failed_until and self.failed_until + by

    def add_refusal(self, sample: Sample, at: datetime) -> Sample:
        """Return ``sample`` with the diagnosis of the failed calls as its ``refusal``."""
        if sample.service != "connected":
            self._connected_at = self._failing = None
        elif self._connected_at is None:
            self._connected_at = at
        if sample.name_servers and not any(s.answer == "answer" for s in sample.name_servers):
            self._failing = None  # the sample itself shows the cause: no name server answers
        return replace(sample, refusal=self._refusal or self._failing)


def _diagnose_failure(error: ServiceUnavailable) -> Diagnosis:
    if error.cause == "name-resolution":
        return Diagnosis("name-servers-silent", f"the service's name is not resolved: {error}")
    evidence = f"the service accepts connections, but calls fail: {error}"
    return Diagnosis("service-down", evidence)
