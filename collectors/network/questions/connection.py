"""Opens a connection for one question. The host may be old, broken or hostile."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from collectors.shared.addresses import PRINT_PORTS

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]

SECOND_SOCKET_AFTER_S = 0.35
"""If a SYN gets no answer for this time, a second socket sends another one. The kernel would repeat
the SYN only after one second."""


@asynccontextmanager
async def connect(
    address: str, port: int, *, is_tls: bool, connection: socket.socket | None = None
) -> AsyncIterator[Connection]:
    """Open a connection to a port, or use the open ``connection``.

    At the end the connection is dropped without waiting for the host. Raises OSError.
    """
    context = _tls_without_verification() if is_tls else None
    new_socket = connection or await _connect_socket(address, port)
    try:
        reader, writer = await asyncio.open_connection(
            sock=new_socket, ssl=context, server_hostname=address if context else None
        )
    except BaseException:
        new_socket.close()
        raise
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        # asyncio closes the socket in the event loop's next iteration. That must happen before the
        # caller opens another connection.
        await asyncio.sleep(0)


async def _connect_socket(address: str, port: int) -> socket.socket:
    """Return a connected socket.

    If the host does not answer within `SECOND_SOCKET_AFTER_S`, a second socket also tries.
    A print port gets no second socket, because it may accept only one connection at a time. For
    such a port, only the kernel repeats the SYN, after one second.
    """
    if port in PRINT_PORTS:
        return await _attempt(address, port)
    attempts = [asyncio.create_task(_attempt(address, port))]
    winner: asyncio.Task[socket.socket] | None = None
    try:
        done, _ = await asyncio.wait(attempts, timeout=SECOND_SOCKET_AFTER_S)
        if not done:
            attempts.append(asyncio.create_task(_attempt(address, port)))
            done, _ = await asyncio.wait(attempts, return_when=asyncio.FIRST_COMPLETED)
        winner = next(iter(done))
        return winner.result()
    finally:
        for attempt in attempts:
            if attempt is not winner:
                _discard(attempt)


async def _attempt(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets that were created with the protocol IPPROTO_TCP.
    new_socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    new_socket.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(new_socket, (address, port))
    except BaseException:
        new_socket.close()
        raise
    return new_socket


def _discard(attempt: asyncio.Task[socket.socket]) -> None:
    """Cancel an attempt. If it has already connected, close its socket."""

    def close(ended: asyncio.Task[socket.socket]) -> None:
        if not ended.cancelled() and ended.exception() is None:
            ended.result().close()

    attempt.cancel()
    attempt.add_done_callback(close)


@cache
def _tls_without_verification() -> ssl.SSLContext:
    """Return a TLS context that accepts every certificate.

    Devices of a LAN have self-signed certificates, and no secret is sent to them.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("DEFAULT:@SECLEVEL=0")  # printers from about 2010 support only old ciphers
    return context
