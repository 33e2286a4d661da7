"""Sends an IPP request to this machine's print spooler, CUPS."""

import os
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

from collectors.shared import ipp
from collectors.shared.addresses import is_loopback, split_host_port
from collectors.shared.http import HttpError, build_post_request, exchange_blocking

_SOCKETS = {"darwin": "/private/var/run/cupsd"}
_DEFAULT_SOCKET = "/run/cups/cups.sock"
_PORT = 631


class CupsError(OSError):
    """CUPS did not answer correctly. The message contains no text from the answer."""


class NotRunning(CupsError):
    """CUPS does not run, although its socket may still exist."""

    def __init__(self, *, is_socket_there: bool) -> None:
        text = "its socket is there, but nothing listens on it"
        super().__init__(text if is_socket_there else "it does not run")
        self.is_socket_there = is_socket_there


@dataclass(frozen=True, slots=True)
class CupsServer:
    """The address of the local CUPS: a socket's path, or a port of the loopback interface."""

    path: str | None = None
    host: str = "localhost"
    port: int = _PORT


def query_cups(
    ipp_request: bytes, deadline_s: float, environ: Mapping[str, str] = os.environ
) -> ipp.Response:
    """Send an encoded request to the first server that answers it, and return the reply.

    ``deadline_s`` is a time of ``time.monotonic()``. A reply with the status "not found" is
    returned, too, because CUPS sends it if it has no queues. Raises NotRunning if no server runs,
    or the OSError of the last server that failed.
    """
    failure: OSError | None = None
    is_socket_there = False
    for server in cups_servers(environ, sys.platform):
        try:
            return _query(server, ipp_request, deadline_s)
        except FileNotFoundError:
            continue
        except ConnectionRefusedError:
            is_socket_there = is_socket_there or server.path is not None
        except OSError as error:
            failure = error
    raise failure or NotRunning(is_socket_there=is_socket_there)


def cups_servers(environ: Mapping[str, str], platform: str) -> tuple[CupsServer, ...]:
    """Return the servers to try: CUPS_SERVER if it names this machine, else the usual addresses."""
    # The setting may end with an IPP version, as in `localhost:631/version=1.1`.
    setting = environ.get("CUPS_SERVER", "").partition("/version=")[0]
    if setting.startswith("/"):
        return (CupsServer(path=setting),)
    host, port = split_host_port(setting)
    if host and is_loopback(host):
        return (CupsServer(host=host, port=port or _PORT),)
    return (CupsServer(path=_SOCKETS.get(platform, _DEFAULT_SOCKET)), CupsServer())


def _query(server: CupsServer, ipp_request: bytes, deadline_s: float) -> ipp.Response:
    try:
        response = ipp.decode_response(_post(server, ipp_request, deadline_s))
    except TimeoutError:
        raise TimeoutError("it did not answer before the deadline") from None
    except HttpError:
        raise CupsError("it did not answer with HTTP") from None
    except ipp.IppError as error:
        raise CupsError(f"its answer cannot be read: {error}") from error
    if not response.is_successful and response.status != ipp.NOT_FOUND:
        raise CupsError(f"it answered with IPP status 0x{response.status:04x}")
    return response


def _post(server: CupsServer, ipp_request: bytes, deadline_s: float) -> bytes:
    request = build_post_request("localhost", "/", ipp.CONTENT_TYPE, ipp_request)
    remaining_s = partial(_remaining_s, deadline_s)
    with _connect(server, remaining_s()) as connection:
        reply = exchange_blocking(connection, request, ipp.RESPONSE_MAX_BYTES, remaining_s)
    if reply.status != HTTPStatus.OK:
        raise CupsError(f"it answered with HTTP status {reply.status}")
    if len(reply.body) > ipp.RESPONSE_MAX_BYTES:
        raise CupsError("its answer is longer than the limit")
    return reply.body


def _connect(server: CupsServer, timeout_s: float) -> socket.socket:
    if server.path is None:
        return socket.create_connection((server.host, server.port), timeout_s)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(timeout_s)
    try:
        connection.connect(server.path)
    except OSError:
        connection.close()
        raise
    return connection


def _remaining_s(deadline_s: float) -> float:
    """Return the seconds until the deadline. Raises TimeoutError if it has passed."""
    remaining_s = deadline_s - time.monotonic()
    if remaining_s <= 0:
        raise TimeoutError
    return remaining_s
