"""Where the kiosk browser listens: a loopback address, and nothing else."""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class DebugAddress:
    """``host`` is an IP address of the loopback interface."""

    host: str
    port: int

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_debug_url(url: str) -> DebugAddress:
    """Read ``http://127.0.0.1:9222``. Raises ValueError for anything beyond this machine.

    `localhost` is taken as 127.0.0.1 without asking a resolver, which might say otherwise.
    """
    parts = urlsplit(url)
    host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname or ""
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise ValueError("kiosk_debug_url is not a loopback address, so it was not asked")
    if parts.scheme != "http" or parts.port is None or parts.username is not None:
        raise ValueError("kiosk_debug_url is not of the form http://127.0.0.1:PORT")
    return DebugAddress(host, parts.port)
