"""How the daemon logs: text on a terminal, the journal's own form under systemd, else JSON lines.

Whatever the form, a record tells the request, report or binding it is about, and an error that
repeats itself becomes a count.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final

from agent.config import Logging
from agent.journald import PRIORITIES, JournalHandler, is_stderr_the_journal
from agent.log_filters import FIELDS, IdFilter, RedactFilter, RepeatFilter

_LIBRARIES: Final = ("httpx2", "httpcore2")
"""One line a request is their idea of information; ours is in the tasks."""


class PriorityFormatter(logging.Formatter):
    """One line each, with its priority in front (sd-daemon(3))."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record).replace("\n", " | ")
        return f"<{PRIORITIES.get(record.levelno, 6)}>{text}"


class JsonFormatter(logging.Formatter):
    """One JSON object a line; times in UTC, ids as keys of their own."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name in FIELDS:
            if (value := getattr(record, name, None)) is not None:
                line[name] = str(value)
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            line["exception"] = record.exc_text
        return json.dumps(line, ensure_ascii=False)


def set_up_logging(config: Logging) -> None:
    """Send every record to where this process is watched, in the configured form."""
    handler = _handler(config)
    handler.addFilter(IdFilter())  # first: it needs the message's arguments apart
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
    handler.setFormatter(
        logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")
        if is_text
        else JsonFormatter()
    )
    return handler


def _journal() -> logging.Handler:
    """Return the journal's handler, or stderr with priorities where its socket is closed to us."""
    try:
        handler: logging.Handler = JournalHandler()
    except OSError:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(PriorityFormatter("%(name)s: %(message)s"))
        return handler
    handler.setFormatter(logging.Formatter("%(message)s"))
    return handler
