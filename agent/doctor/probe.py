"""Connections to the service, step by step: TCP, the proxy's tunnel, TLS, one request.

The socket's timeout limits the time of each step. The runner limits the time of all steps together.
"""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Final

from agent.rules.route import Proxy, Route

STEP_S: Final = 3.0


class ProxyRefused(Exception):
    """The proxy opened no tunnel. ``status`` is its reply's status; 0 if the reply is not HTTP."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def connect(host: str, port: int, timeout_s: float = STEP_S) -> socket.socket:
    """Open a TCP connection. Raises OSError."""
    return socket.create_connection((host, port), timeout=timeout_s)


@contextmanager
def request(
    sock: socket.socket, host: str, port: int, method: str, target: str, **headers: str
) -> Iterator[HTTPResponse]:
    """Send a request over an open connection and read the head of the reply.

    The connection stays open. Raises OSError, or HTTPException if the reply is not HTTP.
    """
    connection = HTTPConnection(host, port)
    connection.sock = sock
    connection.request(method, target, headers=headers)
    with HTTPResponse(sock, method=method) as reply:
        reply.begin()
        yield reply


@contextmanager
def connect_to_service(route: Route, tls: ssl.SSLContext) -> Iterator[socket.socket]:
    """Connect to the service. Uses the proxy of ``route``, if any, and TLS if the URL is https.

    Raises OSError, ssl.SSLError and ProxyRefused.
    """
    with connect(route.first_host, route.first_port) as sock:
        if not route.is_tls:
            yield sock
            return
        if route.proxy is not None:
            open_tunnel(sock, route.proxy, route)
        with tls.wrap_socket(sock, server_hostname=route.host) as tls_socket:
            yield tls_socket


def open_tunnel(sock: socket.socket, proxy: Proxy, route: Route) -> None:
    """Request a tunnel from an HTTP proxy (RFC 9110, section 9.3.6).

    Raises ProxyRefused, OSError.
    """
    headers = {"Proxy-Authorization": proxy.authorization} if proxy.authorization else {}
    try:
        # Closing the reply may drop buffered bytes. The service has sent none yet, because in TLS
        # the client sends first.
        with request(sock, route.host, route.port, "CONNECT", route.authority, **headers) as reply:
            status = reply.status
    except HTTPException as error:
        raise ProxyRefused(0, "the proxy's answer is not HTTP") from error
    if not 200 <= status < 300:
        raise ProxyRefused(status, f"the proxy answers {status} to CONNECT {route.authority}")


def unverified_tls() -> ssl.SSLContext:
    """Return a context that accepts every certificate. No secret is sent over its connections."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def request_date(sock: socket.socket, route: Route) -> str:
    """Return the Date header of the service's reply; "" if it has none. No credential is sent.

    Raises OSError.
    """
    target = route.path or "/"
    if route.proxy is not None and not route.is_tls:
        target = f"http://{route.authority}{target}"
    try:
        with request(sock, route.host, route.port, "HEAD", target, Connection="close") as reply:
            return reply.headers.get("Date", "").strip()
    except HTTPException:
        return ""
