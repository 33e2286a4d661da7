"""One bounded HTTP/1.1 question and its reply, for hosts that may answer anything (RFC 9112).

No redirect is followed, no cookie kept, no certificate verified: nothing secret is sent and
nothing received is trusted.
"""

import asyncio
from dataclasses import dataclass

HEAD_MAX_BYTES = 32 * 1024
_READ_BYTES = 16 * 1024
_CHUNK_LINE_MAX = 1024


class HttpError(Exception):
    """The reply is not HTTP, or its head is longer than the bound."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """``headers`` have lower-case names; ``body`` is cut at the bound of the exchange."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


def get_request(host: str, path: str = "/") -> bytes:
    return _head("GET", host, path, "Accept: text/html")


def post_request(host: str, path: str, content_type: str, body: bytes) -> bytes:
    length = f"Content-Length: {len(body)}"
    return _head("POST", host, path, f"Content-Type: {content_type}", length) + body


def parse_reply(raw: bytes, *, is_all: bool) -> HttpReply | None:
    """Parse what has come so far; None while the reply is not complete.

    With ``is_all`` nothing more will come and a body cut short is given as it is.
    Raises HttpError when it cannot become a reply.
    """
    while True:
        head, separator, rest = raw.partition(b"\r\n\r\n")
        if not separator:
            if is_all or len(raw) > HEAD_MAX_BYTES:
                raise HttpError("no HTTP head came")
            return None
        status, headers = _parse_head(head)
        if status >= 200:  # 1xx replies come before the real one
            return _parse_body(status, headers, rest, is_all=is_all)
        raw = rest


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes, body_max: int
) -> HttpReply:
    """Send a request and read the reply, at most ``body_max`` bytes of body and its framing.

    The caller bounds the time. Raises HttpError, OSError.
    """
    writer.write(request)
    await writer.drain()
    raw = bytearray()
    while len(raw) < HEAD_MAX_BYTES + body_max:
        data = await reader.read(_READ_BYTES)
        raw += data
        reply = parse_reply(bytes(raw), is_all=not data)
        if reply is not None:
            return reply
    reply = parse_reply(bytes(raw), is_all=True)
    if reply is None:
        raise HttpError("the reply has no end")
    return reply


def _head(method: str, host: str, path: str, *more: str) -> bytes:
    lines = (f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *more)
    return "".join(f"{line}\r\n" for line in lines).encode("ascii", "replace") + b"\r\n"


def _parse_head(head: bytes) -> tuple[int, tuple[tuple[str, str], ...]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    status = rest[:3]
    if not version.startswith("HTTP/1.") or not (status.isascii() and status.isdigit()):
        raise HttpError("the reply is not HTTP")
    pairs = (line.partition(":") for line in lines)
    return int(status), tuple((k.strip().lower(), v.strip()) for k, _, v in pairs)


def _parse_body(
    status: int, headers: tuple[tuple[str, str], ...], rest: bytes, *, is_all: bool
) -> HttpReply | None:
    reply = HttpReply(status, headers, rest)
    if "chunked" in (reply.header("transfer-encoding") or "").lower():
        body, is_complete = _join_chunks(rest)
        return HttpReply(status, headers, body) if is_complete or is_all else None
    length = reply.header("content-length") or ""
    if length.isascii() and length.isdigit() and len(length) < 16:  # no file is longer
        if len(rest) >= int(length):
            return HttpReply(status, headers, rest[: int(length)])
        return reply if is_all else None
    has_no_body = status in (204, 304)
    return reply if is_all or has_no_body else None


def _join_chunks(rest: bytes) -> tuple[bytes, bool]:
    """Return the chunks that have come and whether the last one has. Raises HttpError."""
    body = bytearray()
    offset = 0
    while True:
        end = rest.find(b"\r\n", offset, offset + _CHUNK_LINE_MAX)
        if end < 0:
            return bytes(body), False
        size = _chunk_size(rest[offset:end])
        if size == 0:
            return bytes(body), True
        start = end + 2
        body += rest[start : start + size]
        offset = start + size + 2
        if offset > len(rest):
            return bytes(body), False


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not digits or len(digits) > 8 or digits.strip(b"0123456789abcdefABCDEF"):
        raise HttpError("a chunk has no size")
    return int(digits, 16)
