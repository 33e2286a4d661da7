"""Connections to the service, step by step: TCP, the proxy's tunnel, TLS, one bare request.

Each step is bounded in time by the socket's timeout, and all of them by the runner.
"""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Final

from agent.doctor.route import Proxy, Route

STEP_S: Final = 3.0


class ProxyRefused(Exception):
    """The proxy's answer to CONNECT; ``status`` is 0 when it was no HTTP."""

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
    """Ask over an open connection, which stays open, and read the head of the reply.

    Raises OSError, HTTPException when the answer is no HTTP.
    """
    connection = HTTPConnection(host, port)
    connection.sock = sock
    connection.request(method, target, headers=headers)
    with HTTPResponse(sock, method=method) as reply:
        reply.begin()
        yield reply


@contextmanager
def connect_to_service(route: Route) -> Iterator[socket.socket]:
    """Connect to the service itself, through the proxy's tunnel where TLS goes through one.

    Raises OSError and ProxyRefused.
    """
    with connect(route.first_host, route.first_port) as sock:
        if route.proxy is not None and route.is_tls:
            open_tunnel(sock, route.proxy, route)
        yield sock


def open_tunnel(sock: socket.socket, proxy: Proxy, route: Route) -> None:
    """Ask an HTTP proxy for a tunnel (RFC 9110, section 9.3.6). Raises ProxyRefused, OSError."""
    headers = {"Proxy-Authorization": proxy.authorization} if proxy.authorization else {}
    try:
        # Nothing behind the head is lost with it: in TLS it is we who speak first.
        with request(sock, route.host, route.port, "CONNECT", route.authority, **headers) as reply:
            status = reply.status
    except HTTPException as error:
        raise ProxyRefused(0, "its answer is no HTTP") from error
    if not 200 <= status < 300:
        raise ProxyRefused(status, f"it answers {status} to CONNECT {route.authority}")


def start_tls(sock: socket.socket, host: str, context: ssl.SSLContext) -> ssl.SSLSocket:
    """Shake hands. Raises ssl.SSLError, OSError."""
    return context.wrap_socket(sock, server_hostname=host)


def unverified_tls() -> ssl.SSLContext:
    """For looking at a certificate or a Date that is not trusted; no secret is sent over it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def request_date(sock: socket.socket, route: Route) -> str:
    """Ask for the Date of the service's first page, without a credential; "" where it has none.

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
