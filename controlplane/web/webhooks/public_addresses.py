"""A client for the webhooks of organizations, which connects to public addresses only.

The owner of an organization chooses the address. The client must not give owners access to the
network of the service, even if the host name resolves to a different address after a check. So
the client resolves the name itself, and connects to the address that it has checked.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Final

import httpx2

from controlplane.alerts.operations.routes import is_public

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Returns the IP addresses of a host name and port. Raises OSError."""
HTTPS_PORT: Final = 443


async def resolve_host(host: str, port: int) -> list[str]:
    results = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in results]


class PublicAddressTransport(httpx2.AsyncBaseTransport):
    """Sends requests to public addresses only. The certificate must be valid for the host name."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, resolve: Resolve = resolve_host) -> None:
        self._inner = inner
        self._resolve = resolve

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host = request.url.host
        try:
            addresses = await self._resolve(host, request.url.port or HTTPS_PORT)
        except (OSError, UnicodeError) as error:  # UnicodeError: the name is not a host name
            raise httpx2.ConnectError(f"{host}: {error}") from error
        if not addresses or not all(map(is_public, addresses)):
            raise httpx2.ConnectError(f"{host} has an address that is not public")
        request.url = request.url.copy_with(host=addresses[0])
        request.extensions = {**request.extensions, "sni_hostname": host}
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


def public_client(timeout_s: float) -> httpx2.AsyncClient:
    # Connections are not reused: the pool identifies them by address. A certificate was verified
    # for one host name only, but several hosts can have the same address. A proxy is not used,
    # because it would resolve the name again.
    limits = httpx2.Limits(max_keepalive_connections=0)
    inner = httpx2.AsyncHTTPTransport(limits=limits, trust_env=False)
    return httpx2.AsyncClient(
        transport=PublicAddressTransport(inner),
        timeout=timeout_s,
        follow_redirects=False,
        trust_env=False,
    )
