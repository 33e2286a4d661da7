"""Returns all notations of a known secret, such as those in URLs, JSON, HTML and base64."""

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus, unquote

SHORTEST_SECRET: Final = 4
"""Shorter texts are ignored. They are not secrets, and masking them would damage other text."""
_IN_HTML: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"}
)
"""The escapes of `html.escape`. The module `html` is not imported: it needs 0.4 MiB of memory."""
_SHORTEST_ENCODED: Final = 8
"""Minimum length, in bytes, of a secret whose hex and base64 notations are masked. In base64, the
first and the last characters of a secret depend on the text around it. For a shorter secret, the
remaining characters are so few that they would also match ordinary text."""


def forms_of(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return every notation of ``secrets``.

    Longer notations come first, because a notation can contain a shorter one.
    """
    forms = {
        form
        for secret in secrets
        if len(secret) >= SHORTEST_SECRET
        for form in (*_notations(secret), *_encoded_forms(secret))
        if len(form) >= SHORTEST_SECRET
    }
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def _notations(secret: str) -> Iterator[str]:
    yield secret
    yield unquote(secret)
    for form in (
        quote(secret, safe="", errors="surrogatepass"),
        quote(secret, safe="/", errors="surrogatepass"),
        quote_plus(secret, errors="surrogatepass"),
    ):
        yield form
        yield _with_lower_case_escapes(form)
    as_json = json.dumps(secret)[1:-1]
    yield as_json
    yield json.dumps(as_json)[1:-1]  # JSON inside of JSON
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield secret.translate(_IN_HTML)
    yield secret.replace('"', '\\"')


def _with_lower_case_escapes(text: str) -> str:
    first, *others = text.split("%")
    return "%".join((first, *(other[:2].lower() + other[2:] for other in others)))


def _encoded_forms(secret: str) -> Iterator[str]:
    """Yield the hex notation, and the base64 notations of a secret inside of a longer text.

    An example of such a text is ``user:password``. Base64 encodes groups of three bytes (RFC 4648),
    so the notation depends on the position of the secret's first byte in a group.
    """
    content = secret.encode("utf-8", "surrogatepass")
    if len(content) < _SHORTEST_ENCODED:
        return
    yield content.hex()
    for before in range(3):
        encoded_text = base64.b64encode(b"\0" * before + content).decode()
        # Only these characters do not depend on the text before and after the secret. A byte has 8
        # bits, and a character stands for 6 bits.
        certain_part = encoded_text[(before * 8 + 5) // 6 : (before + len(content)) * 8 // 6]
        yield certain_part
        yield certain_part.replace("+", "-").replace("/", "_")
