"""The points at which the crash tests kill the agent: each write, each call, each child event.

Production code only marks the points. In the crash tests, a listener kills the process at each
failpoint. The functions for transactions, calls and child events require a failpoint, so that the
crash tests also cover every transaction, call and event that is added later.
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
    REQUEST_MOVED = "request-moved"  # the state of a request was changed
    RUNNING_NOTED = "running-noted"  # the service has accepted the acknowledgement `running`
    REPORT_HANDED_OVER = "report-handed-over"  # a report was added to the outbox
    REPORT_SETTLED = "report-settled"  # the service has accepted a report
    REPORT_KEPT = "report-kept"  # a sent report was copied to the table of sent reports
    REPORT_GIVEN_UP = "report-given-up"  # a report was dropped
    REPORT_RESEALED = "report-resealed"  # a report that the service rejected was sealed again
    ROW_SET_ASIDE = "row-set-aside"  # an unreadable row was quarantined
    CREATION_TIMES_SHIFTED = "creation-times-shifted"  # the clock was set while reports waited
    JOURNAL_PRUNED = "journal-pruned"  # old finished requests were deleted
    SENT_DROPPED = "sent-dropped"  # old copies of sent reports were deleted
    COUNTED = "counted"  # a persistent counter was increased
    RECORD_WRITTEN = "record-written"  # the record of the connection
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
"""Called with a failpoint and False before the body of a `passing` block, and with the failpoint
and True after the body."""

_listener: Listener = lambda failpoint, is_over: None  # noqa: E731 - the crash tests replace it


def set_listener(listener: Listener) -> None:
    """Call ``listener`` at every failpoint of this process. Only tests and benchmarks use this."""
    global _listener  # noqa: PLW0603 - a process sets its listener once, at its start
    _listener = listener


@contextmanager
def passing(failpoint: Failpoint) -> Iterator[None]:
    """Call the listener before the body, and also after it unless the body raises."""
    _listener(failpoint, False)
    yield
    _listener(failpoint, True)
