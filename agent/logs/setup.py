"""Sets up the daemon's log: text on a terminal, journald under systemd, else JSON lines.

In every format, repeated messages are limited and counted. In JSON and in journald, the ids of
requests, reports and bindings are also stored as fields.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, TypeAlias

from agent.config.model import Logging
from agent.logs.filters import RedactFilter, RepeatFilter, fields_in
from agent.logs.journald import PRIORITIES, JournalHandler, is_stderr_the_journal
from agent.wire.controls import without_controls

_ExceptionInfo: TypeAlias = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)
_LIBRARIES: Final = ("httpx2", "httpcore2")
"""These libraries log each HTTP request at level INFO. So their level is set to WARNING."""


class PlainFormatter(logging.Formatter):
    """Text without control characters, because messages contain untrusted text.

    A message becomes one line. A traceback keeps its line breaks.
    """

    def format(self, record: logging.LogRecord) -> str:
        plain = logging.makeLogRecord(record.__dict__)
        plain.msg, plain.args = plain_message(record), None
        return super().format(plain)

    def formatException(  # noqa: N802 - the name in logging.Formatter
        self, ei: _ExceptionInfo
    ) -> str:
        return "\n".join(map(without_controls, super().formatException(ei).split("\n")))


def plain_message(record: logging.LogRecord) -> str:
    """Return a record's message on one line."""
    return " | ".join(map(without_controls, record.getMessage().split("\n")))


class PriorityFormatter(PlainFormatter):
    """One line per record, with its priority as prefix (sd-daemon(3))."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record).replace("\n", " | ")
        return f"<{PRIORITIES.get(record.levelno, 6)}>{text}"


class JsonFormatter(PlainFormatter):
    """One JSON object per line. The time is in UTC, and each id has its own key."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": plain_message(record),
            **fields_in(record),
        }
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            line["exception"] = record.exc_text
        return json.dumps(line, ensure_ascii=False)


def set_up_logging(config: Logging) -> None:
    """Configure the root logger: its destination, format, level and filters."""
    handler = _handler(config)
    handler.addFilter(RedactFilter())
    handler.addFilter(RepeatFilter(handler.emit))
    root = logging.getLogger()
    for old in root.handlers:
        old.close()
    root.handlers[:] = [handler]
    root.setLevel(config.level.upper())
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)


def _handler(config: Logging) -> logging.Handler:
    if config.format == "auto" and is_stderr_the_journal():
        return _journal()
    handler = logging.StreamHandler(sys.stderr)
    is_text = config.format == "text" or (config.format == "auto" and sys.stderr.isatty())
    text = PlainFormatter("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")
    handler.setFormatter(text if is_text else JsonFormatter())
    return handler


def _journal() -> logging.Handler:
    """Return a handler for the journal.

    If the journal's socket is not accessible, the handler writes lines with priorities to stderr.
    """
    try:
        handler: logging.Handler = JournalHandler()
    except OSError:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(PriorityFormatter("%(name)s: %(message)s"))
        return handler
    handler.setFormatter(PlainFormatter("%(message)s"))
    return handler
