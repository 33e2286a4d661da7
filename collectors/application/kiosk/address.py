"""The DevTools address of the kiosk browser. It must be a loopback address."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from collectors.shared.addresses import is_loopback, join_host_port

_FORM: Final = "kiosk_debug_url is not of the form http://127.0.0.1:PORT"


@dataclass(frozen=True, slots=True)
class DebugAddress:
    """``host`` is an IP address of the loopback interface."""

    host: str
    port: int

    @property
    def authority(self) -> str:
        return join_host_port(self.host, self.port)


def parse_debug_url(url: str) -> DebugAddress:
    """Read ``http://127.0.0.1:9222``. Raises ValueError, without ``url`` in it, for other forms.

    `localhost` is 127.0.0.1. A resolver is not asked: it may return another address.
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
