"""The points at which a crash matters: each write, each call, each event of the child.

Production code only marks them, without a listener. The crash tests listen in a process of their
own and kill it at each failpoint. A transaction, call or event always names its failpoint, so a new
one is tested as soon as it exists.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum


class Failpoint(StrEnum):
    """The name of each failpoint."""

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
    # the child: its start, each kind of event (collectors.contract), its end
    CHILD_STARTED = "child-started"
    CHILD_PROGRESS = "child-progress"
    CHILD_CHECKPOINT = "child-checkpoint"
    CHILD_RESULT = "child-result"
    CHILD_CRASH = "child-crash"
    CHILD_ENDED = "child-ended"


Listener = Callable[[Failpoint, bool], None]
"""Called with the failpoint, and whether it is over (False: it is about to happen)."""

_listener: Listener = lambda failpoint, is_over: None  # noqa: E731 - replaced by the crash tests


def listen(listener: Listener) -> None:
    """Call ``listener`` at every failpoint of this process. For the crash tests."""
    global _listener  # noqa: PLW0603 - one process, one listener, set before anything runs
    _listener = listener


@contextmanager
def passing(failpoint: Failpoint) -> Iterator[None]:
    """Call the listener before the body, and after it unless it raises."""
    _listener(failpoint, False)
    yield
    _listener(failpoint, True)
