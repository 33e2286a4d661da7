import socket
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.shared.http import (
    HEAD_MAX_BYTES,
    HttpError,
    HttpExchange,
    HttpReply,
    HttpRequest,
    build_post_request,
    exchange_blocking,
)
from tests.time_limit import generous_time_limit

GET = HttpRequest("GET", "10.0.0.9:80", "/", (("Accept", "text/html"),))
BODY_MAX = 64 * 1024
START = b"HTTP/1.1 200 OK\r\n"
CHUNKED = START + b"Transfer-Encoding: chunked\r\n\r\n"


def read(raw: bytes, *, is_closed: bool, step: int = 0) -> HttpReply | None:
    """Read ``raw`` in pieces of ``step`` bytes; with 0, in one piece. If ``is_closed``, the
    connection then ends.
    """
    pending = HttpExchange(GET, BODY_MAX)
    step = step or len(raw)
    pieces = [raw[at : at + step] for at in range(0, len(raw), max(1, step))]
    for piece in [*pieces, b""] if is_closed else pieces:
        reply = pending.receive(piece)
        if reply is not None:
            return reply
    return None


def reply_or_error(raw: bytes, step: int) -> HttpReply | type[HttpError] | None:
    try:
        return read(raw, is_closed=True, step=step)
    except HttpError:
        return HttpError


def read_all(raw: bytes) -> HttpReply:
    reply = read(raw, is_closed=True)
    assert reply is not None
    assert read(raw, is_closed=True, step=1) == reply, (
        "the sizes of the received pieces must not matter"
    )
    return reply


def test_requests_have_the_form_of_rfc_9112():
    assert HttpExchange(GET, BODY_MAX).request == (
        b"GET / HTTP/1.1\r\nHost: 10.0.0.9:80\r\nConnection: close\r\nAccept: text/html\r\n\r\n"
    )
    request = build_post_request("h", "/ipp/print", "application/ipp", b"\x01\x02")
    posted = HttpExchange(request, BODY_MAX).request
    assert posted.startswith(b"POST /ipp/print HTTP/1.1\r\nHost: h\r\n")
    assert posted.endswith(b"Content-Length: 2\r\n\r\n\x01\x02")


def test_a_reply_with_a_length_ends_after_that_length():
    raw = b"HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 3\r\n\r\nabcREST"
    reply = read(raw, is_closed=False)
    assert reply is not None
    assert (reply.status, reply.body, reply.header("server")) == (200, b"abc", "x")
    assert reply.is_whole
    assert read(raw[:-5], is_closed=False) is None


def test_a_reply_without_a_length_ends_with_the_connection():
    raw = b"HTTP/1.0 200 OK\r\n\r\nabc"
    assert read(raw, is_closed=False) is None
    reply = read_all(raw)
    assert reply.body == b"abc"
    assert reply.is_whole


def test_chunked_bodies_are_joined():
    raw = CHUNKED + b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    reply = read(raw, is_closed=False)
    assert reply is not None
    assert reply.body == b"abcde"
    assert read(raw[:-7], is_closed=False) is None


def test_interim_replies_are_skipped():
    raw = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"
    reply = read(raw, is_closed=False)
    assert reply is not None
    assert reply.status == 204


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_heads_with_bare_line_feeds_are_read(end: bytes):
    head = end.join((b"HTTP/1.0 200 OK", b"Server: GoAhead", b"Content-Length: 3", b"", b""))
    reply = read_all(head + b"abc")
    assert (reply.status, reply.header("server"), reply.body) == (200, "GoAhead", b"abc")


@pytest.mark.parametrize(
    "field",
    [
        b"no field at all",
        b"My Header: x",
        b"Caf\xe9: x",
        b": x",
        b"X: a\0b",
        b"X : y",
        b"X: y\r\n folded",
        b"Content-Length:",
        b"Content-Length: -1",
        b"Content-Length: " + b"9" * 30,
        b"Transfer-Encoding: identity",
    ],
)
def test_an_invalid_header_line_is_ignored(field: bytes):
    reply = read_all(START + field + b"\r\nServer: x\r\n\r\n<title>")
    assert (reply.status, reply.header("server"), reply.body) == (200, "x", b"<title>")


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (START + b"Content-Length: 9\r\n\r\nabc", b"abc"),
        (START + b"Content-Length: 9\r\n\r\n", b""),
        (CHUNKED + b"3\r\nabc\r\n", b"abc"),
        (CHUNKED + b"9\r\nabc", b"abc"),
        (CHUNKED + b"3\r\nabc\r\nzz\r\n", b"abc"),
    ],
)
def test_an_incomplete_reply_is_returned_as_far_as_it_was_received(raw: bytes, body: bytes):
    reply = read_all(raw)
    assert (reply.status, reply.body, reply.is_whole) == (200, body, False)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
    ],
)
def test_a_reply_that_is_not_http_raises_an_error(raw: bytes):
    with pytest.raises(HttpError):
        read(raw, is_closed=True)


def test_a_head_beyond_the_limit_raises_an_error():
    with pytest.raises(HttpError):
        read(b"HTTP/1.1 200 OK\r\nX: " + b"y" * HEAD_MAX_BYTES, is_closed=False)


@pytest.mark.parametrize(
    ("start", "piece"),
    [(b"", b"HTTP/1.1 100 C\r\n\r\n"), (START, b"X: y\r\n"), (START, b" "), (b"", b"\xff\0")],
)
def test_an_endless_head_raises_an_error(start: bytes, piece: bytes):
    raw = start + piece * (2 * (HEAD_MAX_BYTES + BODY_MAX) // len(piece))
    with pytest.raises(HttpError):
        read(raw, is_closed=False, step=1000)


@pytest.mark.parametrize("start", [START + b"\r\n", CHUNKED])
def test_an_endless_body_is_cut(start: bytes):
    pending = HttpExchange(GET, BODY_MAX)
    assert pending.receive(start) is None
    chunk = b"1000\r\n" + bytes(0x1000) + b"\r\n"
    sent, reply = len(start), None
    while reply is None:
        reply, sent = pending.receive(chunk), sent + len(chunk)
    assert sent < HEAD_MAX_BYTES + BODY_MAX + len(chunk)
    assert not reply.is_whole
    assert len(reply.body) >= BODY_MAX


@pytest.mark.parametrize(
    "raw",
    [
        START + b"X:" + b" " * HEAD_MAX_BYTES + b"\0\r\n\r\n",
        START + b"X:" + b"\r\n " * (HEAD_MAX_BYTES // 3) + b"\0\r\n\r\n",
        b"HTTP/1.1 200" + b" " * HEAD_MAX_BYTES + b"\0\r\n\r\n",
        CHUNKED + b"1;" + b" " * 16_000 + b"\nx\r\n",
        CHUNKED + b"0\r\nX:" + b" " * 32_000 + b"\0\r\n\r\n",
        START + b"\r\n".join(b"X%d: y" % number for number in range(3000)) + b"\r\n\r\n",
    ],
)
def test_hostile_heads_and_chunks_are_parsed_in_linear_time(raw: bytes):
    with generous_time_limit(), suppress(HttpError):
        read(raw, is_closed=True)


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_parse_or_raise_http_error(rest: bytes, is_closed: bool):
    for start in (b"", START, CHUNKED):
        with suppress(HttpError):
            read(start + rest, is_closed=is_closed)


@given(st.from_regex(rb"HTTP/1\.1 200 OK\r\nContent-Length: \d{1,3}\r\n\r\n.*", fullmatch=True))
def test_body_is_never_longer_than_its_content_length(raw: bytes):
    reply = read_all(raw)
    length = int(reply.header("content-length") or "")
    assert len(reply.body) <= length
    assert reply.is_whole is (len(reply.body) == length)


@given(st.binary(max_size=200), st.integers(1, 50))
def test_the_sizes_of_received_pieces_do_not_change_a_reply(rest: bytes, step: int):
    for start in (START, CHUNKED):
        in_pieces = reply_or_error(start + rest, step)
        assert in_pieces == reply_or_error(start + rest, len(start + rest))


def _deadline_in(seconds: float) -> Callable[[], float]:
    """Return a function that returns the remaining seconds, and raises TimeoutError at the end."""
    ends = time.monotonic() + seconds

    def require_s() -> float:
        if time.monotonic() >= ends:
            raise TimeoutError
        return ends - time.monotonic()

    return require_s


def test_a_request_is_exchanged_over_a_socket():
    client, server = socket.socketpair()
    with client, server:
        server.sendall(START + b"Content-Length: 3\r\n\r\nabc")
        assert exchange_blocking(client, GET, BODY_MAX, _deadline_in(60)).body == b"abc"
        assert server.recv(4096) == HttpExchange(GET, BODY_MAX).request


def test_silent_socket_times_out():
    client, server = socket.socketpair()
    with client, server, pytest.raises(TimeoutError):
        exchange_blocking(client, GET, BODY_MAX, _deadline_in(0.05))
