from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.shared.http import (
    HEAD_MAX_BYTES,
    HttpError,
    get_request,
    parse_reply,
    post_request,
)

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_requests_as_rfc_9112_writes_them():
    assert get_request("10.0.0.9:80") == (
        b"GET / HTTP/1.1\r\nHost: 10.0.0.9:80\r\nConnection: close\r\nAccept: text/html\r\n\r\n"
    )
    posted = post_request("h", "/ipp/print", "application/ipp", b"\x01\x02")
    assert posted.startswith(b"POST /ipp/print HTTP/1.1\r\nHost: h\r\n")
    assert posted.endswith(b"Content-Length: 2\r\n\r\n\x01\x02")


def test_a_reply_with_a_length_ends_there():
    raw = b"HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 3\r\n\r\nabcREST"
    reply = parse_reply(raw, is_all=False)
    assert reply is not None
    assert (reply.status, reply.body, reply.header("server")) == (200, b"abc", "x")
    assert parse_reply(raw[:-5], is_all=False) is None


def test_a_reply_without_a_length_ends_with_the_connection():
    raw = b"HTTP/1.0 200 OK\r\n\r\nabc"
    assert parse_reply(raw, is_all=False) is None
    reply = parse_reply(raw, is_all=True)
    assert reply is not None
    assert reply.body == b"abc"


def test_joins_chunks():
    raw = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    )
    reply = parse_reply(raw, is_all=False)
    assert reply is not None
    assert reply.body == b"abcde"
    assert parse_reply(raw[:-7], is_all=False) is None


def test_passes_over_replies_that_come_before_the_real_one():
    raw = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"
    reply = parse_reply(raw, is_all=False)
    assert reply is not None
    assert reply.status == 204


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
def test_what_is_not_http_is_an_error(raw: bytes):
    with pytest.raises(HttpError):
        parse_reply(raw, is_all=True)


def test_an_endless_head_is_an_error():
    with pytest.raises(HttpError):
        parse_reply(b"HTTP/1.1 200 OK\r\nX: " + b"y" * HEAD_MAX_BYTES, is_all=False)


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_parse_or_raise_http_error(rest: bytes, is_all: bool):
    for start in (b"", b"HTTP/1.1 200 OK\r\n", CHUNKED):
        with suppress(HttpError):
            parse_reply(start + rest, is_all=is_all)
