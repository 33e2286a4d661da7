"""Calls the service without a network, and computes a digest of its database."""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy.orm import Session
from starlette.types import ASGIApp, Message

from controlplane.storage.layout import Base

TIMEOUT_S = 300
JSON_HEADER = (b"content-type", b"application/json")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """An HTTP request.

    ``until`` is for replies that do not end by themselves: the client disconnects as soon as a
    chunk of the reply contains it.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    until: bytes = b""


async def call_app(app: ASGIApp, request: HttpRequest) -> tuple[int, str]:
    """Call the ASGI application as an HTTP server does. Return the status and text of the reply."""
    is_disconnected, status, chunks, is_sent = asyncio.Event(), 0, list[bytes](), False

    async def receive() -> Message:
        nonlocal is_sent
        if is_sent:
            await is_disconnected.wait()
            return {"type": "http.disconnect"}
        is_sent = True
        return {"type": "http.request", "body": request.body, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            return
        chunks.append(message.get("body", b""))
        if request.until and request.until in chunks[-1]:
            is_disconnected.set()

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": request.path.encode(),
        "root_path": "",
        "query_string": request.query.encode(),
        "headers": [
            (b"host", b"service"),
            JSON_HEADER,
            *((name.encode(), value.encode()) for name, value in request.headers.items()),
        ],
        "client": ("127.0.0.1", 1),
        "server": ("service", 80),
    }
    async with asyncio.timeout(TIMEOUT_S):
        await app(scope, receive, send)
    return status, b"".join(chunks).decode("utf-8-sig")  # CSV begins with a byte order mark


def digest(session: Session) -> str:
    """Return a digest of all rows of all tables."""
    hasher = hashlib.sha256()
    for table in Base.metadata.sorted_tables:
        rows = session.connection().exec_driver_sql(f"SELECT * FROM {table.name}").all()
        # The repr of an SQLAlchemy Row is slow to create, and omits the middle of long values.
        hasher.update(repr([tuple(row) for row in rows]).encode())
    return hasher.hexdigest()
