"""The service as a process: uvicorn around the application, on loopback unless told otherwise."""

import gc
import logging
import socket
import sys
from collections.abc import Sequence
from types import FrameType

import uvicorn

from agent.wire.addresses import join_host_port
from controlplane.clock import system_clock
from controlplane.core import Core
from controlplane.http.app import build_app
from controlplane.settings import Settings
from controlplane.storage.database import Database

GRACE_S = 5
BACKLOG = 512
COLLECT_AFTER = 50_000
"""Objects made between two looks for garbage. By Python's 700, a large body is looked through
again and again while it becomes objects, which costs more than to read it."""


class Server(uvicorn.Server):
    """Says where it listens, ends the command streams at shutdown, and exits with 0 on a signal."""

    def __init__(self, config: uvicorn.Config, core: Core, address: str) -> None:
        super().__init__(config)
        self._core = core
        self._address = address

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            sys.stdout.write(f"listening on {self._address}\n")
            sys.stdout.flush()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._core.notifications.close()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # uvicorn would raise the signal again once it is done; a stop that was asked for is no
        # failure.
        self.should_exit = True


def bind(host: str, port: int) -> socket.socket:
    """Return a listening-ready socket. Raises OSError in the operating system's words."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{join_host_port(host, port)}"


def serve(
    database_url: str,
    listeners: Sequence[socket.socket],
    settings: Settings,
    log_level: str,
    *,
    offered_key: str | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; say where, and what signs in with ``offered_key``."""
    logging.basicConfig(
        level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    database = Database(database_url, connections=settings.worker_threads)
    try:
        core = Core(database, settings, system_clock)
        config = uvicorn.Config(
            build_app(core),
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,  # the guard sends it, with the service's own clock
            backlog=BACKLOG,
            timeout_graceful_shutdown=GRACE_S,
            lifespan="on",
        )
        gc.set_threshold(COLLECT_AFTER)
        address = url_of(listeners[0])
        if offered_key is not None:
            sys.stdout.write(f"sign in at {address}{core.sign_in_links.offer(offered_key)}\n")
        Server(config, core, address).run(sockets=list(listeners))
    finally:
        database.close()
