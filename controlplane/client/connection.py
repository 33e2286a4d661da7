"""Opens a client. The address and the API key are checked before anything is sent."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from agent.wire.addresses import is_loopback_url, is_web_url
from controlplane.client.calls import HEADERS
from controlplane.client.errors import UsageError
from controlplane.client.operations import PAGE_SIZE, OperationsClient
from controlplane.client.waiting import RetryPolicy

URL_VARIABLE = "VENUE_CONTROL_URL"
DEFAULT_URL = "http://127.0.0.1:8470"
TIMEOUT = httpx2.Timeout(90, connect=20)
"""In seconds. A service computes figures at a low priority, so it replies late if it is busy."""
IDLE_MAX_S = 3.0
"""A connection that was idle for longer is not used again. The service closes idle connections
after five seconds, and a request must not meet a connection that is being closed.
"""
KEY_MAX = 4096
"""Maximum number of characters that are read from the file of a key."""


@dataclass(frozen=True, slots=True)
class KeySource:
    """The sources of a key: the file that ``option`` names, or else an environment variable.

    ``name`` is the name of the key in messages.
    """

    name: str
    variable: str
    option: str


API_KEY = KeySource("API key", "VENUE_CONTROL_API_KEY", "--api-key-file")
RETAIL_KEY = KeySource("retail API key", "VENUE_CONTROL_RETAIL_KEY", "--retail-key-file")


@contextmanager
def connect(
    base_url: str | None,
    api_key_file: str | None,
    environment: Mapping[str, str],
    retry_policy: RetryPolicy | None = None,
) -> Iterator[OperationsClient]:
    """Open a client, with the settings of the command line and of the environment."""
    url = service_url(base_url, environment)
    key = read_key(api_key_file, environment)
    headers = HEADERS | {"Authorization": f"Bearer {key}", "Prefer": f"maxpagesize={PAGE_SIZE}"}
    with http_client(url, headers) as http:
        yield OperationsClient(http, retry_policy)


def http_client(
    url: str, headers: Mapping[str, str], transport: httpx2.BaseTransport | None = None
) -> httpx2.Client:
    """Return an HTTP client for the service at ``url``.

    Only encrypted calls need the trusted certificates. A client that makes no such calls does not
    read the certificates, and so saves 20 ms.
    """
    return httpx2.Client(
        base_url=url,
        headers=headers,
        timeout=TIMEOUT,
        limits=httpx2.Limits(keepalive_expiry=IDLE_MAX_S),
        trust_env=not is_loopback_url(url),
        verify=not url.lower().startswith("http://"),
        transport=transport,
    )


def service_url(base_url: str | None, environment: Mapping[str, str]) -> str:
    """Return the address of the service, ending in ``/``.

    Raises:
        UsageError: the address is not a web address, or the API key would be sent unencrypted.
    """
    url = base_url or environment.get(URL_VARIABLE) or DEFAULT_URL
    if not is_web_url(url):
        raise UsageError(f"{url!r} is not the address of a service, such as https://host")
    parts = urlsplit(url)
    if parts.scheme == "http" and not is_loopback_url(url):
        raise UsageError(
            f"refusing http to {parts.hostname}: the API key would be sent unencrypted",
            "Use https, or http only for loopback.",
        )
    return url.rstrip("/") + "/"


def read_key(path: str | None, environment: Mapping[str, str], source: KeySource = API_KEY) -> str:
    """Return the key from the file, or else from the environment. Raises UsageError."""
    if path is None:
        key = environment.get(source.variable, "").strip()
        origin = f"${source.variable}"
    else:
        try:
            with Path(path).open(encoding="utf-8") as file:
                key = file.read(KEY_MAX).strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise UsageError(f"cannot read the {source.name} from {path}: {reason}") from error
        origin = path
    if not key:
        raise UsageError(
            f"there is no {source.name} in {origin}",
            f"Set it with {source.option} FILE or ${source.variable}.",
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        article = "an" if source.name[0] in "AEIOU" else "a"
        raise UsageError(f"the content of {origin} is not {article} {source.name}")
    return key
