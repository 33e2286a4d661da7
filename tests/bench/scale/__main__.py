"""Measures the service with the command streams of a large fleet, on PostgreSQL. The load generator
shares the processors with the service, so processor times and memory are more reliable than
durations.

    python -m tests.bench.scale [--streams N] [--workers N] [--organizations N] [--idle SECONDS]
        [--load SECONDS] [--heartbeats N] [--reports N] [--requests N]

The last three options are rates in calls per second. Every process needs a file for each of its
streams, so a low limit of open files (ulimit -Hn) requires more workers.
"""

import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from sqlalchemy import make_url

from controlplane.storage.database import Database
from tests.bench.fleet.fleet import Member, populate
from tests.bench.fleet.service import Service
from tests.bench.processes import Cost, cost_of
from tests.postgresql import postgresql

KIB = 1024
HELD_BY_A_PROCESS = 17_000
"""Maximum number of streams that one process of `held_streams` holds."""
OPEN_WITHIN_S = 900
HEARTBEAT_S = 60


def main() -> int:
    options = _options()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="venue-scale-")))
        url = stack.enter_context(postgresql())
        began_s = time.monotonic()
        fleet = _write_fleet(url, options.streams, options.organizations)
        (directory / "keys").write_text("".join(f"{each.api_key}\n" for each in fleet))
        (directory / "fleet").write_text(
            "".join(f"{each.api_key} {each.instance_id} {each.binding_id}\n" for each in fleet)
        )
        _print(f"{len(fleet):,} devices stored", f"{time.monotonic() - began_s:.0f} s")
        _print("load average", " ".join(f"{each:.2f}" for each in os.getloadavg()))
        service = stack.enter_context(_service(url, options.workers))
        scale = Scale(service, postmaster_of(url), directory, options)
        scale.open_streams(stack)
        scale.idle()
        scale.load()
        scale.end()
    return 0


class Scale:
    """The steps of the measurement. Each prints its figures."""

    def __init__(
        self, service: Service, postmaster: int, directory: Path, options: argparse.Namespace
    ) -> None:
        self._service = service
        self._postmaster = postmaster
        self._directory = directory
        self._options = options
        self._holders: list[Holder] = []

    def open_streams(self, stack: contextlib.ExitStack) -> None:
        count = self._options.streams
        parts = math.ceil(count / HELD_BY_A_PROCESS)
        before, began_s = cost_of(self._service.pid), time.monotonic()
        for part in range(parts):
            words = (self._service.port, self._directory / "keys", part, count, parts)
            self._holders.append(stack.enter_context(_holder([str(each) for each in words])))
        opened_s = [holder.wait_until_open() for holder in self._holders]
        after = cost_of(self._service.pid)
        _print("all open after", f"{max(opened_s) - began_s:.0f} s")
        _print("opened again", str(sum(holder.reopened for holder in self._holders)))
        _print("CPU of opening", f"{1000 * (after.cpu_s - before.cpu_s) / count:.2f} ms a stream")
        kib = (after.pss_mib - before.pss_mib) * KIB / count
        _print("memory", f"{kib:.1f} KiB PSS a stream, {after.pss_mib:.0f} MiB in total")

    def idle(self) -> None:
        before, database_before = cost_of(self._service.pid), cost_of(self._postmaster)
        began_s = time.monotonic()
        time.sleep(self._options.idle)
        took_s = time.monotonic() - began_s
        share = 100 * (cost_of(self._service.pid).cpu_s - before.cpu_s) / took_s
        database_share = 100 * _cpu_since(self._postmaster, database_before) / took_s
        per_thousand = share / (self._options.streams / 1000)
        _print("idle", f"{share:.1f} % of a core, {per_thousand:.3f} % per 1,000 streams")
        _print("idle PostgreSQL", f"{database_share:.1f} % of a core")

    def load(self) -> None:
        options, service = self._options, self._service
        heartbeats = options.heartbeats or options.streams / HEARTBEAT_S
        rates = (heartbeats, options.reports, options.requests)
        words = (service.port, self._directory / "fleet", options.load, *rates)
        command = (sys.executable, "-m", "tests.bench.scale.load", *(str(each) for each in words))
        before, database_before = cost_of(service.pid), cost_of(self._postmaster)
        began_s = time.monotonic()
        result = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        took_s = time.monotonic() - began_s
        after, sent = cost_of(service.pid), json.loads(result.stdout)
        _print(
            "load",
            ", ".join(f"{rate:.0f}" for rate in rates) + " heartbeats, reports, requests a second",
        )
        for name in ("heartbeats", "reports", "requests"):
            _print(name, _format_tally(sent[name]))
        self._print_arrivals(sent["due"])
        _print("CPU under load", f"{100 * (after.cpu_s - before.cpu_s) / took_s:.0f} % of a core")
        database_share = 100 * _cpu_since(self._postmaster, database_before) / took_s
        _print("PostgreSQL under load", f"{database_share:.0f} % of a core")
        _print("memory under load", f"{after.pss_mib:.0f} MiB PSS in total")

    def _print_arrivals(self, due_s: dict[str, float]) -> None:
        arrived_s: dict[str, float] = {}
        until_s = time.monotonic() + 30
        while time.monotonic() < until_s and not due_s.keys() <= arrived_s.keys():
            for holder in self._holders:
                arrived_s |= holder.arrived_s
            time.sleep(0.1)
        took_s = [arrived_s[each] - due_s[each] for each in due_s.keys() & arrived_s.keys()]
        missing = len(due_s) - len(took_s)
        _print("request at its device", f"{_format_percentiles(took_s)}, {missing} missing")

    def end(self) -> None:
        ends = [holder.end() for holder in self._holders]
        lost = sum(reopened for _, reopened in ends) - sum(each.reopened for each in self._holders)
        _print("streams at the end", f"{sum(open_now for open_now, _ in ends):,}, {lost} lost")
        _print("load average", " ".join(f"{each:.2f}" for each in os.getloadavg()))


class Holder:
    """A process that holds streams open (`held_streams`)."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.reopened = 0  # streams that were opened again before all were open
        self.arrived_s: dict[str, float] = {}  # by the id of the request
        self._opened_s = 0.0
        self._is_open = threading.Event()
        self._at_end = (0, 0)  # the result of `end`
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_until_open(self) -> float:
        """Wait until all streams are open. Return the time of the last one (CLOCK_MONOTONIC)."""
        if not self._is_open.wait(OPEN_WITHIN_S):
            raise TimeoutError("the streams were not opened in time")
        return self._opened_s

    def end(self) -> tuple[int, int]:
        """End the process. Return how many streams were open, and how many were opened again."""
        stdin: IO[str] | None = self._process.stdin
        assert stdin is not None
        stdin.close()
        self._reader.join(30)
        return self._at_end

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, first, second = line.split()
            if word == "open":
                self._opened_s, self.reopened = float(first), int(second)
                self._is_open.set()
            elif word == "arrived":
                self.arrived_s = self.arrived_s | {first: float(second)}
            else:
                self._at_end = int(first), int(second)


@contextlib.contextmanager
def _holder(words: list[str]) -> Iterator[Holder]:
    command = (sys.executable, "-m", "tests.bench.scale.held_streams", *words)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Holder(process)
        finally:
            process.kill()


@contextlib.contextmanager
def _service(url: str, workers: int) -> Iterator[Service]:
    """Run the service with its usual limits."""
    words = ("serve", "--database", url, "--port", "0", "--workers", str(workers))
    command = (sys.executable, "-m", "controlplane", *words, "--log-level", "warning")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield Service(int(line.rpartition(":")[2]), process.pid)
        finally:
            process.terminate()
            process.wait(60)


def _write_fleet(url: str, devices: int, organizations: int) -> list[Member]:
    database = Database(url)
    try:
        return [
            member
            for number in range(organizations)
            for member in populate(database, devices // organizations, f"org-{number:04}")
        ]
    finally:
        database.close()


def postmaster_of(url: str) -> int:
    directory = Path(str(make_url(url).query["host"]))
    return int((directory / "data" / "postmaster.pid").read_text().split()[0])


def _cpu_since(pid: int, before: Cost) -> float:
    return cost_of(pid).cpu_s - before.cpu_s


def _format_tally(sent: dict[str, Any]) -> str:
    statuses = " ".join(f"{count:,} × {status}" for status, count in sent["statuses"].items())
    return f"{statuses}, {sent['unanswered']} unanswered, {_format_percentiles(sent['latencies'])}"


def _format_percentiles(values_s: list[float]) -> str:
    if len(values_s) < 2:
        return "no figures"
    p50, p99 = statistics.median(values_s), statistics.quantiles(values_s, n=100)[98]
    return f"p50 {1000 * p50:.0f} ms, p99 {1000 * p99:.0f} ms, max {1000 * max(values_s):.0f} ms"


def _print(name: str, figures: str) -> None:
    sys.stdout.write(f"{name:<24}{figures}\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the service under a large fleet.")
    parser.add_argument("--streams", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--organizations", type=int, default=100)
    parser.add_argument("--idle", type=float, default=45, help="seconds without calls")
    parser.add_argument("--load", type=float, default=60, help="seconds with calls")
    parser.add_argument(
        "--heartbeats", type=float, help="rate a second; default: one from each device in 60 s"
    )
    parser.add_argument("--reports", type=float, default=20, help="reports a second")
    parser.add_argument("--requests", type=float, default=10, help="requests a second")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
