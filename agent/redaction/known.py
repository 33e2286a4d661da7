"""The secrets that this process has read, and that it must not write anywhere.

There is one set for the whole process. A secret that one module has read must be masked in the
messages, files and reports of all modules.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from agent.redaction.named_values import names_a_secret
from agent.redaction.redactor import Redactor
from agent.redaction.shapes import mask_typical_secrets
from agent.redaction.userinfo import replace_userinfo

KNOWN_MAX: Final = 64

_known: OrderedDict[str, None] = OrderedDict()
_redactor = Redactor()


def remember(*secrets: str) -> None:
    """Add secrets. Each new API key adds a secret, so only the latest KNOWN_MAX are kept."""
    global _redactor  # noqa: PLW0603 - one set for the whole process
    are_known = all(secret in _known for secret in secrets)
    for secret in secrets:
        _known[secret] = None
        _known.move_to_end(secret)
    if are_known:
        return
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
    """Return the redactor that masks the known secrets."""
    return _redactor


def redact(text: str) -> str:
    """Return ``text`` with masked secrets."""
    return _redactor.redact(text)


def redact_value(key: str, value: Any) -> Any:
    """Return the value of ``key`` with masked secrets."""
    return _redactor.redact_value(key, value)


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for another program, without secrets.

    User and password are removed from the proxy variables. Other variables that contain a secret
    are left out. Only the proxy variables are searched for user and password. In a variable such as
    PATH, such a search would mistake a path with an `@` for a URL with a user, and PATH would be
    left out.
    """
    addresses = {
        name: replace_userinfo(value) if name.lower().endswith("_proxy") else value
        for name, value in environment.items()
    }
    return {name: value for name, value in addresses.items() if not _has_secret(name, value)}


def _has_secret(name: str, value: str) -> bool:
    return names_a_secret(name) or mask_typical_secrets(_redactor.mask_known(value)) != value
