"""How the daemon logs: text on a terminal, journald's priorities under systemd, else JSON lines."""

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Final, Literal

from agent.config import Logging

# sd-daemon(3): a line that starts with <N> has the syslog priority N.
_PRIORITIES: Final = {
    logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2,
}  # fmt: skip

Style = Literal["text", "journald", "json"]


class JournaldFormatter(logging.Formatter):
    """One line each, with its priority in front."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record).replace("\n", " | ")
        return f"<{_PRIORITIES.get(record.levelno, 6)}>{text}"


class JsonFormatter(logging.Formatter):
    """One JSON object a line; times in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def set_up_logging(config: Logging) -> None:
    """Send every record to stderr in the configured form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(_style(config)))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(config.level.upper())
    # One line a request is the library's idea of information; ours is in the tasks.
    for name in ("httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _style(config: Logging) -> Style:
    if config.format != "auto":
        return config.format
    if os.environ.get("JOURNAL_STREAM"):
        return "journald"
    return "text" if sys.stderr.isatty() else "json"


def _formatter(style: Style) -> logging.Formatter:
    if style == "json":
        return JsonFormatter()
    if style == "journald":
        return JournaldFormatter("%(name)s: %(message)s")
    return logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")
