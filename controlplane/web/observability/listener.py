"""`/metrics` on a separate socket, which the proxy in front of the service does not publish."""

import asyncio
import math
import os
import platform
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import psutil
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agent import __version__
from controlplane.devices.priority import ONLINE, Priority
from controlplane.operation.errors import Refusal
from controlplane.storage.tables import Device, Report
from controlplane.web.core import Core

COUNTS_CACHED_S: Final = 5.0
"""How long counts from the database are cached. Without the cache, frequent scrapes would load the
database."""
COUNTS_TIMEOUT_S: Final = 2.0
"""How long to wait for the counts. By default, Prometheus waits 10 s for all metrics."""
SUMMED_METRICS = {
    "process_cpu_seconds",
    "process_resident_memory_bytes",
    "process_virtual_memory_bytes",
    "process_open_fds",
}
"""Metrics that are summed over several processes. For other metrics, the minimum is returned."""

STATES: Final[Mapping[int, str]] = {
    Priority.CLOSED: "closed",
    Priority.MAINTENANCE: "maintenance",
    Priority.REVOKED: "revoked",
}
"""States of devices by priority. Devices with any other priority are online or offline."""


@dataclass(frozen=True, slots=True)
class DatabaseCounts:
    """Numbers of devices by state, and of reports that wait to be sent to ``--tracker-url``."""

    devices: Mapping[str, int]
    pending: int


def count_in_database(session: Session) -> DatabaseCounts:
    """Return the counts. The queries read only indexes."""
    devices = {"online": 0, "offline": 0, "closed": 0, "maintenance": 0, "revoked": 0}
    for priority, count in session.execute(
        select(Device.priority, func.count()).group_by(Device.priority)
    ):
        default = "online" if priority in ONLINE else "offline"
        devices[STATES.get(priority, default)] += count
    waiting = select(func.count()).where(Report.tracker_status == "pending")
    return DatabaseCounts(devices, session.scalars(waiting).one())


def scrape(
    counters: CollectorRegistry, counts: DatabaseCounts | None, accept: str
) -> tuple[bytes, str]:
    """Return all metrics in the format that ``accept`` prefers, and its media type.

    ``counts`` is None if the database does not answer.
    """
    registry = CollectorRegistry()
    directory = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if directory is None:
        registry.register(counters)
        processes: Sequence[int] = (os.getpid(),)
    else:
        MultiProcessCollector(registry, directory)  # type: ignore[no-untyped-call]
        processes = service_processes()
    registry.register(_ServiceState(counts))
    registry.register(Processes(processes))
    encode, media_type = choose_encoder(accept)
    return encode(registry), media_type


def service_processes() -> tuple[int, ...]:
    """Return the process that started this worker, and all of its children."""
    parent = psutil.Process(os.getppid())
    return (parent.pid, *(child.pid for child in parent.children(recursive=True)))


class _ServiceState(Collector):
    def __init__(self, counts: DatabaseCounts | None) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "venue_control_database_up",
            "Whether the database answered.",
            value=self._counts is not None,
        )
        build = GaugeMetricFamily(
            "venue_control_build_info", "Version of the service.", labels=("version", "python")
        )
        build.add_metric((__version__, platform.python_version()), 1)
        yield build
        if self._counts is None:
            return
        devices = GaugeMetricFamily(
            "venue_control_devices", "Enrolled devices, by state.", labels=("state",)
        )
        for state, count in self._counts.devices.items():
            devices.add_metric((state,), count)
        yield devices
        yield GaugeMetricFamily(
            "venue_control_tracker_queue",
            "Reports that wait to be sent to the webhook of --tracker-url.",
            value=self._counts.pending,
        )


class Processes(Collector):
    """The process metrics of the Prometheus client library, combined for several processes."""

    def __init__(self, processes: Sequence[int]) -> None:
        self._processes = processes

    def collect(self) -> Iterator[Metric]:
        metrics_by_name: dict[str, list[Metric]] = {}
        for pid in self._processes:
            for metric in ProcessCollector(pid=partial(int, pid), registry=None).collect():
                metrics_by_name.setdefault(metric.name, []).append(metric)
        for name, metrics in metrics_by_name.items():
            values = [sample.value for metric in metrics for sample in metric.samples]
            first = metrics[0]
            total = sum(values) if name in SUMMED_METRICS else min(values)
            first.samples = [first.samples[0]._replace(value=total)]
            yield first


@dataclass(frozen=True, slots=True)
class MetricsListener:
    """``directory`` has the shared counters of workers. It is None for a single process."""

    socket: socket.socket
    directory: Path | None = None

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])


def with_metrics(app: ASGIApp, core: Core, port: int) -> ASGIApp:
    """Return an application that serves metrics on ``port``, and ``app`` on other ports."""
    metrics = Starlette(routes=[Route("/metrics", MetricsEndpoint(core).answer)])

    async def split(scope: Scope, receive: Receive, send: Send) -> None:
        _host, server_port = scope.get("server") or (None, None)
        is_scrape = scope["type"] == "http" and server_port == port
        await (metrics if is_scrape else app)(scope, receive, send)

    return split


class MetricsEndpoint:
    """Serves the metrics. Counters are available even if the database does not answer."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._counts: DatabaseCounts | None = None
        self._counted_at_s = -math.inf

    async def answer(self, request: Request) -> Response:
        counts = await self._count()
        accept = request.headers.get("accept", "")
        # This runs in a thread, because it takes time to read the files of many workers.
        content, media_type = await asyncio.to_thread(
            scrape, self._core.metrics.registry, counts, accept
        )
        return Response(content, headers={"Content-Type": media_type})

    async def _count(self) -> DatabaseCounts | None:
        now_s = time.monotonic()
        if now_s - self._counted_at_s >= COUNTS_CACHED_S:
            try:
                async with asyncio.timeout(COUNTS_TIMEOUT_S):
                    self._counts = await self._core.read(count_in_database)
            except (SQLAlchemyError, Refusal, TimeoutError):
                self._counts = None
            self._counted_at_s = now_s
        return self._counts
