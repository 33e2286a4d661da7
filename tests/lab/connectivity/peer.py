"""A program of the venue: a service, a service with a command stream, or a name server.

    python -m tests.lab.connectivity.peer service PORT
    python -m tests.lab.connectivity.peer stream PORT
    python -m tests.lab.connectivity.peer names NAME ADDRESS [UPSTREAM]

The service accepts each connection and closes it. The name server knows one name. It forwards
queries for other names to ``UPSTREAM``. Without ``UPSTREAM``, it answers that these names do not
exist. Each program prints "ready" when it can be used, and ends when stdin is closed.
"""

import os
import socket
import sys
import threading

from collectors.shared.dns import CLASS_IN, TYPES, write_question

_ANSWER_HEAD = b"\xc0\x0c" + TYPES["A"].to_bytes(2, "big") + CLASS_IN.to_bytes(2, "big")
"""The start of an A record. Its name is a pointer to the question (RFC 1035, section 4.1.4)."""
_TTL_S = (60).to_bytes(4, "big")
_HEADER_BYTES = 12
_NO_SUCH_NAME = 3
_RESPONSE_FLAGS = 0x8180  # a response; recursion is desired and available
_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: open\n\n"


def serve(port: int) -> None:
    with socket.create_server(("", port)) as server:
        print("ready", flush=True)
        while True:
            server.accept()[0].close()


def stream(port: int) -> None:
    """Begin a command stream on each connection, and send nothing more."""
    streams: list[socket.socket] = []
    with socket.create_server(("", port)) as server:
        print("ready", flush=True)
        while True:
            streams.append(server.accept()[0])
            streams[-1].sendall(_STREAM)


def resolve(name: str, address: str, upstream: str | None) -> None:
    question = write_question(name.split("."), "A") or b""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("", 53))
        print("ready", flush=True)
        while True:
            query, sender = sock.recvfrom(512)
            if query[_HEADER_BYTES:].lower() == question:
                record = _ANSWER_HEAD + _TTL_S + (4).to_bytes(2, "big") + socket.inet_aton(address)
                sock.sendto(_head_and_question(query, answers=1) + record, sender)
            elif upstream is None:
                sock.sendto(_head_and_question(query, code=_NO_SUCH_NAME), sender)
            else:
                threading.Thread(target=_forward, args=(sock, query, sender, upstream)).start()


def _forward(sock: socket.socket, query: bytes, sender: object, upstream: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as upstream_socket:
        upstream_socket.settimeout(30)
        try:
            upstream_socket.sendto(query, (upstream, 53))
            sock.sendto(upstream_socket.recv(512), sender)
        except OSError:
            return


def _head_and_question(query: bytes, *, code: int = 0, answers: int = 0) -> bytes:
    flags = (_RESPONSE_FLAGS | code).to_bytes(2, "big")
    head = query[:2] + flags + b"\0\1" + answers.to_bytes(2, "big") + bytes(4)
    return head + query[_HEADER_BYTES:]


def _end_with_stdin() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    if sys.argv[1] == "service":
        serve(int(sys.argv[2]))
    elif sys.argv[1] == "stream":
        stream(int(sys.argv[2]))
    else:
        resolve(sys.argv[2], sys.argv[3], sys.argv[4] if sys.argv[4:] else None)
