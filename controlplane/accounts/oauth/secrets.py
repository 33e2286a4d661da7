"""Codes and tokens of OAuth. Each has a prefix that names its kind, and 256 random bits.

The database stores the SHA-256 hashes of codes and tokens, without salt, as for API keys.
"""

import re
import secrets
from datetime import timedelta
from typing import Final, Literal

Prefix = Literal["voc_", "voa_", "vor_"]
CODE: Final[Prefix] = "voc_"
ACCESS: Final[Prefix] = "voa_"
REFRESH: Final[Prefix] = "vor_"
CODE_LIFETIME: Final = timedelta(seconds=60)
ACCESS_LIFETIME: Final = timedelta(hours=1)
REFRESH_LIFETIME: Final = timedelta(days=30)
"""Lifetime of an unused refresh token. Each use returns a new refresh token."""
_SECRET: Final = re.compile(r"(voc_|voa_|vor_)[A-Za-z0-9_-]{43}")
_BEARER: Final = re.compile(r"Bearer +(\S+)", re.IGNORECASE)
_CLIENT: Final = re.compile(r"vcl_[A-Za-z0-9_-]{22}")


def new_secret(prefix: Prefix) -> str:
    return prefix + secrets.token_urlsafe(32)


def new_client_id() -> str:
    """Return a new client id. It is not secret: URLs contain it."""
    return "vcl_" + secrets.token_urlsafe(16)


def is_secret(text: str, prefix: Prefix) -> bool:
    return text.startswith(prefix) and _SECRET.fullmatch(text) is not None


def is_client_id(text: str) -> bool:
    return _CLIENT.fullmatch(text) is not None


def parse_access_token(header: str | None) -> str | None:
    """Return the access token in an ``Authorization`` header (RFC 6750), or None."""
    match = _BEARER.fullmatch((header or "").strip())
    return match[1] if match is not None and is_secret(match[1], ACCESS) else None
