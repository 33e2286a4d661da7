"""Sends log records to systemd's journal, with the ids in a message as fields (`filters.FIELDS`).

The native protocol sends one datagram for each record. The datagram has a line `KEY=value` for each
field. A value of several lines is preceded by its length (systemd.io/JOURNAL_NATIVE_PROTOCOL).
"""

import logging
import os
import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent.logs.filters import fields_in

SOCKET: Final = Path("/run/systemd/journal/socket")
MESSAGE_MAX: Final = 32_768
"""Maximum length of a message in characters. A datagram must fit the socket's buffer."""
IDENTIFIER: Final = "venue-agent"

# sd-daemon(3), syslog(3)
PRIORITIES: Final = {
    logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2,
}  # fmt: skip


class JournalHandler(logging.Handler):
    """Writes records to the journal. Raises OSError if the journal's socket is not accessible.

    If the journal refuses a record, `logging` writes an error to stderr, which the journal also
    reads.
    """

    def __init__(self, path: Path = SOCKET) -> None:
        super().__init__()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._socket.send(datagram(fields_of(record, self.format(record))))
        except OSError:
            self.handleError(record)

    def close(self) -> None:
        self._socket.close()
        super().close()


def fields_of(record: logging.LogRecord, message: str) -> dict[str, str]:
    """Return a record's journal fields (systemd.journal-fields(7))."""
    return {
        "MESSAGE": message[:MESSAGE_MAX],
        "PRIORITY": str(PRIORITIES.get(record.levelno, 6)),
        "SYSLOG_IDENTIFIER": IDENTIFIER,
        "LOGGER": record.name,
        **{f"VENUE_AGENT_{name.upper()}": text for name, text in fields_in(record).items()},
    }


def datagram(fields: Mapping[str, str]) -> bytes:
    """Return the datagram of ``fields`` in the native protocol."""
    parts = []
    for key, value in fields.items():
        data = value.encode("utf-8", "backslashreplace")
        if b"\n" in data:
            parts.append(key.encode() + b"\n" + struct.pack("<Q", len(data)) + data + b"\n")
        else:
            parts.append(key.encode() + b"=" + data + b"\n")
    return b"".join(parts)


def is_stderr_the_journal(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether stderr is connected to the journal (systemd.exec(5), $JOURNAL_STREAM)."""
    try:
        device, inode = environment.get("JOURNAL_STREAM", "").split(":")
        status = os.fstat(2)
        return (status.st_dev, status.st_ino) == (int(device), int(inode))
    except (ValueError, OSError):
        return False
