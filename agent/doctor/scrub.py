"""Takes secrets out of text that leaves the machine: the known ones, and what looks like one."""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

MASK: Final = "***"
SHORTEST_SECRET: Final = 4
"""A shorter word would be masked all over the text, and is no secret."""

_PATTERNS: Final = (
    re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
    ),
    re.compile(r"(?i)(?<=bearer )[^\s\"',;]+"),
    re.compile(r"(?i)(?<=authorization: basic )[^\s\"',;]+"),
    re.compile(r"(?<=://)[^/\s@\"']+(?=@)"),
)


class Scrubber:
    """``secrets`` are masked wherever they stand, also as URLs and JSON write them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {
            form
            for secret in secrets
            if len(secret) >= SHORTEST_SECRET
            for form in (
                secret,
                quote(secret, safe="", errors="surrogatepass"),
                secret.replace('"', '\\"'),
            )
        }
        # The longest first: a secret may hold another.
        self._secrets = sorted(forms, key=len, reverse=True)

    def clean(self, text: str) -> str:
        """Return ``text`` with every secret replaced by asterisks."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        for pattern in _PATTERNS:
            text = pattern.sub(MASK, text)
        return text
