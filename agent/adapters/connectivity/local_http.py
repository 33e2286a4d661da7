"""Exchanges one small HTTP message with a program of this machine. The reply is untrusted."""

import asyncio
from pathlib import Path
from typing import Final

WITHIN_S: Final = 1.5
REPLY_MAX_BYTES: Final = 256 * 1024


async def exchange(where: Path | tuple[str, int], request: bytes) -> bytes:
    """Send a request, and return the body of the reply, which must not be chunked.

    Raises OSError (also a timeout) if there is no reply, and ValueError if it is not a complete
    reply with the status 200.

    Args:
        where: a socket in the file system, or a host and a port.
    """
    async with asyncio.timeout(WITHIN_S):
        if isinstance(where, Path):
            reader, writer = await asyncio.open_unix_connection(where)
        else:
            reader, writer = await asyncio.open_connection(*where)
        try:
            writer.write(request)
            return await _read_body(reader)
        finally:
            writer.transport.abort()


async def _read_body(reader: asyncio.StreamReader) -> bytes:
    reply = b""
    while part := await reader.read(REPLY_MAX_BYTES):
        reply += part
        if len(reply) > REPLY_MAX_BYTES:
            raise ValueError("the reply is longer than the limit")
        head, end, body = reply.partition(b"\r\n\r\n")
        length = _length_of(head) if end else None
        if length is not None and len(body) >= length:
            break
    status, _, _ = reply.partition(b"\r\n")
    head, end, body = reply.partition(b"\r\n\r\n")
    if not end or status.split(b" ")[1:2] != [b"200"]:
        raise ValueError("the reply has another status than 200")
    length = _length_of(head)
    if length is not None and len(body) < length:
        raise ValueError("the reply ended early")
    return body if length is None else body[:length]


def _length_of(head: bytes) -> int | None:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return int(value.strip()[:9])
    return None
