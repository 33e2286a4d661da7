"""Opaque positions in the listings of the retail API: at most 128 characters, signed.

A cursor is good for the company, the listing, the filters and the order that it came from, for 24
hours. It names the last row that was shown, by what the rows are ordered by and by their position,
so that rows that arrive meanwhile neither repeat nor hide one.

It is base64url (RFC 4648, section 5, unpadded) of: expiry (4 bytes, seconds), digest of what it is
good for (8), the ordering value (8), the position (8), HMAC-SHA256 of all that (16).
"""

import base64
import binascii
import hashlib
import hmac
import struct
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final

from controlplane.operation.errors import Refusal
from controlplane.retail.limits import CURSOR_MAX

LIFETIME: Final = timedelta(hours=24)
_FORM: Final = struct.Struct(">I8sqq")
_SIGNATURE_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Place:
    """The last row of a page. ``value`` is 0 where rows are ordered by position alone."""

    value: int
    position: int


@dataclass(frozen=True, slots=True)
class Cursors:
    """``key`` signs. ``listing`` names everything a cursor depends on, the company first."""

    key: bytes
    now: datetime

    def write(self, listing: tuple[str, ...], place: Place) -> str:
        expires_s = int((self.now + LIFETIME).timestamp())
        body = _FORM.pack(expires_s, _digest(listing), place.value, place.position)
        return base64.urlsafe_b64encode(body + self._sign(body)).rstrip(b"=").decode()

    def read(self, listing: tuple[str, ...], cursor: str) -> Place:
        """Return where ``cursor`` leads, or raise an ``invalid_cursor`` refusal."""
        try:
            if len(cursor) > CURSOR_MAX:
                raise ValueError("too long")
            padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
            raw = base64.b64decode(padded, altchars=b"-_", validate=True)
            body, signature = raw[:-_SIGNATURE_BYTES], raw[-_SIGNATURE_BYTES:]
            if not hmac.compare_digest(signature, self._sign(body)):
                raise ValueError("not signed by this service")
            expires_s, digest, value, position = _FORM.unpack(body)
            if digest != _digest(listing) or expires_s <= self.now.timestamp():
                raise ValueError("of another listing, or too old")
        except (ValueError, binascii.Error, struct.error):
            raise invalid_cursor() from None
        return Place(value, position)

    def _sign(self, body: bytes) -> bytes:
        return hmac.digest(self.key, body, "sha256")[:_SIGNATURE_BYTES]


def invalid_cursor() -> Refusal:
    return Refusal(
        HTTPStatus.BAD_REQUEST,
        "invalid_cursor",
        "the cursor is not one of this listing, or is older than a day",
    )


def _digest(listing: tuple[str, ...]) -> bytes:
    whole = b"".join(struct.pack(">I", len(part)) + part for part in map(str.encode, listing))
    return hashlib.sha256(whole).digest()[:8]
