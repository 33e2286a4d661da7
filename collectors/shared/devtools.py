"""Parses the DevTools address of the kiosk browser, and the list of the browser's open pages."""

import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from collectors.shared.addresses import is_loopback, join_host_port

_FORM: Final = "kiosk_debug_url is not of the form http://127.0.0.1:PORT"
_INNER_PAGES: Final = ("devtools:", "chrome-extension:", "chrome-untrusted:")
"""URLs of pages that belong to the browser itself or to its extensions begin with these schemes."""


@dataclass(frozen=True, slots=True)
class DebugAddress:
    """The DevTools address of a browser. ``host`` is a loopback IP address."""

    host: str
    port: int

    @property
    def authority(self) -> str:
        return join_host_port(self.host, self.port)


def parse_debug_url(url: str) -> DebugAddress:
    """Parse a URL of the form ``http://127.0.0.1:9222``.

    `localhost` is read as 127.0.0.1. It is not resolved, because a resolver may return an address
    of another machine.

    Raises:
        ValueError: The URL has another form, or its address is not loopback. The message does not
            quote the URL, because it may contain a password.
    """
    try:
        parts = urlsplit(url)
        scheme, host, port, user = parts.scheme, parts.hostname, parts.port, parts.username
    except ValueError:
        raise ValueError(_FORM) from None
    if scheme != "http" or not host or port is None or user is not None:
        raise ValueError(_FORM)
    address = "127.0.0.1" if host == "localhost" else host
    if not is_loopback(address):
        raise ValueError("kiosk_debug_url is not a loopback address, so it was not used")
    return DebugAddress(address, port)


def open_pages(body: bytes) -> list[dict[str, Any]]:
    """Return the open pages in the reply to `GET /json/list`. Raises ValueError for other data."""
    try:
        targets = json.loads(body)
    except (ValueError, RecursionError):
        targets = None
    if not isinstance(targets, list):
        raise ValueError("the DevTools port did not list its pages")
    return [target for target in targets if _is_page(target)]


def _is_page(target: object) -> bool:
    return (
        isinstance(target, dict)
        and target.get("type") == "page"
        and not str(target.get("url", "")).startswith(_INNER_PAGES)
    )
