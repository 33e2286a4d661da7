"""Asks each name server for the address of the service, and measures the time of its answer.

The system's resolver only reports the first answer that it gets. A name server that does not answer
delays each look-up by seconds, and is noticed only when the other name servers fail, too.
"""

import errno
import secrets
import selectors
import socket
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Final
from urllib.parse import urlsplit

from collectors.application.deadline import Deadline
from collectors.application.source import Origin
from collectors.contract import Field
from collectors.shared.addresses import is_loopback, is_mdns_name, plain_address
from collectors.shared.dns import HEADER, RECURSION_DESIRED, parse_reply, write_question

ANSWERS_KEY: Final = "network.dnsAnswers"
ORIGIN: Final = Origin("DNS")
WAIT_S: Final = 2.0
"""Time in which a name server must answer. After half of it, the query is sent once more, because
a network may lose a single packet."""

_NO_ROUTE: Final = "no route to it"
_NO_ROUTE_ERRORS: Final = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL}
_PORT: Final = 53
_RESERVE_S: Final = 0.2  # the part of the remaining time that is not used for waiting
_WAIT_MIN_S: Final = 1.0  # if less time remains, no name server is queried
_MESSAGE_MAX_BYTES: Final = 4096
_NO_ERROR, _NO_SUCH_NAME = 0, 3
_REFUSALS: Final = {
    1: "it does not understand the query (FORMERR)",
    2: "it failed (SERVFAIL)",
    4: "it does not support the query (NOTIMP)",
    5: "it refuses the query (REFUSED)",
}


def answers_field(servers: Iterable[str], url: str, deadline: Deadline) -> Field:
    """Return the field with one line for each name server.

    Args:
        servers: IP addresses; link-local ones with their zone.
        url: The URL of the service.
    """
    server_addresses = tuple(servers)
    host = _host(url)
    question = None if host is None else write_question(host.split("."), "A")
    if not server_addresses:
        return ORIGIN.not_applicable(ANSWERS_KEY, "no name server is set")
    if question is None:
        return ORIGIN.not_applicable(ANSWERS_KEY, "no service with a host name is configured")
    wait_s = min(WAIT_S, deadline.remaining_s() - _RESERVE_S)
    if wait_s < _WAIT_MIN_S:
        reason = "no time was left to query the name servers"
        return ORIGIN.absent(ANSWERS_KEY, "collection-failed", reason)
    return ORIGIN.available(ANSWERS_KEY, query_servers(server_addresses, question, wait_s))


def query_servers(
    servers: Sequence[str], question: bytes, wait_s: float, port: int = _PORT
) -> tuple[str, ...]:
    """Send a question to all servers at the same time. Returns a line for each server."""
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        results: dict[str, str] = {}
        queries = [_Query(server, question) for server in servers]
        for query in queries:
            try:
                connection = stack.enter_context(_connect(query.server, port))
                query.send(connection)
                selector.register(connection, selectors.EVENT_READ, query)
            except OSError as error:
                results[query.server] = _describe(error)
        ends_at = time.monotonic() + wait_s
        results |= _receive(selector, ends_at - wait_s / 2)
        _send_again(selector)
        results |= _receive(selector, ends_at)
    no_answer = f"no answer in {wait_s:.2g} s"
    return tuple(f"{_without_zone(server)}: {results.get(server, no_answer)}" for server in servers)


class _Query:
    """One question to one server."""

    def __init__(self, server: str, question: bytes) -> None:
        self.server = server
        self._question = question
        self._identifier = secrets.randbits(16)
        self._sent_at = time.perf_counter()

    def send(self, connection: socket.socket) -> None:
        header = HEADER.pack(self._identifier, RECURSION_DESIRED, 1, 0, 0, 0)
        connection.send(header + self._question)

    def result(self, data: bytes) -> str | None:
        """Describe the server's reply; None if the message is no reply to this query."""
        reply = parse_reply(data, self._identifier, self._question)
        if reply is None:
            return None
        if reply.code not in (_NO_ERROR, _NO_SUCH_NAME):
            return _REFUSALS.get(reply.code, f"it answers with the error {reply.code}")
        duration_ms = (time.perf_counter() - self._sent_at) * 1000
        answer_text = f"answered in {max(1, round(duration_ms))} ms"
        if reply.code == _NO_SUCH_NAME:
            return f"{answer_text}: the name does not exist"
        return answer_text if reply.answers else f"{answer_text}: the name has no IPv4 address"


def _receive(selector: selectors.BaseSelector, until: float) -> dict[str, str]:
    """Receive replies until each server has answered, or until the time ``until``."""
    results: dict[str, str] = {}
    while selector.get_map() and (left_s := until - time.monotonic()) > 0:
        for key, _ in selector.select(left_s):
            connection, query = key.fileobj, key.data
            assert isinstance(connection, socket.socket)  # noqa: S101 - registered above
            result = _read(connection, query)
            if result is not None:
                results[query.server] = result
                selector.unregister(connection)
    return results


def _read(connection: socket.socket, query: _Query) -> str | None:
    try:
        return query.result(connection.recv(_MESSAGE_MAX_BYTES))
    except BlockingIOError:
        return None
    except OSError as error:
        return _describe(error)


def _send_again(selector: selectors.BaseSelector) -> None:
    for key in tuple(selector.get_map().values()):
        connection = key.fileobj
        try:
            key.data.send(connection)
        except OSError:
            continue  # the server may still answer the first query


def _connect(server: str, port: int) -> socket.socket:
    """Return a UDP socket that only receives datagrams and errors of ``server``."""
    numeric = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    family, kind, protocol, _, address = socket.getaddrinfo(
        server, port, type=socket.SOCK_DGRAM, flags=numeric
    )[0]
    new_socket = socket.socket(family, kind, protocol)
    try:
        new_socket.setblocking(False)
        new_socket.connect(address)
    except OSError:
        new_socket.close()
        raise
    return new_socket


def _describe(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError | ConnectionResetError):
        return f"its port {_PORT} is closed"
    if error.errno in _NO_ROUTE_ERRORS:
        return _NO_ROUTE
    return error.strerror or str(error)


def _without_zone(server: str) -> str:
    return server.partition("%")[0]


def _host(url: str) -> str | None:
    """Return the host name of a URL in the form that DNS uses.

    Returns None if no name server knows the host: an IP address, this machine, or an mDNS name.
    """
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
        ascii_host = host.encode("idna").decode("ascii")
    except (ValueError, UnicodeError):
        return None
    if plain_address(host) or is_loopback(host) or is_mdns_name(host):
        return None
    return ascii_host or None
