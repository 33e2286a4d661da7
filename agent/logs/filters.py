"""Filters of log records. They mask secrets, store ids as fields, and limit repeated messages."""

import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from agent.redaction.known import redact

FIELDS: Final = ("request_id", "report_id", "binding_id")
"""The fields of a log record that contain the ids in its message. In a message, "request %s" sets
the field ``request_id``, "report %s" sets ``report_id``, and "binding %s" sets ``binding_id``."""

REPEATS_MAX: Final = 2
"""How often the same warning or error is logged in a window of WINDOW_S."""
VARIANTS_MAX: Final = 20
"""Maximum number of messages of one template that are logged in a window. The template is the
message before its arguments are inserted. Equal warnings or errors count once. Without this limit,
untrusted input could cause any number of different messages."""
WINDOW_S: Final = 60.0
ENTRIES_MAX: Final = 200
"""Maximum number of messages and templates that are counted at the same time."""

_NUMBER: Final = re.compile(r"\b\d+(\.\d+)?\b")
_PLACEHOLDER: Final = re.compile(r"(?:\b(request|report|binding) )?%[-#0 +]*[\d.]*[a-z]")

_FORMATTER: Final = logging.Formatter()

Emit = Callable[[logging.LogRecord], None]


@dataclass(slots=True)
class _Repetitions:
    """The number of messages with one key since ``began_s``, and the last suppressed message.

    The key identifies equal messages, or all messages of a template.
    """

    began_s: float
    count: int = 0
    suppressed: int = 0
    last: logging.LogRecord | None = None


def fields_in(record: logging.LogRecord) -> dict[str, str]:
    """Return the values of the `FIELDS` that a record has, by field."""
    values = {field: getattr(record, field, None) for field in FIELDS}
    return {field: str(value) for field, value in values.items() if value is not None}


class RedactFilter(logging.Filter):
    """Masks secrets in message, traceback and fields, and sets the fields FIELDS."""

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            message = record.getMessage()
        except (TypeError, ValueError):  # the arguments do not fit the message
            message = f"{record.msg} {record.args}"
        record.template = record.msg  # for RepeatFilter
        for field, value in _ids(record):
            if getattr(record, field, None) is None:
                setattr(record, field, value)
        record.msg, record.args = redact(message), None
        if record.exc_info and not record.exc_text:
            record.exc_text = _FORMATTER.formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = redact(record.exc_text)
        record.exc_info = None
        if record.stack_info:
            record.stack_info = redact(record.stack_info)
        for field, text in fields_in(record).items():
            setattr(record, field, redact(text))
        return True


class RepeatFilter(logging.Filter):
    """Limits repeated messages. In a window of WINDOW_S it passes:

    - every DEBUG message;
    - for each template, VARIANTS_MAX messages of level INFO;
    - for each template, VARIANTS_MAX different warnings or errors, each at most REPEATS_MAX times.

    Messages that differ only in numbers are the same message. The filter counts the messages that
    it suppresses. At the first record after the window, it calls ``emit`` with a record that
    contains the count.
    """

    def __init__(self, emit: Emit, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._emit = emit
        self._clock = clock
        self._lock = threading.Lock()
        self._repetitions: OrderedDict[tuple[str, str], _Repetitions] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._clock()
        with self._lock:
            summaries = self._expire(now)
            passes = record.levelno < logging.INFO or self._passes(record, now)
        for summary in summaries:
            self._emit(summary)
        return passes

    def _passes(self, record: logging.LogRecord, now: float) -> bool:
        # The "=" makes the key of a template different from that of a message.
        template_key = (record.name, f"={getattr(record, 'template', record.msg)}")
        if record.levelno < logging.WARNING:
            return self._count(record, template_key, VARIANTS_MAX, now)
        message_key = (record.name, _NUMBER.sub("#", record.getMessage()))
        # A new message that exceeds the limit of its template gets no entry in ``_repetitions``,
        # because untrusted input can cause any number of different messages.
        if message_key not in self._repetitions and not self._count(
            record, template_key, VARIANTS_MAX, now
        ):
            return False
        return self._count(record, message_key, REPEATS_MAX, now)

    def _count(
        self, record: logging.LogRecord, key: tuple[str, str], maximum: int, now: float
    ) -> bool:
        """Count a message. Return whether ``maximum`` permits it."""
        repetitions = self._repetitions.setdefault(key, _Repetitions(now))
        repetitions.count += 1
        if repetitions.count <= maximum:
            return True
        repetitions.suppressed += 1
        repetitions.last = record
        return False

    def _expire(self, now: float) -> list[logging.LogRecord]:
        """Drop entries after their window, and the oldest ones if there are more than ENTRIES_MAX.

        For each dropped entry with suppressed messages, return a log record with their number.
        """
        summaries = []
        while self._repetitions:
            oldest = next(iter(self._repetitions.values()))
            if now - oldest.began_s < WINDOW_S and len(self._repetitions) <= ENTRIES_MAX:
                break
            self._repetitions.popitem(last=False)
            if oldest.last is not None:
                summaries.append(_with_count(oldest.last, oldest.suppressed, now - oldest.began_s))
        return summaries


def _with_count(record: logging.LogRecord, count: int, during_s: float) -> logging.LogRecord:
    """Return a copy of ``record`` whose message ends with the number of suppressed messages."""
    summary = logging.makeLogRecord(record.__dict__)
    summary.msg = f"{record.getMessage()} (and {count} more like it in {during_s:.0f} s)"
    summary.args = None
    return summary


def _ids(record: logging.LogRecord) -> Iterator[tuple[str, object]]:
    """Yield the field name and the value of each id among the arguments of a message."""
    if isinstance(record.args, tuple):
        template = str(record.msg).replace("%%", "")
        for placeholder, value in zip(_PLACEHOLDER.finditer(template), record.args, strict=False):
            if placeholder[1]:
                yield f"{placeholder[1]}_id", value
