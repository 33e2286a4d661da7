"""The print spooler of this machine: where CUPS listens, and one IPP question to it."""

import http.client
import os
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from collectors.shared import ipp

_SOCKETS = {"darwin": "/private/var/run/cupsd"}
_DEFAULT_SOCKET = "/run/cups/cups.sock"
_PORT = 631
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class CupsError(OSError):
    """CUPS did not answer as it should. The text says what "it" did and quotes nothing."""


class NotRunning(CupsError):
    """Nothing listens where CUPS would; its socket may have been left behind."""

    def __init__(self, *, is_socket_there: bool) -> None:
        said = "its socket is there, but nothing listens on it"
        super().__init__(said if is_socket_there else "it does not run")
        self.is_socket_there = is_socket_there


@dataclass(frozen=True, slots=True)
class CupsServer:
    """Where the local CUPS listens: a socket's path, or a port of the loopback interface."""

    path: str | None = None
    host: str = "localhost"
    port: int = _PORT


def ask_cups(
    question: bytes, deadline_s: float, environ: Mapping[str, str] = os.environ
) -> ipp.Response:
    """Send an encoded request to the first server that answers it, and return the reply.

    ``deadline_s`` is a moment of ``time.monotonic()``. That a thing was not found is a reply:
    so CUPS says that it has no queue. Raises NotRunning, or the OSError of the last server.
    """
    failure: OSError | None = None
    is_socket_there = False
    for server in cups_servers(environ, sys.platform):
        try:
            return _ask(server, question, deadline_s)
        except FileNotFoundError:
            continue
        except ConnectionRefusedError:
            is_socket_there = is_socket_there or server.path is not None
        except OSError as error:
            failure = error
    raise failure or NotRunning(is_socket_there=is_socket_there)


def cups_servers(environ: Mapping[str, str], platform: str) -> tuple[CupsServer, ...]:
    """Return where to ask: CUPS_SERVER if it names this machine, else the usual places."""
    named = environ.get("CUPS_SERVER", "").partition("/version=")[0]
    if named.startswith("/"):
        return (CupsServer(path=named),)
    host, _, port = named.partition(":")
    if host in _LOCAL_HOSTS and (not port or port.isdecimal()):
        return (CupsServer(host=host, port=int(port or _PORT)),)
    return (CupsServer(path=_SOCKETS.get(platform, _DEFAULT_SOCKET)), CupsServer())


class _TimedSocket(socket.socket):
    """A socket whose reads all end at one moment: a timeout would begin anew at each byte."""

    deadline_s = 0.0

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        self.settimeout(_left_s(self.deadline_s))
        return super().recv_into(buffer, nbytes, flags)


def _ask(server: CupsServer, question: bytes, deadline_s: float) -> ipp.Response:
    try:
        response = ipp.decode_response(_post(server, question, deadline_s))
    except TimeoutError:
        raise TimeoutError("it did not answer within its time") from None
    except http.client.HTTPException:
        raise CupsError("it does not speak HTTP") from None
    except ipp.IppError as error:
        raise CupsError(f"its answer cannot be read: {error}") from error
    if not response.is_successful and response.status != ipp.NOT_FOUND:
        raise CupsError(f"it answered with IPP status 0x{response.status:04x}")
    return response


def _post(server: CupsServer, question: bytes, deadline_s: float) -> bytes:
    connection = http.client.HTTPConnection("localhost")
    headers = {"Content-Type": ipp.CONTENT_TYPE, "Connection": "close"}
    try:
        connection.sock = _connect(server, deadline_s)
        connection.request("POST", "/", question, headers)
        with connection.getresponse() as reply:
            if reply.status != HTTPStatus.OK:
                raise CupsError(f"it answered with HTTP status {reply.status}")
            body = reply.read(ipp.RESPONSE_MAX_BYTES + 1)
    finally:
        connection.close()
    if len(body) > ipp.RESPONSE_MAX_BYTES:
        raise CupsError("it sent more than its answer can need")
    return body


def _connect(server: CupsServer, deadline_s: float) -> socket.socket:
    left_s = _left_s(deadline_s)
    if server.path is None:
        connected = socket.create_connection((server.host, server.port), left_s)
    else:
        connected = socket.socket(socket.AF_UNIX)
        connected.settimeout(left_s)
        try:
            connected.connect(server.path)
        except OSError:
            connected.close()
            raise
    timed = _TimedSocket(fileno=connected.detach())
    timed.deadline_s = deadline_s
    timed.settimeout(left_s)
    return timed


def _left_s(deadline_s: float) -> float:
    """Return the seconds left. Raises TimeoutError when there are none."""
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s
