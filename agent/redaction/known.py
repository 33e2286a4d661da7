"""The secrets that this process has read, which it must not write anywhere.

There is one set for the whole process: whichever part reads a key, no part may write it into a
message, a file or a report.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from agent.redaction.named_values import names_a_secret
from agent.redaction.redactor import Redactor
from agent.redaction.shapes import without_shapes
from agent.redaction.userinfo import address_of

KNOWN_MAX: Final = 64

_known: OrderedDict[str, None] = OrderedDict()
_redactor = Redactor()


def remember(*secrets: str) -> None:
    """Add secrets. Keys change, so the oldest are dropped when there are more than KNOWN_MAX."""
    global _redactor  # noqa: PLW0603 - see above
    if all(secret in _known for secret in secrets):
        return
    for secret in secrets:
        _known[secret] = None
    while len(_known) > KNOWN_MAX:
        _known.popitem(last=False)
    _redactor = Redactor(_known)


def forget() -> None:
    """Drop every secret."""
    global _redactor  # noqa: PLW0603
    _known.clear()
    _redactor = Redactor()


def known_secrets() -> tuple[str, ...]:
    """Return the known secrets."""
    return tuple(_known)


def redactor() -> Redactor:
    """Return the redactor of the known secrets."""
    return _redactor


def redact(text: str) -> str:
    """Return ``text`` without any secret."""
    return _redactor.redact(text)


def redact_value(key: str, value: Any) -> Any:
    """Return the value of ``key`` without any secret."""
    return _redactor.redact_value(key, value)


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for another program: proxies keep only their address, and other
    variables with a secret are left out.

    Paths are not treated as URLs: many contain an `@`, and a program needs its PATH.
    """
    addresses = {
        name: address_of(value) if name.lower().endswith("_proxy") else value
        for name, value in environment.items()
    }
    return {name: value for name, value in addresses.items() if not _has_secret(name, value)}


def _has_secret(name: str, value: str) -> bool:
    return names_a_secret(name) or without_shapes(_redactor.without_known(value)) != value
