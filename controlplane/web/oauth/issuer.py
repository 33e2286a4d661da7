"""The OAuth issuer of a request.

The issuer is the configured origin (``--origin``) or else the origin of the request. Without TLS,
OAuth is available on the same machine only.
"""

import ipaddress
import re
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

from controlplane.operation.errors import Refusal
from controlplane.web.core import Core

_HOST: Final = re.compile(r"[a-z0-9.-]{1,253}(:[0-9]{1,5})?|\[[0-9a-f:.]{2,45}\](:[0-9]{1,5})?")


def issuer_of(core: Core, request: Request) -> str:
    """Return the issuer (RFC 8414, section 2).

    Raises:
        Refusal: the connection is neither encrypted nor local.
    """
    origin = core.settings.origin or f"{request.url.scheme}://{request.headers.get('host', '')}"
    origin = origin.lower()
    if not _is_private(origin):
        raise Refusal(
            HTTPStatus.BAD_REQUEST,
            "insecure_transport",
            "OAuth needs https: start the service with --origin https://...",
        )
    return origin


def _is_private(origin: str) -> bool:
    parts = urlsplit(origin) if _HOST.fullmatch(origin.partition("://")[2]) else None
    if parts is None or not parts.hostname:
        return False
    if parts.scheme == "https" or parts.hostname == "localhost":
        return True
    try:
        return ipaddress.ip_address(parts.hostname).is_loopback
    except ValueError:
        return False
