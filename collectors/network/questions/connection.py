"""A connection for one question to a host that may be old, broken or hostile."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from collectors.shared.addresses import PRINT_PORTS

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]

AGAIN_S = 0.35
"""A SYN without an answer after this time is sent again: the kernel would wait a second."""


@asynccontextmanager
async def connect(
    address: str, port: int, *, is_tls: bool, connection: socket.socket | None = None
) -> AsyncIterator[Connection]:
    """Open a connection, or use one that is open, and drop it at the end without waiting for the
    host. Raises OSError."""
    context = _tls_without_verification() if is_tls else None
    opened = connection or await _connected(address, port)
    try:
        reader, writer = await asyncio.open_connection(
            sock=opened, ssl=context, server_hostname=address if context else None
        )
    except BaseException:
        opened.close()
        raise
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)  # it closes in the loop's next pass: before another connection opens


async def _connected(address: str, port: int) -> socket.socket:
    """Connect. Where nothing comes back, a second socket tries, too, except at a print port: it is
    given one connection at a time, so only the kernel sends the SYN again, after a second."""
    if port in PRINT_PORTS:
        return await _attempt(address, port)
    attempts = [asyncio.create_task(_attempt(address, port))]
    chosen: asyncio.Task[socket.socket] | None = None
    try:
        done, _ = await asyncio.wait(attempts, timeout=AGAIN_S)
        if not done:
            attempts.append(asyncio.create_task(_attempt(address, port)))
            done, _ = await asyncio.wait(attempts, return_when=asyncio.FIRST_COMPLETED)
        chosen = next(iter(done))
        return chosen.result()
    finally:
        for each in attempts:
            if each is not chosen:
                _discard(each)


async def _attempt(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # asyncio sends at once (TCP_NODELAY) only where the socket says that it is TCP.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    opened.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(opened, (address, port))
    except BaseException:
        opened.close()
        raise
    return opened


def _discard(attempt: asyncio.Task[socket.socket]) -> None:
    """End an attempt, and close what it opened if it was done already."""

    def close(ended: asyncio.Task[socket.socket]) -> None:
        if not ended.cancelled() and ended.exception() is None:
            ended.result().close()

    attempt.cancel()
    attempt.add_done_callback(close)


@cache
def _tls_without_verification() -> ssl.SSLContext:
    """Devices of a LAN sign their own certificates, and nothing secret is sent to them."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("DEFAULT:@SECLEVEL=0")  # printers of 2010 know nothing newer
    return context
