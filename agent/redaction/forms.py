"""The notations of a known secret: as it is, and in URLs, JSON, HTML, base64 and others."""

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus, unquote

SHORTEST_SECRET: Final = 4
"""Shorter words are not secrets, and would be masked everywhere."""
_IN_HTML: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"}
)
"""Like `html.escape`, whose module would keep 0.4 MiB of names in an idle daemon."""
_SHORTEST_ENCODED: Final = 8
"""The stable part of a shorter secret in base64 is a common syllable."""


def forms_of(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return every notation of ``secrets``, the longest first: a secret may contain another."""
    forms = {
        form
        for secret in secrets
        if len(secret) >= SHORTEST_SECRET
        for form in (*_notations(secret), *_base64_forms(secret))
        if len(form) >= SHORTEST_SECRET
    }
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def _notations(secret: str) -> Iterator[str]:
    yield secret
    yield unquote(secret)
    for quoted in (
        quote(secret, safe="", errors="surrogatepass"),
        quote(secret, safe="/", errors="surrogatepass"),
        quote_plus(secret, errors="surrogatepass"),
    ):
        yield quoted
        yield _with_lower_case_escapes(quoted)
    as_json = json.dumps(secret)[1:-1]
    yield as_json
    yield json.dumps(as_json)[1:-1]  # JSON inside of JSON
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield secret.translate(_IN_HTML)
    yield secret.replace('"', '\\"')


def _with_lower_case_escapes(quoted: str) -> str:
    first, *others = quoted.split("%")
    return "%".join((first, *(other[:2].lower() + other[2:] for other in others)))


def _base64_forms(secret: str) -> Iterator[str]:
    """Yield the base64 notations at any position in a longer text, such as user:password.

    Three bytes become four characters, so there are three alignments (RFC 4648).
    """
    content = secret.encode("utf-8", "surrogatepass")
    if len(content) < _SHORTEST_ENCODED:
        return
    yield content.hex()
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + content).decode()
        whole = encoded[(before * 8 + 5) // 6 : (before + len(content)) * 8 // 6]
        yield whole
        yield whole.replace("+", "-").replace("/", "_")
