"""`/metrics` on a socket of its own: what the proxy in front of the service shows to the world is
another one.
"""

import asyncio
import math
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from controlplane.operation.errors import Refusal
from controlplane.web.core import Core
from controlplane.web.observability.scrape import Found, look, scrape

FOUND_HOLDS_S: Final = 5.0
"""Several may scrape, and each as often as it likes."""
FOUND_WITHIN_S: Final = 2.0
"""Prometheus waits for 10 s unless it is told otherwise."""


@dataclass(frozen=True, slots=True)
class MetricsListener:
    """``directory`` is where workers add up what they count; None for a single process."""

    socket: socket.socket
    directory: Path | None = None

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])


def beside(app: ASGIApp, core: Core, port: int) -> ASGIApp:
    """Return an application that answers ``port`` with metrics, and all else as ``app`` does."""
    metrics = Starlette(routes=[Route("/metrics", MetricsEndpoint(core).answer)])

    async def split(scope: Scope, receive: Receive, send: Send) -> None:
        is_scrape = scope["type"] == "http" and (scope.get("server") or (None, None))[1] == port
        await (metrics if is_scrape else app)(scope, receive, send)

    return split


class MetricsEndpoint:
    """What was counted is told also while the database does not answer."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._found: Found | None = None
        self._looked_at_s = -math.inf

    async def answer(self, request: Request) -> Response:
        found = await self._look()
        accept = request.headers.get("accept", "")
        # In a thread: the files of many workers take a while to read.
        content, media_type = await asyncio.to_thread(
            scrape, self._core.metrics.registry, found, accept
        )
        return Response(content, headers={"Content-Type": media_type})

    async def _look(self) -> Found | None:
        now_s = time.monotonic()
        if now_s - self._looked_at_s >= FOUND_HOLDS_S:
            try:
                async with asyncio.timeout(FOUND_WITHIN_S):
                    self._found = await self._core.read(look)
            except (SQLAlchemyError, Refusal, TimeoutError):
                self._found = None
            self._looked_at_s = now_s
        return self._found
