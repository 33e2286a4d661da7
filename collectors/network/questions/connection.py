"""A connection for one question to a host that may be old, broken or hostile."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connect(address: str, port: int, *, is_tls: bool) -> AsyncIterator[Connection]:
    """Open a connection and drop it at the end without waiting for the host. Raises OSError."""
    context = _tls_without_verification() if is_tls else None
    reader, writer = await asyncio.open_connection(address, port, ssl=context)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


@cache
def _tls_without_verification() -> ssl.SSLContext:
    """Devices of a LAN sign their own certificates, and nothing secret is sent to them."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("DEFAULT:@SECLEVEL=0")  # printers of 2010 know nothing newer
    return context
