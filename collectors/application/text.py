"""Strings from outside: bounded, without control characters, without the names of people."""

import hashlib
import re
import unicodedata

from collectors.contract import TEXT_MAX

_OWNED_PATH = re.compile(r"^(/home|/Users|/media|/run/media|/run/user|/var/run/user)/[^/]+")
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def clean(text: str, limit: int = TEXT_MAX) -> str:
    """Return ``text`` on one line, printable and at most ``limit`` characters long."""
    printable = "".join(
        " " if unicodedata.category(char) in _UNPRINTABLE else char for char in text[: 2 * limit]
    )
    return " ".join(printable.split())[:limit]


def decode(data: bytes) -> str:
    """Read bytes of unknown origin as UTF-8; what is not becomes U+FFFD."""
    return data.decode("utf-8", "replace")


def without_owner(path: str) -> str:
    """Replace the account's name in a path below a home or media directory by ``*``."""
    return _OWNED_PATH.sub(r"\1/*", path)


def fingerprint(identifier: str) -> str:
    """Stand in for a serial-like identifier: equal inputs stay equal, the input stays here."""
    digest = hashlib.blake2s(identifier.strip().encode("utf-8", "replace"), person=b"venue-id")
    return digest.hexdigest()[:16]
