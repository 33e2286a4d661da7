"""Measures how soon after a request the agent acknowledges it and starts the collection. Uses the
package if it is built (make onedir).

Two services request reports, one after the other. The goals apply only to the lean service
(`tests.bench.lean_service`). The figures of the reference service, which runs on SQLite, include
its own work and the operator's calls. The title of each figure names the two events between which
the time is measured. A line before the figures and a line after them show how late a sleeping
process wakes up. On an idle machine this is about 0.1 ms.

Everything runs in a separate network namespace. The exit code is 1 if a goal is missed.
Usage: python -m tests.bench.latency [--requests N] [--rare N] [--every-build]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tests.bench.daemon import ROOT, builds_here, running, show, write_config
from tests.bench.processes import cost_of
from tests.fakes.strict_service import API_KEY
from tests.lab.namespaces import namespace_prefix
from tests.packaging.local_service import LocalService, local_service, until

IN_NAMESPACE = "VENUE_BENCH_IN_NAMESPACE"
P99_GOAL_MS = 20.0
GOALS_MS = {"received": 6.0, "running": 9.0}
"""Goals of the median time from the command to each acknowledgement."""
POLL_EVERY_S = 0.1
"""Interval of the polls for a report. More frequent polls would slow down the service."""
WARM_UP = 3
"""Number of first requests that are not measured."""
REQUESTS_WITHIN_S = 25.0
"""No requests to the reference service are created after this time. Therefore a loaded machine
creates fewer requests. The lean service has its own limit.
"""
WAKE_UPS = 100
NAP_S = 0.005


@dataclass(frozen=True, slots=True)
class Spread:
    """Statistics of the durations of ``count`` requests, in milliseconds."""

    median: float
    p95: float
    p99: float
    count: int

    def __str__(self) -> str:
        return (
            f"p50 {self.median:5.1f} ms, p95 {self.p95:5.1f}, p99 {self.p99:5.1f} (n={self.count})"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure how soon requests are executed.")
    parser.add_argument(
        "--requests", type=int, default=100, help="number of requests to each service"
    )
    parser.add_argument(
        "--rare", type=int, default=4, help="number of requests that each follow 11 s of idling"
    )
    parser.add_argument(
        "--every-build", action="store_true", help="measure every build, not only the package"
    )
    options = parser.parse_args()
    if IN_NAMESPACE not in os.environ:
        words = (*namespace_prefix(), sys.executable, "-m", "tests.bench.latency", *sys.argv[1:])
        return subprocess.run(words, env={**os.environ, IN_NAMESPACE: "1"}, check=False).returncode
    builds = list(builds_here().items())
    if "package" not in dict(builds):
        show("no package is built here (make onedir)", "the goals are meant for the package")
    missed = []
    show_wake_up_delay()
    for name, command in builds if options.every_build else builds[-1:]:
        with tempfile.TemporaryDirectory(prefix="venue-latency-") as folder:
            missed += show_latencies(name, command, Path(folder), options.requests, options.rare)
    show_wake_up_delay()
    for goal in missed:
        show("MISSED", goal)
    return 1 if missed else 0


def show_latencies(
    name: str, command: Sequence[str], folder: Path, requests: int, rare: int = 0
) -> list[str]:
    """Measure one build against both services; return a description of each missed goal."""
    missed = show_against_lean(name, command, folder / "lean", requests, rare)
    show_against_reference(name, command, folder / "reference", requests)
    return missed


# ---------------------------------------------------------------------------- the lean service


def show_against_lean(
    name: str, command: Sequence[str], folder: Path, requests: int, rare: int
) -> list[str]:
    """Measure with the lean service, whose timestamps are from CLOCK_MONOTONIC."""
    with _lean_service(requests, rare) as service:
        config = write_config(folder, _next_line(service).split()[-1], API_KEY)
        with running(tuple(command), config) as agent:
            measured: dict[str, list[dict[str, float]]] = json.loads(_next_line(service))
            cpu_s = cost_of(agent.process.pid).cpu_s
    missed = []
    for event, goal_ms in GOALS_MS.items():
        spread = _since_requested(measured["steady"], event)
        title = f"{name}, lean service: command sent to {event}"
        goals = f"goals: p50 {goal_ms:g}, p99 {P99_GOAL_MS:g}"
        show(title, spread, goals)
        if spread.median > goal_ms or spread.p99 > P99_GOAL_MS:
            missed.append(f"{title}: {spread}, {goals}")
    show(
        f"{name}, lean service: command sent to report",
        _since_requested(measured["steady"], "reported"),
    )
    each_ms = 1000 * cpu_s / (len(measured["steady"]) + len(measured["rare"]))
    show(
        f"{name}, lean service: the daemon's CPU time",
        f"{each_ms:.1f} ms a request, start included",
    )
    if measured["rare"]:
        for event in GOALS_MS:
            spread = _since_requested(measured["rare"], event)
            show(f"{name}, lean service, rare: command sent to {event}", spread)
    return missed


@contextmanager
def _lean_service(requests: int, rare: int) -> Iterator[subprocess.Popen[str]]:
    words = (sys.executable, "-m", "tests.bench.lean_service", str(requests), str(rare))
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT) as service:
        try:
            yield service
        finally:
            service.kill()


def _next_line(service: subprocess.Popen[str]) -> str:
    line = service.stdout.readline() if service.stdout else ""
    if not line:
        raise SystemExit("the lean service ended early")
    return line


def _since_requested(measured: Sequence[dict[str, float]], event: str) -> Spread:
    return _spread([each[event] - each["requested"] for each in measured])


# ---------------------------------------------------------------------------- the reference service


def show_against_reference(name: str, command: Sequence[str], folder: Path, requests: int) -> None:
    """Measure with the reference service. The timestamps are from its database: each is the time at
    which a call began.
    """
    folder.mkdir()
    received, started, finished = [], [], []
    with local_service(folder) as service:
        config = write_config(folder / "agent", service.base_url, service.api_key)
        with running(tuple(command), config):
            instance_id = service.enrolled_device()["instanceId"]
            for _ in range(WARM_UP):
                _request_report(service, instance_id)
            until_s = time.monotonic() + REQUESTS_WITHIN_S
            while len(received) < requests and time.monotonic() < until_s:
                row = _request_report(service, instance_id)
                created = _timestamp(row["createdAt"])
                received.append(_timestamp(row["receivedAt"]) - created)
                started.append(_timestamp(row["startedAt"]) - created)
                finished.append(_timestamp(row["finishedAt"]) - created)
    show(f"{name}, reference service: createRequest to received", _spread(received))
    show(f"{name}, reference service: createRequest to running", _spread(started))
    show(f"{name}, reference service: createRequest to report", _spread(finished))


def _request_report(service: LocalService, instance_id: str) -> dict[str, str]:
    """Request a report. Return the service's record of the request when the report has arrived."""
    request_id = service.request(instance_id, "network")

    def finished_row() -> dict[str, str] | None:
        row = service.request_row(instance_id, request_id)
        return row if row["finishedAt"] else None

    return until(finished_row, 60, every_s=POLL_EVERY_S)


def _timestamp(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


# ---------------------------------------------------------------------------- the machine


def show_wake_up_delay() -> None:
    late = []
    for _ in range(WAKE_UPS):
        began = time.monotonic()
        time.sleep(NAP_S)
        late.append(time.monotonic() - began - NAP_S)
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
    show("this machine: a sleeping process wakes up late by", _spread(late), load)


def _spread(seconds: Sequence[float]) -> Spread:
    ordered = sorted(1000 * each for each in seconds)
    p95, p99 = (ordered[min(len(ordered) - 1, int(part * len(ordered)))] for part in (0.95, 0.99))
    return Spread(statistics.median(ordered), p95, p99, len(ordered))


if __name__ == "__main__":
    sys.exit(main())
