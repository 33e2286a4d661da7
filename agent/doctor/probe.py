"""Connections to the service, step by step: TCP, the proxy's tunnel, TLS, one bare request.

Everything is bounded in time by the socket's timeout and in bytes here.
"""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from agent.doctor.route import Proxy, Route

STEP_S: Final = 3.0
HEAD_MAX_BYTES: Final = 65536
HEADERS_MAX: Final = 100


class ProxyRefused(Exception):
    """The proxy's answer to CONNECT; ``status`` is 0 when it was no HTTP."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """The head of an answer; header names in lower case."""

    status: int
    headers: dict[str, str]


def connect(host: str, port: int, timeout_s: float = STEP_S) -> socket.socket:
    """Open a TCP connection. Raises OSError."""
    return socket.create_connection((host, port), timeout=timeout_s)


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
    target = f"{route.host}:{route.port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    sock.sendall("\r\n".join([*lines, "", ""]).encode())
    head = parse_head(_read_head(sock))
    if head is None:
        raise ProxyRefused(0, "its answer is no HTTP")
    if not 200 <= head.status < 300:
        raise ProxyRefused(head.status, f"it answers {head.status} to CONNECT {target}")


def start_tls(sock: socket.socket, host: str, context: ssl.SSLContext) -> ssl.SSLSocket:
    """Shake hands. Raises ssl.SSLError, OSError."""
    return context.wrap_socket(sock, server_hostname=host)


def unverified_tls() -> ssl.SSLContext:
    """For looking at a certificate or a Date that is not trusted; no secret is sent over it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def request_head(sock: socket.socket, route: Route) -> ResponseHead | None:
    """Ask for the head of the service's first page, without a credential. Raises OSError."""
    target = route.path or "/"
    if route.proxy is not None and not route.is_tls:
        target = f"http://{route.host}:{route.port}{target}"
    request = f"HEAD {target} HTTP/1.1\r\nHost: {route.host}\r\nConnection: close\r\n\r\n"
    sock.sendall(request.encode())
    return parse_head(_read_head(sock))


def _read_head(sock: socket.socket) -> bytes:
    """Read to the end of the head, and no byte further: a tunnel begins there."""
    head = b""
    while not head.endswith(b"\r\n\r\n") and len(head) < HEAD_MAX_BYTES:
        byte = sock.recv(1)
        if not byte:
            break
        head += byte
    return head


def parse_head(head: bytes) -> ResponseHead | None:
    """Read a status line and headers (RFC 9112); None when it is not HTTP."""
    first, _, rest = head.partition(b"\r\n")
    words = first.split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        return None
    headers = {}
    for line in rest.split(b"\r\n")[:HEADERS_MAX]:
        name, separator, value = line.partition(b":")
        if separator:
            headers[name.strip().lower().decode("latin-1")] = value.strip().decode("latin-1")
    return ResponseHead(int(words[1][:6]), headers)
