"""Which pages the browser has open: `GET /json/list` of the DevTools port.

Of each target only its id is kept: titles and addresses are nobody's business.
"""

import json
import re
import socket
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.kiosk.address import DebugAddress

TARGETS_MAX: Final = 16
BODY_MAX_BYTES: Final = 1024 * 1024
HEAD_MAX_BYTES: Final = 16 * 1024

_TARGET_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_INNER_PAGES: Final = ("devtools:", "chrome-extension:", "chrome-untrusted:")


def read_page_ids(address: DebugAddress, deadline: Deadline) -> tuple[str, ...]:
    """The ids of the open pages. Raises OSError (TimeoutError past the deadline), ValueError."""
    return parse_page_ids(parse_response(_exchange(address, deadline)))


def parse_response(data: bytes) -> bytes:
    """The body of an HTTP/1.1 200 response with a Content-Length, or to its end without one.

    Raises ValueError for anything else, naming neither headers nor body.
    """
    head, separator, body = data.partition(b"\r\n\r\n")
    status, *headers = head.split(b"\r\n")
    if not separator or not re.match(rb"HTTP/1\.[01] \d{3}\b", status):
        raise ValueError("the DevTools port does not speak HTTP")
    if status.split(b" ")[1] != b"200":
        raise ValueError(f"the DevTools port answered with status {int(status.split(b' ')[1])}")
    length = content_length(headers)
    if length is not None and len(body) < length:
        raise ValueError("the DevTools port ended its answer early")
    return body[:length]


def content_length(headers: list[bytes]) -> int | None:
    for header in headers:
        name, _, value = header.partition(b":")
        if name.strip().lower() == b"content-length" and re.fullmatch(rb"\s*\d{1,9}\s*", value):
            return int(value)
    return None


def parse_page_ids(body: bytes) -> tuple[str, ...]:
    """Read the list of targets; raises ValueError when it is none, leaves out what is odd."""
    try:
        listed = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("the DevTools port did not list its pages") from None
    if not isinstance(listed, list):
        raise ValueError("the DevTools port did not list its pages")
    return tuple(target["id"] for target in listed if _is_page(target))[:TARGETS_MAX]


def _is_page(target: object) -> bool:
    return (
        isinstance(target, dict)
        and target.get("type") == "page"
        and isinstance(target.get("id"), str)
        and _TARGET_ID.fullmatch(target["id"]) is not None
        and not str(target.get("url", "")).startswith(_INNER_PAGES)
    )


def _exchange(address: DebugAddress, deadline: Deadline) -> bytes:
    request = f"GET /json/list HTTP/1.1\r\nHost: {address.authority}\r\nConnection: close\r\n\r\n"
    with socket.create_connection(
        (address.host, address.port), timeout=deadline.require_s()
    ) as connection:
        connection.sendall(request.encode())
        return _received(connection, deadline)


def _received(connection: socket.socket, deadline: Deadline) -> bytes:
    data = bytearray()
    while not _is_whole(data):
        if len(data) > HEAD_MAX_BYTES + BODY_MAX_BYTES:
            raise ValueError("the DevTools port sent more than a list of pages can need")
        connection.settimeout(deadline.require_s())
        chunk = connection.recv(65536)
        if not chunk:
            break
        data += chunk
    return bytes(data)


def _is_whole(data: bytearray) -> bool:
    end = data.find(b"\r\n\r\n", 0, HEAD_MAX_BYTES)
    if end < 0:
        if len(data) > HEAD_MAX_BYTES:
            raise ValueError("the DevTools port does not speak HTTP")
        return False
    length = content_length(bytes(data[:end]).split(b"\r\n"))
    return length is not None and len(data) >= end + 4 + length
