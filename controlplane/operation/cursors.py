"""Signed cursors of listings, at most 128 characters.

A cursor is valid for 24 hours, and only for the listing that it came from. The organization and the
kind of rows define a listing. In some operations, the filters and the order are also part of this
definition.

Most cursors name the last row of a page by the sort value and the row key (``position``) of the
row. Therefore rows that are added between two pages cause neither repeated nor skipped rows. Some
listings store other numbers in these two fields, such as the number of rows before the page.

A cursor is the unpadded base64url (RFC 4648, section 5) of these fields: expiry (4 bytes, seconds
since 1970), digest of the listing (8 bytes), sort value (8 bytes), position (8 bytes), and the
HMAC-SHA256 of the other fields (16 bytes).
"""

import base64
import binascii
import hashlib
import hmac
import struct
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final, NamedTuple

from agent.wire.limits import CURSOR_MAX
from controlplane.operation.errors import Refusal

LIFETIME: Final = timedelta(hours=24)
POSITION_MAX: Final = 2**63 - 1
_FORMAT: Final = struct.Struct(">I8sqq")
_SIGNATURE_BYTES: Final = 16


class SortKey(NamedTuple):
    """The two numbers in a cursor: for most listings, the sort key of the last row of a page.

    ``position`` is the row key, and ``value`` is the sort value. ``value`` is 0 if rows are sorted
    by their row keys only, or by a text, which does not fit into a cursor.
    """

    value: int
    position: int


@dataclass(frozen=True, slots=True)
class Cursors:
    """Writes and reads cursors.

    Attributes:
        key: secret that signs the cursors.
    """

    key: bytes
    now: datetime

    def write(self, listing: tuple[str, ...], sort_key: SortKey) -> str:
        """Return the cursor of the page after ``sort_key``.

        Args:
            listing: the values that must be the same on each page. The first value is the
                organization.
        """
        expires_s = int((self.now + LIFETIME).timestamp())
        body = _FORMAT.pack(expires_s, _digest(listing), sort_key.value, sort_key.position)
        return base64.urlsafe_b64encode(body + self._sign(body)).rstrip(b"=").decode()

    def read(self, listing: tuple[str, ...], cursor: str) -> SortKey:
        """Return the sort key that `write` stored in the cursor.

        Raises:
            Refusal: ``invalid_cursor``.
        """
        try:
            if len(cursor) > CURSOR_MAX:
                raise ValueError("too long")
            padded_text = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
            raw = base64.b64decode(padded_text, altchars=b"-_", validate=True)
            body, signature = raw[:-_SIGNATURE_BYTES], raw[-_SIGNATURE_BYTES:]
            if not hmac.compare_digest(signature, self._sign(body)):
                raise ValueError("not signed by this service")
            expires_s, digest, value, position = _FORMAT.unpack(body)
            if digest != _digest(listing) or expires_s <= self.now.timestamp():
                raise ValueError("another listing, or expired")
        except (ValueError, binascii.Error, struct.error):
            raise invalid_cursor() from None
        return SortKey(value, position)

    def _sign(self, body: bytes) -> bytes:
        return hmac.digest(self.key, body, "sha256")[:_SIGNATURE_BYTES]


def invalid_cursor() -> Refusal:
    return Refusal(
        HTTPStatus.BAD_REQUEST,
        "invalid_cursor",
        "The cursor belongs to another listing or is older than 24 hours. Start without a cursor.",
    )


def _digest(listing: tuple[str, ...]) -> bytes:
    # With the length of each part, different parts cannot give the same message.
    message = b"".join(struct.pack(">I", len(part)) + part for part in map(str.encode, listing))
    return hashlib.sha256(message).digest()[:8]
