"""The facts about the answers of name servers, with simulated name servers on loopback."""

import errno
import socket
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

import pytest

from collectors.application.deadline import Deadline
from collectors.application.readers.network import name_servers
from collectors.application.readers.network.name_servers import answers_field, query_servers
from collectors.shared.background import in_background
from collectors.shared.dns import write_question

QUESTION = write_question(("ops", "example", "com"), "A") or b""
LONG_S = 60.0
"""A time limit that is not reached, because the server answers."""
SHORT_S = 0.02

Answer = Callable[[bytes], tuple[bytes, ...]]


def reply(query: bytes, code: int = 0, answers: int = 1, flags: int = 0x8180) -> bytes:
    """Return a reply that repeats the question (RFC 1035, section 4.1)."""
    identifier = struct.unpack_from("!H", query)[0]
    return struct.pack("!6H", identifier, flags | code, 1, answers, 0, 0) + query[12:]


@contextmanager
def name_server(answer: Answer) -> Iterator[int]:
    """Run a name server, and yield its port. The server receives one query, calls ``answer`` with
    this query, and sends the returned messages.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def serve() -> None:
            query, client = server.recvfrom(4096)
            for data in answer(query):
                server.sendto(data, client)

        served: Future[None] = in_background(serve)
        yield server.getsockname()[1]
        served.result(LONG_S)


@pytest.mark.parametrize(
    ("code", "answers", "result"),
    [
        (0, 2, "answered in # ms"),
        (0, 0, "answered in # ms: the name has no IPv4 address"),
        (3, 0, "answered in # ms: the name does not exist"),
        (2, 0, "it failed (SERVFAIL)"),
        (5, 0, "it refuses the query (REFUSED)"),
        (9, 0, "it answers with the error 9"),
    ],
)
def test_the_answer_of_a_name_server_is_reported(code: int, answers: int, result: str) -> None:
    """In ``result``, # stands for a number of milliseconds."""
    with name_server(lambda query: (reply(query, code, answers),)) as port:
        (line,) = query_servers(["127.0.0.1"], QUESTION, LONG_S, port)
    head, _, tail = result.partition("#")
    assert line.startswith(f"127.0.0.1: {head}")
    assert line.endswith(tail)
    assert tail == "" or line.removeprefix(f"127.0.0.1: {head}").removesuffix(tail).isdigit()


def test_a_silent_name_server_gets_the_query_twice_and_is_reported() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        lines = query_servers(["127.0.0.1"], QUESTION, SHORT_S, server.getsockname()[1])
        server.setblocking(False)
        first, second = server.recv(4096), server.recv(4096)
        with pytest.raises(BlockingIOError):
            server.recv(4096)
    assert lines == ("127.0.0.1: no answer in 0.02 s",)
    assert first == second
    assert first[12:] == QUESTION


def test_forged_and_damaged_replies_are_ignored() -> None:
    def answer(query: bytes) -> tuple[bytes, ...]:
        other = bytes((query[0] ^ 1,)) + query[1:]
        question = reply(query, flags=0x0100)
        renamed = reply(query).replace(b"example", b"exemple")
        return (b"", b"\0", reply(other), question, renamed, reply(query)[:20], reply(query, 3))

    with name_server(answer) as port:
        (line,) = query_servers(["127.0.0.1"], QUESTION, LONG_S, port)
    assert line.endswith(": the name does not exist")


def test_a_closed_port_is_reported_at_once() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    lines = query_servers(["127.0.0.1"], QUESTION, LONG_S, port)
    assert lines == ("127.0.0.1: its port 53 is closed",)


def test_a_server_without_a_route_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object) -> socket.socket:
        raise OSError(errno.ENETUNREACH, "Network is unreachable")

    monkeypatch.setattr(name_servers, "_connect", unreachable)
    lines = query_servers(["2001:db8::53", "fe80::1%eth0"], QUESTION, LONG_S)
    assert lines == ("2001:db8::53: no route to it", "fe80::1: no route to it")


@pytest.mark.parametrize(
    ("servers", "url", "reason"),
    [
        ((), "https://ops.example.com", "no name server is set"),
        (("127.0.0.1",), "", "no service with a host name is configured"),
        (("127.0.0.1",), "https://[fd00::1]:8470", "no service with a host name is configured"),
        (("127.0.0.1",), "http://localhost:8470", "no service with a host name is configured"),
        (("127.0.0.1",), "https://ops.local", "no service with a host name is configured"),
        (("127.0.0.1",), "https://[", "no service with a host name is configured"),
        (("127.0.0.1",), f"https://{'a' * 64}.com", "no service with a host name is configured"),
    ],
    ids=["no-server", "no-service", "address", "localhost", "mdns", "malformed", "long-label"],
)
def test_nothing_is_queried_without_a_server_or_a_name(
    servers: tuple[str, ...], url: str, reason: str
) -> None:
    field = answers_field(servers, url, Deadline.after(LONG_S))
    assert (field.status, field.reason) == ("not-applicable", reason)


def test_name_servers_are_not_queried_if_no_time_is_left_for_an_answer() -> None:
    field = answers_field(("127.0.0.1",), "https://ops.example.com", Deadline.after(1.1))
    assert (field.status, field.reason) == (
        "collection-failed",
        "no time was left to query the name servers",
    )


def test_the_host_name_of_the_service_is_queried_in_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    def query(servers: tuple[str, ...], question: bytes, wait_s: float) -> tuple[str, ...]:
        assert question == write_question(("xn--caf-dma", "example"), "A")
        assert wait_s == 2.0
        return tuple(f"{server}: answered in 4 ms" for server in servers)

    monkeypatch.setattr(name_servers, "query_servers", query)
    field = answers_field(["9.9.9.9"], "https://café.example./base", Deadline.after(LONG_S))
    assert (field.key, field.value) == ("network.dnsAnswers", ("9.9.9.9: answered in 4 ms",))
