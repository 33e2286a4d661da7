"""Exchanges one small HTTP message with a program of this machine. The reply is untrusted."""

import asyncio
from pathlib import Path
from typing import Final

from collectors.shared.http import HttpError, HttpRequest, exchange
from collectors.shared.tcp_refusal import refusal_wait_s

TIMEOUT_S: Final = refusal_wait_s(1.5)
REPLY_MAX_BYTES: Final = 256 * 1024


async def exchange_local(address: Path | tuple[str, int], request: HttpRequest) -> bytes:
    """Send a request, and return the body of the reply.

    Raises OSError if there is no reply; after a timeout, this is TimeoutError. Raises ValueError if
    the reply is not complete or its status is not 200.

    Args:
        address: a socket in the file system, or a host and a port.
    """
    async with asyncio.timeout(TIMEOUT_S):
        if isinstance(address, Path):
            reader, writer = await asyncio.open_unix_connection(address)
        else:
            reader, writer = await asyncio.open_connection(*address)
        try:
            reply = await exchange(reader, writer, request, REPLY_MAX_BYTES)
        except HttpError as error:
            raise ValueError(str(error)) from error
        finally:
            writer.transport.abort()
    if reply.status != 200 or not reply.is_whole:
        raise ValueError("the reply is not complete, or its status is not 200")
    return reply.body
