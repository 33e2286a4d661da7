"""How a client is opened: the address and the API key are checked before anything is sent."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from agent.wire.addresses import is_loopback_url, is_web_url
from controlplane.cli.errors import UsageError
from controlplane.client.operations import PAGE_SIZE, OperationsClient
from controlplane.client.waiting import Patience

URL_VARIABLE = "VENUE_CONTROL_URL"
KEY_VARIABLE = "VENUE_CONTROL_API_KEY"
DEFAULT_URL = "http://127.0.0.1:8470"
TIMEOUT_S = 20
KEY_MAX = 4096


@contextmanager
def connect(
    base_url: str | None,
    api_key_file: str | None,
    environment: Mapping[str, str],
    patience: Patience | None = None,
) -> Iterator[OperationsClient]:
    """Open a client by what the command line and the environment say."""
    url = _checked_url(base_url or environment.get(URL_VARIABLE) or DEFAULT_URL)
    key = read_key(api_key_file, environment)
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Prefer": f"maxpagesize={PAGE_SIZE}",
        "User-Agent": "venue-control",
    }
    with httpx2.Client(
        base_url=url, headers=headers, timeout=TIMEOUT_S, trust_env=not is_loopback_url(url)
    ) as http:
        yield OperationsClient(http, patience)


def read_key(path: str | None, environment: Mapping[str, str]) -> str:
    """Return the API key from the file, or else from the environment."""
    if path is None:
        key = environment.get(KEY_VARIABLE, "").strip()
        source = f"${KEY_VARIABLE}"
    else:
        try:
            with Path(path).open(encoding="utf-8") as file:
                key = file.read(KEY_MAX).strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise UsageError(f"cannot read the API key from {path}: {reason}") from error
        source = path
    if not key:
        raise UsageError(
            f"there is no API key in {source}",
            f"Give it by --api-key-file FILE or ${KEY_VARIABLE}.",
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(f"what is in {source} is not an API key")
    return key


def _checked_url(url: str) -> str:
    if not is_web_url(url):
        raise UsageError(f"{url!r} is not the address of a service: https://host")
    parts = urlsplit(url)
    if parts.scheme == "http" and not is_loopback_url(url):
        raise UsageError(
            f"refusing http to {parts.hostname}: the API key would travel in the clear",
            "Use https, or http only for loopback.",
        )
    return url.rstrip("/") + "/"
