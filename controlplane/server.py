"""The service process, which serves the application with uvicorn."""

import asyncio
import gc
import multiprocessing
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FrameType

import uvicorn

from agent.wire.addresses import join_host_port
from agent.wire.sd_notify import Notifier
from controlplane.accounts.oidc.providers import IdentityProvider
from controlplane.accounts.sign_in_links import SignInLinks
from controlplane.clock import system_clock
from controlplane.settings import Settings
from controlplane.storage.database import Database
from controlplane.web.app import build_app
from controlplane.web.core import Core
from controlplane.web.long_calls import LongCalls
from controlplane.web.observability.listener import MetricsListener, with_metrics
from controlplane.web.observability.logs import Format, set_up_logging
from controlplane.web.observability.metrics import share_between_workers
from controlplane.web.protocol import bounded_protocol

GRACE_S = 5
"""After a signal to stop the service, calls that are running may continue for this time."""
IDLE_S = 5
"""Idle connections are closed after this time. A proxy must close its idle connections sooner, so
that it sends no request on a connection that the service is closing."""
FILES_FOR_CALLS = 512
"""File descriptors that are reserved for running calls, the database and other files."""
RESERVED_FILES = Settings().awaited_max + FILES_FOR_CALLS
"""File descriptors that streams do not get: those of connections that wait for their clients, and
`FILES_FOR_CALLS`.
"""
MACOS_FILES_MAX = 10_240
"""OPEN_MAX of macOS, which is the highest soft limit that its setrlimit(2) promises to accept."""
BACKLOG = 512
"""Connections that the system holds until the service accepts them: listen(2)."""
UNSENT_MAX_BYTES = 65_536
"""The system buffers at most this much of a reply for a client that does not read. By default, the
system buffers megabytes.
"""
COLLECT_AFTER = 50_000
"""Allocations between two garbage collections. With the default of 700 in Python 3.11, the garbage
collections during the parsing of a large body take more time than the parsing.
"""


def set_up_garbage_collection() -> None:
    """Collect garbage less often, and exclude the objects that exist at the start of the service.

    A garbage collection that searches these 180,000 objects stops all requests for a tenth of a
    second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)


class Server(uvicorn.Server):
    """A uvicorn server that calls ``on_listening`` once it listens, and ends streams at shutdown.

    A signal stops it with exit code 0. A worker also stops when its parent process has ended.
    """

    def __init__(
        self, config: uvicorn.Config, core: Core, on_listening: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._core = core
        self._on_listening = on_listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_listening()
        if (parent := multiprocessing.parent_process()) is not None:
            # The sentinel is readable once the process that started this worker has ended.
            loop = asyncio.get_running_loop()
            loop.add_reader(parent.sentinel, self.handle_exit, signal.SIGTERM, None)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._core.close_feeds()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # uvicorn would raise the signal again at the end, and the exit code would then not be 0. A
        # requested stop is not a failure.
        self.should_exit = True


def bind(host: str, port: int) -> socket.socket:
    """Return a bound socket. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "linux":  # connections inherit this option
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_MAX_BYTES)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def raise_file_limit(settings: Settings) -> Settings:
    """Raise the limit of open files as far as the system allows.

    Returns ``settings``, with fewer connections if the limit of open files requires this.
    """
    if sys.platform == "win32":
        return settings
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = highest_file_limit(soft, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return bounded_connections(settings, files)


def highest_file_limit(soft: int, hard: int) -> int:
    """Return the highest soft limit of open files that the system accepts.

    macOS has an unlimited hard limit by default, but refuses an unlimited soft limit: setrlimit(2).

    Args:
        soft, hard: the limits of this process.
    """
    return max(soft, min(hard, MACOS_FILES_MAX)) if sys.platform == "darwin" else hard


def bounded_connections(settings: Settings, files: int) -> Settings:
    """Return ``settings``, with fewer connections if ``files`` is too small for them.

    The streams get the files that are not reserved (`RESERVED_FILES`), but at least half of
    ``files``.

    Args:
        files: maximum number of open files of this process, or -1 if it is unlimited.
    """
    streams_max = max(files - RESERVED_FILES, files // 2)
    if files < 0 or settings.streams_max <= streams_max:  # RLIM_INFINITY is -1
        return settings
    other_files = files - streams_max
    awaited_max = min(settings.awaited_max, max(other_files - FILES_FOR_CALLS, other_files // 2))
    return replace(
        settings,
        streams_max=streams_max,
        organization_streams_max=int(
            streams_max * settings.organization_streams_max / settings.streams_max
        ),
        awaited_max=awaited_max,
        network_awaited_max=int(awaited_max * settings.network_awaited_max / settings.awaited_max),
    )


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{join_host_port(host, port)}"


def announce(listener: socket.socket, metrics: MetricsListener | None = None) -> None:
    """Print where the service listens, and report to systemd that it is ready.

    The programs that start the service wait for the printed line.
    """
    sys.stdout.write(f"listening on {url_of(listener)}\n")
    if metrics is not None:
        sys.stdout.write(f"metrics on {url_of(metrics.socket)}/metrics\n")
    sys.stdout.flush()
    Notifier().ready(f"listening on {url_of(listener)}")


def serve(
    database_url: str,
    settings: Settings,
    log_level: str,
    listener: socket.socket,
    on_listening: Callable[[], None],
    *,
    further_sockets: Sequence[socket.socket] = (),
    links: SignInLinks | None = None,
    metrics: MetricsListener | None = None,
    log_format: Format = "text",
    identity_providers: Sequence[IdentityProvider] = (),
) -> None:
    """Serve until SIGTERM or SIGINT. In a worker, also stop when its parent process has ended.

    Args:
        further_sockets: Sockets on which the service listens in addition to ``listener``.
        links: Sign-in links. Each link signs in one browser, once.
    """
    set_up_logging(log_level, log_format)
    if metrics is not None and metrics.directory is not None:
        share_between_workers(metrics.directory)
    settings = raise_file_limit(settings)
    database = Database(database_url, connections=settings.worker_threads)
    try:
        long_calls = LongCalls.in_processes(database_url, settings)
        core = Core(
            database, settings, system_clock,
            long_calls=long_calls, identity_providers=identity_providers,
        )  # fmt: skip
        core.sign_in_links = links or core.sign_in_links
        app = build_app(core)
        config = uvicorn.Config(
            app if metrics is None else with_metrics(app, core, metrics.port),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # uvicorn would accept them from any program of this machine
            date_header=False,  # the middleware sends it, from the clock of the service
            backlog=BACKLOG,
            timeout_graceful_shutdown=GRACE_S,
            timeout_keep_alive=IDLE_S,
            lifespan="on",
            http=bounded_protocol(settings),
            ws="none",
        )
        set_up_garbage_collection()
        sockets = [listener, *further_sockets, *([metrics.socket] if metrics else [])]
        Server(config, core, on_listening).run(sockets=sockets)
    finally:
        database.close()
