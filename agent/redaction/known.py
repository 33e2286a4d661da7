"""The secrets that this process has come across: what it has read it must not tell.

One set for the whole process, as logging has one root: whichever part reads a key, no other part
may write it into a message, a file or a report.
"""

from collections import OrderedDict
from typing import Any, Final

from agent.redaction.redactor import Redactor

KNOWN_MAX: Final = 64

_known: OrderedDict[str, None] = OrderedDict()
_redactor = Redactor()


def remember(*secrets: str) -> None:
    """Know ``secrets`` from now on. Keys change: the oldest of too many is forgotten."""
    global _redactor  # noqa: PLW0603 - see above
    if all(secret in _known for secret in secrets):
        return
    for secret in secrets:
        _known[secret] = None
    while len(_known) > KNOWN_MAX:
        _known.popitem(last=False)
    _redactor = Redactor(_known)


def forget() -> None:
    """Know no secret any more."""
    global _redactor  # noqa: PLW0603
    _known.clear()
    _redactor = Redactor()


def known_secrets() -> tuple[str, ...]:
    """Return the secrets known by now."""
    return tuple(_known)


def redactor() -> Redactor:
    """Return what masks the secrets known by now."""
    return _redactor


def redact(text: str) -> str:
    """Return ``text`` without any secret."""
    return _redactor.redact(text)


def redact_value(key: str, value: Any) -> Any:
    """Return the value of ``key`` without any secret."""
    return _redactor.redact_value(key, value)
