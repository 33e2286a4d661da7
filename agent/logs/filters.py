"""What happens to a log record before it is written: secrets become asterisks, repetitions a
count."""

import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agent.redaction.known import redact

FIELDS: Final = ("request_id", "report_id", "binding_id")
"""The fields a record may carry, given by ``extra``: whoever names an id in a message gives it."""

ALLOWED: Final = 2
"""Of one warning or error that repeats itself."""
ALLOWED_ALIKE: Final = 20
"""Of one kind of message, whatever it is about: what a stranger can cause has no end."""
WINDOW_S: Final = 60.0
REMEMBERED_MAX: Final = 200

_NUMBER: Final = re.compile(r"\b\d+(\.\d+)?\b")

_FORMATTER: Final = logging.Formatter()

Emit = Callable[[logging.LogRecord], None]


@dataclass(slots=True)
class _Seen:
    """How often a message came since ``began_s``, and the last one that was held back."""

    began_s: float
    count: int = 0
    held_back: int = 0
    last: logging.LogRecord | None = None


class RedactFilter(logging.Filter):
    """Takes secrets out of all that is written of a record: message, traceback, fields."""

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            message = record.getMessage()
        except (TypeError, ValueError):  # arguments that do not fit the message
            message = f"{record.msg} {record.args}"
        record.template = record.msg  # by which repetitions are known
        record.msg, record.args = redact(message), None
        if record.exc_info and not record.exc_text:
            record.exc_text = _FORMATTER.formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = redact(record.exc_text)
        record.exc_info = None
        if record.stack_info:
            record.stack_info = redact(record.stack_info)
        for field in FIELDS:
            if (value := getattr(record, field, None)) is not None:
                setattr(record, field, redact(str(value)))
        return True


class RepeatFilter(logging.Filter):
    """Lets the same warning or error pass twice a minute, and of any kind of message from INFO on
    twenty; what was held back is told as a count.

    Messages that differ only in numbers are the same; messages of one kind have one template.
    ``emit`` writes the line with the count.
    """

    def __init__(self, emit: Emit, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._emit = emit
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: OrderedDict[tuple[str, str], _Seen] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._clock()
        with self._lock:
            counts = self._expire(now)
            passes = record.levelno < logging.INFO or self._passes(record, now)
        for count in counts:
            self._emit(count)
        return passes

    def _passes(self, record: logging.LogRecord, now: float) -> bool:
        kind = (record.name, f"={getattr(record, 'template', record.msg)}")
        if record.levelno < logging.WARNING:
            return self._count(record, kind, ALLOWED_ALIKE, now)
        same = (record.name, _NUMBER.sub("#", record.getMessage()))
        # One that is held back as one of its kind is not remembered by itself: that has no end.
        if same not in self._seen and not self._count(record, kind, ALLOWED_ALIKE, now):
            return False
        return self._count(record, same, ALLOWED, now)

    def _count(
        self, record: logging.LogRecord, key: tuple[str, str], allowed: int, now: float
    ) -> bool:
        seen = self._seen.setdefault(key, _Seen(now))
        seen.count += 1
        if seen.count <= allowed:
            return True
        seen.held_back += 1
        seen.last = record
        return False

    def _expire(self, now: float) -> list[logging.LogRecord]:
        """Forget what is over, the oldest first; return a record for each that held some back."""
        told = []
        while self._seen:
            seen = next(iter(self._seen.values()))
            if now - seen.began_s < WINDOW_S and len(self._seen) <= REMEMBERED_MAX:
                break
            self._seen.popitem(last=False)
            if seen.last is not None:
                told.append(_with_count(seen.last, seen.held_back, now - seen.began_s))
        return told


def _with_count(record: logging.LogRecord, count: int, during_s: float) -> logging.LogRecord:
    """Return the last record held back, saying how many there were."""
    told = logging.makeLogRecord(record.__dict__)
    told.msg = f"{record.getMessage()} (and {count} more like it in {during_s:.0f} s)"
    told.args = None
    return told
