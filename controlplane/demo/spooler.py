"""The simulated print spooler of the demo. It lists print queues and jobs, and prints nothing.

    python -m controlplane.demo.spooler lan|loopback SOCKET

The first argument is the network of the demo, and selects the print queues. ``SOCKET`` is the
descriptor of a listening socket.
"""

import socket
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Final

from controlplane.demo import ipp
from controlplane.demo.venue import QUEUES, QUEUES_WITHOUT_LAN, Queue

GET_JOBS: Final = 0x000A
CUPS_GET_PRINTERS: Final = 0x4002
_PENDING: Final = 3  # job-state (RFC 8011, section 5.3.7)
_REQUEST_MAX: Final = 65536


def printers(queues: Sequence[Queue]) -> Iterator[ipp.Group]:
    for queue in queues:
        state = ipp.STOPPED if queue.is_stopped else ipp.IDLE
        reason = "paused" if queue.is_stopped else "none"
        yield (
            ipp.PRINTER_GROUP,
            (
                (ipp.NAME, "printer-name", queue.name),
                (ipp.TEXT, "printer-info", queue.info),
                (ipp.TEXT, "printer-make-and-model", queue.model),
                (ipp.ENUM, "printer-state", state),
                (ipp.KEYWORD, "printer-state-reasons", reason),
                (ipp.ENUM, "printer-type", 0),
                (ipp.BOOLEAN, "printer-is-accepting-jobs", True),
                (ipp.URI, "device-uri", queue.uri),
            ),
        )


def jobs(queues: Sequence[Queue], now: float) -> Iterator[ipp.Group]:
    """Yield the waiting jobs. ``now`` is in seconds since 1970."""
    for number, queue in enumerate(queues, 1):
        if queue.job_age_s:
            yield (
                ipp.JOB_GROUP,
                (
                    (ipp.INTEGER, "job-id", number),
                    (ipp.ENUM, "job-state", _PENDING),
                    (ipp.INTEGER, "time-at-creation", int(now) - queue.job_age_s),
                    (ipp.URI, "job-printer-uri", f"ipp://localhost/printers/{queue.name}"),
                ),
            )


def reply_to(request: bytes, queues: Sequence[Queue], now: float) -> bytes:
    """Return the reply to an IPP request. The reply to an unsupported operation lists nothing."""
    (operation,) = struct.unpack_from("!2xH", request.ljust(4, b"\0"))
    if operation == CUPS_GET_PRINTERS:
        return ipp.response(*printers(queues))
    return ipp.response(*(jobs(queues, now) if operation == GET_JOBS else ()))


def _handler(queues: Sequence[Queue]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = min(int(self.headers.get("Content-Length", 0)), _REQUEST_MAX)
            body = reply_to(self.rfile.read(size), queues, time.time())
            self.send_response(200)
            self.send_header("Content-Type", "application/ipp")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - as in the base class
            """Log nothing, because the requests of collectors are expected."""

    return Handler


def main() -> None:
    network, descriptor = sys.argv[1:]
    handler = _handler(QUEUES if network == "lan" else QUEUES_WITHOUT_LAN)
    with HTTPServer(("127.0.0.1", 0), handler, bind_and_activate=False) as server:
        server.socket.close()
        server.socket = socket.socket(fileno=int(descriptor))
        server.serve_forever()


if __name__ == "__main__":
    main()
