"""One HTTP/1 response from a neighbour on this machine, bounded in size and time (RFC 9112).

Only what such neighbours send is understood: a Content-Length, or a body to the end of the
connection. Errors name the peer and never quote what it sent.
"""

import re
import socket
from typing import Final

from collectors.application.deadline import Deadline

HEAD_MAX_BYTES: Final = 16 * 1024
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] (\d{3})\b")
_LENGTH = re.compile(rb"\s*\d{1,9}\s*")
_OK: Final = 200


def receive(connection: socket.socket, peer: str, max_bytes: int, deadline: Deadline) -> bytes:
    """The body of a 200 response. Raises OSError (TimeoutError past the deadline), ValueError."""
    data = bytearray()
    while not is_whole(data, peer):
        if len(data) > HEAD_MAX_BYTES + max_bytes:
            raise ValueError(f"{peer} sent more than its answer can need")
        connection.settimeout(deadline.require_s())
        chunk = connection.recv(65536)
        if not chunk:
            break
        data += chunk
    return parse_response(bytes(data), peer)


def is_whole(data: bytes | bytearray, peer: str) -> bool:
    """Whether the promised length has come. Raises ValueError for an endless head."""
    end = data.find(b"\r\n\r\n", 0, HEAD_MAX_BYTES)
    if end < 0:
        if len(data) > HEAD_MAX_BYTES:
            raise ValueError(f"{peer} does not speak HTTP")
        return False
    length = _content_length(bytes(data[:end]))
    return length is not None and len(data) >= end + 4 + length


def parse_response(data: bytes, peer: str) -> bytes:
    """The body of a whole 200 response. Raises ValueError for anything else."""
    head, separator, body = data.partition(b"\r\n\r\n")
    status = _STATUS_LINE.match(head)
    if not separator or not status:
        raise ValueError(f"{peer} does not speak HTTP")
    if int(status[1]) != _OK:
        raise ValueError(f"{peer} answered with status {int(status[1])}")
    length = _content_length(head)
    if length is not None and len(body) < length:
        raise ValueError(f"{peer} ended its answer early")
    return body[:length]


def _content_length(head: bytes) -> int | None:
    for header in head.split(b"\r\n")[1:]:
        name, _, value = header.partition(b":")
        if name.strip().lower() == b"content-length" and _LENGTH.fullmatch(value):
            return int(value)
    return None
