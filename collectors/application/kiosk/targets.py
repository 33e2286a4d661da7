"""Lists the open pages of the browser with `GET /json/list` of the DevTools port.

Only the ids of the pages are returned, because their titles and addresses are private.
"""

import re
import socket
from typing import Final

from collectors.application.deadline import Deadline
from collectors.shared.devtools import DebugAddress, open_pages
from collectors.shared.http import HttpError, HttpRequest, exchange_blocking

TARGETS_MAX: Final = 16
BODY_MAX_BYTES: Final = 1024 * 1024
PEER: Final = "the DevTools port"

_TARGET_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def read_page_ids(address: DebugAddress, deadline: Deadline) -> tuple[str, ...]:
    """Return the ids of the open pages. Raises OSError or ValueError."""
    return parse_page_ids(_query(address, deadline))


def parse_page_ids(body: bytes) -> tuple[str, ...]:
    """Return the ids of the pages in a JSON list of DevTools targets.

    Raises ValueError if ``body`` is not a list.
    """
    ids = (page.get("id") for page in open_pages(body))
    valid = (text for text in ids if isinstance(text, str) and _TARGET_ID.fullmatch(text))
    return tuple(valid)[:TARGETS_MAX]


def _query(address: DebugAddress, deadline: Deadline) -> bytes:
    """Return the body of a complete reply with status 200.

    Raises OSError or ValueError. The messages never quote data that the peer sent.
    """
    request = HttpRequest("GET", address.authority, "/json/list")
    with socket.create_connection(
        (address.host, address.port), timeout=deadline.require_s()
    ) as connection:
        try:
            reply = exchange_blocking(connection, request, BODY_MAX_BYTES, deadline.require_s)
        except HttpError:
            raise ValueError(f"{PEER} did not answer with HTTP") from None
    if reply.status != 200:
        raise ValueError(f"{PEER} answered with status {reply.status}")
    if len(reply.body) > BODY_MAX_BYTES:
        raise ValueError(f"{PEER} sent more than {BODY_MAX_BYTES // 1024} KiB")
    if not reply.is_whole:
        raise ValueError(f"{PEER} ended its answer early")
    return reply.body
