"""How the service logs: a line of text for people, or a JSON object a line for collectors of logs.

What may stand in a line is listed here. API keys never do, whoever writes them.
"""

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Final, Literal

from agent.wire.controls import without_controls
from controlplane.accounts.key_store import PREFIX

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
"""What a record may tell beside its message, given by ``extra``."""
_API_KEY: Final = re.compile(PREFIX + r"[\w-]+")
QUIET: Final = ("uvicorn", "httpx2", "httpcore2")
"""Their idea of information is a line a call, with whole addresses."""


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return _API_KEY.sub(f"{PREFIX}…", super().format(record))


class JsonFormatter(logging.Formatter):
    """Times are in UTC."""

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
        return _API_KEY.sub(f"{PREFIX}…", json.dumps(line, ensure_ascii=False, default=str))


def set_up_logging(level: str, form: Format) -> None:
    """Send every record from ``level`` on to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter(TEXT))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
