"""API keys: how they are made and recognised.

A key is a prefix and 256 random bits, so a plain SHA-256 of it is enough to store: there is
nothing to guess that a slow password hash would protect. The key itself is shown once.
"""

import hashlib
import re
import secrets

PREFIX = "vck_"
_KEY = re.compile(r"vck_[A-Za-z0-9_-]{43}")
_BEARER = re.compile(r"Bearer +(\S+)", re.IGNORECASE)


def new_key() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def hash_key(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def parse_bearer(header: str | None) -> str | None:
    """Return the key in an ``Authorization`` header (RFC 6750), or None if there is none."""
    match = _BEARER.fullmatch((header or "").strip())
    if match is None or _KEY.fullmatch(match[1]) is None:
        return None
    return match[1]
