"""Simulates a print spooler on a Unix socket."""

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BYTE_PAUSE_S = 0.05


def http_response(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def deadline() -> float:
    """Return a deadline in 60 s, which no test reaches."""
    return time.monotonic() + 60


@contextmanager
def spooler(path: Path, reply: bytes, *, trickles: bool = False) -> Iterator[list[bytes]]:
    """Run a spooler that sends ``reply`` to one request. Yield the list of requests.

    With ``trickles``, the spooler sends the reply slowly: byte by byte, with a pause before each.
    """
    requests: list[bytes] = []
    is_over = threading.Event()

    def serve(server: socket.socket) -> None:
        try:
            connection, _ = server.accept()
        except OSError:
            return  # no request came
        with connection:
            try:
                requests.append(_read_request(connection))
                if trickles:
                    for byte in reply:
                        is_over.wait(BYTE_PAUSE_S)
                        connection.sendall(bytes([byte]))
                else:
                    connection.sendall(reply)
            except OSError:
                return  # the client disconnected

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        try:
            yield requests
        finally:
            is_over.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    match = re.search(rb"content-length:\s*(\d+)", head.lower())
    length = int(match[1]) if match else 0
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body
