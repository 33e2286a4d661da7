"""Opaque positions in listings: at most 128 characters, of use only to the listing they came from.

A cursor is base64url (RFC 4648, section 5, unpadded) of a kind byte and 64-bit positions.
"""

import base64
import binascii
import struct
from http import HTTPStatus
from typing import Literal

from agent.wire.limits import CURSOR_MAX
from controlplane.operation.errors import Refusal

Listing = Literal["devices", "history", "overview", "agents", "audit"]
_KINDS: dict[Listing, bytes] = {
    "devices": b"d",
    "history": b"h",
    "overview": b"o",
    "agents": b"a",
    "audit": b"l",
}
_COUNTS: dict[Listing, int] = {"devices": 1, "history": 2, "overview": 2, "agents": 3, "audit": 1}
POSITION_MAX = 2**63 - 1


def write_cursor(listing: Listing, *positions: int) -> str:
    packed = struct.pack(f">{_COUNTS[listing]}q", *positions)
    return base64.urlsafe_b64encode(_KINDS[listing] + packed).rstrip(b"=").decode()


def read_cursor(listing: Listing, cursor: str) -> tuple[int, ...]:
    """Return the positions in ``cursor``, or raise an ``invalid_cursor`` refusal."""
    try:
        if len(cursor) > CURSOR_MAX:
            raise ValueError("too long")
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        raw = base64.b64decode(padded, altchars=b"-_", validate=True)
        if raw[:1] != _KINDS[listing]:
            raise ValueError("of another listing")
        positions: tuple[int, ...] = struct.unpack(f">{_COUNTS[listing]}q", raw[1:])
    except (ValueError, binascii.Error, struct.error):
        raise Refusal(
            HTTPStatus.BAD_REQUEST, "invalid_cursor", "the cursor is not one of this listing"
        ) from None
    if min(positions) < 0:
        raise Refusal(HTTPStatus.BAD_REQUEST, "invalid_cursor", "the cursor is out of range")
    return positions
