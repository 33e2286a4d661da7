"""Parses the parameters of OAuth requests.

Each parameter except ``resource`` is accepted only once, and only certain characters are allowed.
This module does not import Authlib, so that a process loads Authlib only for calls that need it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from controlplane.operation.errors import invalid_request

PARAMETERS_MAX: Final = 24
QUERY_MAX_BYTES: Final = 4096
RESOURCE: Final = "resource"
"""The only parameter that may be repeated (RFC 8707, 2)."""
_ERROR_SAFE: Final = re.compile(r"[\x20\x21\x23-\x5b\x5d-\x7e]*")
"""The characters that ``error_description`` may contain (RFC 6749, 5.2).

Authlib copies parameters into error descriptions, so parameters are limited to these characters.
"""
_STATE_CHARACTERS: Final = re.compile(r"[\x20-\x7e]*")
"""The characters that ``state`` may contain (RFC 6749, A.5)."""


@dataclass(frozen=True, slots=True)
class OAuthRequest:
    """An OAuth request. ``issuer`` is the address of this service.

    ``resources`` has the values of the parameter ``resource``. ``parameters`` has all other
    parameters.
    """

    method: str
    issuer: str
    path: str
    parameters: Mapping[str, str]
    resources: tuple[str, ...] = ()

    @property
    def query(self) -> str:
        """Return all parameters, including ``resource``, as a query string."""
        pairs = [*self.parameters.items(), *((RESOURCE, each) for each in self.resources)]
        return urlencode(pairs)


@dataclass(slots=True)
class OAuthReply:
    """A reply of the authorization server. ``location`` is the address of a redirect."""

    status: int
    body: Mapping[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    location: str | None = None


def read_parameters(text: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the parameters in ``application/x-www-form-urlencoded`` text, and the resources.

    The resources are the values of the parameter ``resource``. Parameters without a value count as
    omitted (RFC 6749, 3.1). Raises a refusal if the text is not valid.
    """
    if len(text) > QUERY_MAX_BYTES:
        raise invalid_request(f"the parameters are longer than {QUERY_MAX_BYTES} bytes")
    try:
        pairs = parse_qsl(text, max_num_fields=PARAMETERS_MAX, errors="strict")
    except ValueError:
        raise invalid_request("there are too many parameters, or they are not UTF-8") from None
    parameters: dict[str, str] = {}
    resources: list[str] = []
    for name, value in pairs:
        _require_characters(name, value)
        if name == RESOURCE:
            resources.append(value)
        elif name in parameters:
            raise invalid_request("a parameter is repeated")
        else:
            parameters[name] = value
    return parameters, tuple(resources)


def _require_characters(name: str, value: str) -> None:
    permitted_characters = _STATE_CHARACTERS if name == "state" else _ERROR_SAFE
    if not (_ERROR_SAFE.fullmatch(name) and permitted_characters.fullmatch(value)):
        raise invalid_request("a parameter contains characters that are not allowed")
