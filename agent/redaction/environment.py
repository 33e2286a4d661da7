"""The environment that another program may have: no secret is in it."""

from collections.abc import Mapping

from agent.redaction.known import redactor
from agent.redaction.named_values import names_a_secret
from agent.redaction.shapes import without_shapes
from agent.redaction.userinfo import address_of


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return ``environment`` with no more of a proxy than its address.

    A variable that holds a secret otherwise is left out. Paths are not taken for URLs: many hold
    an `@`, and without its PATH a program finds nothing.
    """
    addresses = {
        name: address_of(value) if name.lower().endswith("_proxy") else value
        for name, value in environment.items()
    }
    return {name: value for name, value in addresses.items() if not _holds_a_secret(name, value)}


def _holds_a_secret(name: str, value: str) -> bool:
    cleaned = without_shapes(redactor().without_known(value))
    return cleaned != value or names_a_secret(name)
