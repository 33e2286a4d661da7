"""The moments at which dying would matter: each write, each call, each word from the child.

Production code only says that it passes one; nothing listens. The crash tests listen in a process
of their own and kill it at each, so that a new one is tested as soon as it exists:
a transaction, a call or an event cannot be written without naming its failpoint.
"""

from collections.abc import Callable
from enum import StrEnum


class Failpoint(StrEnum):
    # files
    IDENTITY_WRITTEN = "identity-written"
    DEVICE_RECORD_WRITTEN = "device-record-written"
    PRINTERS_WRITTEN = "printers-written"
    # transactions
    REQUEST_ADDED = "request-added"
    REQUEST_MOVED = "request-moved"
    RUNNING_NOTED = "running-noted"
    REPORT_HANDED_OVER = "report-handed-over"
    REPORT_SETTLED = "report-settled"
    REPORT_KEPT = "report-kept"
    REPORT_GIVEN_UP = "report-given-up"
    REPORT_RESEALED = "report-resealed"
    ROW_SET_ASIDE = "row-set-aside"
    REPORTS_KEPT_YOUNG = "reports-kept-young"
    JOURNAL_PRUNED = "journal-pruned"
    SENT_DROPPED = "sent-dropped"
    COUNTED = "counted"
    # calls
    CHALLENGE_CALLED = "challenge-called"
    ENROLL_CALLED = "enroll-called"
    CURRENT_CALLED = "current-called"
    HEARTBEAT_CALLED = "heartbeat-called"
    ACKNOWLEDGE_CALLED = "acknowledge-called"
    SUBMIT_CALLED = "submit-called"
    COMMANDS_OPENED = "commands-opened"
    # the child
    CHILD_STARTED = "child-started"
    CHILD_PROGRESS = "child-progress"
    CHILD_CHECKPOINT = "child-checkpoint"
    CHILD_RESULT = "child-result"
    CHILD_CRASH = "child-crash"
    CHILD_ENDED = "child-ended"


Listener = Callable[[Failpoint, bool], None]
"""Called with the failpoint, and whether it is over (False: it is about to happen)."""


def _nobody(failpoint: Failpoint, is_over: bool) -> None:
    """Listen to nothing."""


_listener: Listener = _nobody


def listen(listener: Listener) -> None:
    """Have ``listener`` called at every failpoint of this process. For the crash tests."""
    global _listener  # noqa: PLW0603 - one process, one listener, set before anything runs
    _listener = listener


def before(failpoint: Failpoint) -> None:
    """Say that ``failpoint`` is about to happen."""
    _listener(failpoint, False)


def after(failpoint: Failpoint) -> None:
    """Say that ``failpoint`` has happened."""
    _listener(failpoint, True)
