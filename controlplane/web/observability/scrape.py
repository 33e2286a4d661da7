"""What a scrape answers: what all workers counted, and what is looked up when it is asked."""

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import psutil
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from agent import __version__
from controlplane.devices.priority import ONLINE, Priority
from controlplane.storage.tables import Device, Report

SUMMED = {
    "process_cpu_seconds",
    "process_resident_memory_bytes",
    "process_virtual_memory_bytes",
    "process_open_fds",
}
"""Of several processes these are added up; of all else the least is told."""

STATES: Final[Mapping[int, str]] = {
    Priority.CLOSED: "closed",
    Priority.MAINTENANCE: "maintenance",
    Priority.REVOKED: "revoked",
}


@dataclass(frozen=True, slots=True)
class Found:
    """``devices`` by state, and how many reports wait for the tracker."""

    devices: Mapping[str, int]
    pending: int


def look(session: Session) -> Found:
    """Count in the database, by indexes alone."""
    devices = {"online": 0, "offline": 0, "closed": 0, "maintenance": 0, "revoked": 0}
    for priority, count in session.execute(
        select(Device.priority, func.count()).group_by(Device.priority)
    ):
        place = Priority(priority)
        devices[STATES.get(place, "online" if place in ONLINE else "offline")] += count
    waiting = select(func.count()).where(Report.tracker_status == "pending")
    return Found(devices, session.scalars(waiting).one())


def scrape(counted: CollectorRegistry, found: Found | None, accept: str) -> tuple[bytes, str]:
    """Return the exposition of all metrics in the form that ``accept`` prefers, and its type.

    ``found`` is None where the database does not answer.
    """
    registry = CollectorRegistry()
    directory = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if directory is None:
        registry.register(counted)
        processes: Sequence[int] = (os.getpid(),)
    else:
        MultiProcessCollector(registry, directory)  # type: ignore[no-untyped-call]
        processes = family()
    registry.register(_Found(found))
    registry.register(Processes(processes))
    encode, media_type = choose_encoder(accept)
    return encode(registry), media_type


def family() -> tuple[int, ...]:
    """Return the process that started this worker, and all that it started."""
    parent = psutil.Process(os.getppid())
    return (parent.pid, *(each.pid for each in parent.children(recursive=True)))


class _Found(Collector):
    def __init__(self, found: Found | None) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "venue_control_database_up",
            "Whether the database answered.",
            value=self._found is not None,
        )
        build = GaugeMetricFamily(
            "venue_control_build_info", "What runs here.", labels=("version", "python")
        )
        build.add_metric((__version__, platform.python_version()), 1)
        yield build
        if self._found is None:
            return
        devices = GaugeMetricFamily(
            "venue_control_devices", "Devices that have enrolled, by state.", labels=("state",)
        )
        for state, count in self._found.devices.items():
            devices.add_metric((state,), count)
        yield devices
        yield GaugeMetricFamily(
            "venue_control_tracker_queue",
            "Reports of which the tracker is still to be told.",
            value=self._found.pending,
        )


class Processes(Collector):
    """The usual metrics of a process, for several as if they were one."""

    def __init__(self, processes: Sequence[int]) -> None:
        self._processes = processes

    def collect(self) -> Iterator[Metric]:
        found: dict[str, list[Metric]] = {}
        for pid in self._processes:
            for metric in ProcessCollector(pid=partial(int, pid), registry=None).collect():
                found.setdefault(metric.name, []).append(metric)
        for name, metrics in found.items():
            values = [sample.value for metric in metrics for sample in metric.samples]
            first = metrics[0]
            total = sum(values) if name in SUMMED else min(values)
            first.samples = [first.samples[0]._replace(value=total)]
            yield first
