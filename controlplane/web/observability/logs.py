"""Logging: a line of text for users, or a JSON object per line for log collectors.

A JSON line contains only the fields that this module lists. API keys are removed from every line.
"""

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Final, Literal

from agent.wire.controls import without_controls
from controlplane.accounts.keys.key_store import PREFIX

Format = Literal["text", "json"]
TEXT: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"
FIELDS: Final = (
    "trace_id",
    "operation",
    "method",
    "path",
    "status",
    "code",
    "duration_ms",
    "key_id",
    "organization_id",
    "report_id",
)
"""Fields that some JSON lines have besides the time, level, logger and message. Callers pass them
in ``extra``."""
_API_KEY: Final = re.compile(rf"({PREFIX}|venue_(?:live|test)_)[\w-]+")
LIBRARY_LOGGERS: Final = ("uvicorn", "httpx2", "httpcore2")
"""Loggers of libraries that log every call with its complete URL or path on level INFO."""
MIGRATIONS_LOGGER: Final = "alembic"
"""This logger logs each step of a migration on level INFO. The steps are only shown if the service
runs with the log level ``debug``."""


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return _API_KEY.sub(r"\1…", super().format(record))


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object. Times are in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": without_controls(record.getMessage()),
        }
        for name in FIELDS:
            if (value := getattr(record, name, None)) is not None:
                line[name] = value
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _API_KEY.sub(r"\1…", json.dumps(line, ensure_ascii=False, default=str))


def set_up_logging(level: str, form: Format) -> None:
    """Write records of ``level`` and above to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter(TEXT))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in LIBRARY_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    migrations_level = logging.INFO if level == "debug" else logging.WARNING
    logging.getLogger(MIGRATIONS_LOGGER).setLevel(migrations_level)
