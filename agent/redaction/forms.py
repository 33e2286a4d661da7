"""The forms in which a known secret turns up: as it is, and as other notations write it."""

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus, unquote

SHORTEST_SECRET: Final = 4
"""A shorter word would be masked all over the text, and is no secret."""
_IN_HTML: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"}
)
"""As `html.escape` does, whose module keeps 0.4 MiB of characters' names in an idle daemon."""
_SHORTEST_ENCODED: Final = 8
"""What is left of a shorter one in base64, without its neighbours' bits, is a common syllable."""


def forms_of(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return every form of ``secrets``, the longest first: a secret may hold another."""
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
    """Yield what base64 makes of it wherever it stands in a longer text, such as user:password.

    Three bytes become four characters, so there are three ways to be aligned (RFC 4648).
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
