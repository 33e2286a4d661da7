"""Masks secrets that have a typical form: API keys, tokens, private keys, credentials."""

import re
from typing import Final

MASK: Final = "***"
"""Replaces every secret."""

# Each pattern takes linear time: its repetitions are possessive (`++`) or bounded. `.*?` in
# _PRIVATE_KEY ends at the end of the text at the latest, so it never has to backtrack.
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r".*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_API_KEY: Final = re.compile(r"vck_[A-Za-z0-9_\-]{4,}+")
# A retail key is a prefix, then `_live_` or `_test_`, then 64 characters. Similar keys of other
# services are shorter, and are masked too.
_RETAIL_KEY: Final = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z0-9]{1,32}+_(?:live|test)_"
    r"(?:[A-Za-z0-9_\-.~+/=]{64,}+|[A-Za-z0-9]{20,}+)"
)
_JSON_WEB_TOKEN: Final = re.compile(  # RFC 7519; `eyJ` is `{"` in base64
    r"(?<![A-Za-z0-9_\-])eyJ[A-Za-z0-9_\-]{6,}+(?:\.[A-Za-z0-9_\-]*+){1,4}"
)
PLACEHOLDER: Final = r"<[A-Za-z _\-]{1,32}+>(?=[\s,;.:)]|\Z)"
"""A name in angle brackets, which stands for a credential: `Authorization: Bearer <API key>`."""
_BEARER: Final = re.compile(
    r"(?i)(?<![a-z0-9])(bearer(?:[ \t]|%20|\\t){1,4})"
    rf"(?!token\b|auth|\*|{PLACEHOLDER})[^\s\"',;]{{4,}}+"
)
# A credential contains a capital, a digit or padding. A word of prose does not.
_HTTP_CREDENTIAL: Final = re.compile(
    r"(?<![A-Za-z0-9])((?i:basic|negotiate|ntlm)(?:[ \t]|%20){1,4})"
    r"(?=[A-Za-z0-9+/_\-]{1,512}?[A-Z0-9+/=])[A-Za-z0-9+/_\-]{6,}+={0,2}"
)


def mask_typical_secrets(text: str) -> str:
    """Return ``text``, with everything masked that has the form of a secret."""
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub(MASK, text)
    if "vck_" in text:
        text = _API_KEY.sub(MASK, text)
    if "_live_" in text or "_test_" in text:
        text = _RETAIL_KEY.sub(MASK, text)
    if "eyJ" in text:
        text = _JSON_WEB_TOKEN.sub(MASK, text)
    return _HTTP_CREDENTIAL.sub(rf"\1{MASK}", _BEARER.sub(rf"\1{MASK}", text))
