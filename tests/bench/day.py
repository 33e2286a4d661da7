"""Runs a compressed day: thousands of heartbeats and hundreds of reports in minutes. Prints how
much the daemon's memory has grown.

The daemon receives requests over the event stream of the reference service. Both run alone in a
network namespace. The modules that the first requests load stay in memory. Therefore the growth is
measured from the end of the day's first tenth, in which both kinds of report are created.

Usage: python -m tests.bench.day [--heartbeats N] [--requests N] [--interval S] [--build NAME]
    [--curve FILE]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.daemon import LOOPBACK_ONLY, builds_here, running, show, write_config
from tests.bench.processes import peak_kib, resident_kib
from tests.packaging.local_service import Json, LocalService, local_service, until

KINDS = ("network", "application")
GOAL_KIB = 1024
SAMPLES = 100
POLL_EVERY_S = 0.05
"""Interval of the polls. It is far shorter than any pause between two heartbeats, so that no
heartbeat is missed.
"""
INTERVAL_MIN_S = 0.15
ANSWERED_WITHIN_S = 60
IN_NAMESPACE = "VENUE_DAY_IN_NAMESPACE"


@dataclass(frozen=True, slots=True)
class Day:
    """The length of the day: the number of ``heartbeats``, and the seconds from one to the next.
    The ``requests`` are spread evenly over the day.
    """

    heartbeats: int = 5_000
    requests: int = 200
    interval_s: float = 0.2

    def __post_init__(self) -> None:
        if self.interval_s < INTERVAL_MIN_S:
            raise ValueError(f"heartbeats less than {INTERVAL_MIN_S} s apart cannot be counted")
        if self.requests_before(self.first_tenth) < len(KINDS):
            raise ValueError("the first tenth is too short for a report of each kind")

    @property
    def first_tenth(self) -> int:
        return self.heartbeats // 10

    @property
    def sample_every(self) -> int:
        return max(1, self.heartbeats // SAMPLES)

    def requests_before(self, number: int) -> int:
        """Return how many requests were created before the heartbeat with this number."""
        return number * self.requests // self.heartbeats


@dataclass(frozen=True, slots=True)
class Sample:
    """Resident memory of the daemon's own process, without the processes of collectors. It was
    read after the heartbeat with this number.
    """

    number: int
    resident_kib: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The memory use of one day. ``start_kib`` was measured at the end of the first tenth, and
    ``end_kib`` at the end of the day. ``growth_kib`` is the difference. ``slope_kib`` is the growth
    per 1,000 heartbeats, calculated from all samples after the first tenth.
    """

    growth_kib: int
    slope_kib: float
    start_kib: int
    end_kib: int
    max_kib: int


def calculate_growth(samples: Sequence[Sample], day: Day) -> Outcome:
    """Calculate the growth from samples in order of time. The last sample is taken after the last
    report.
    """
    settled = [each for each in samples if each.number >= day.first_tenth]
    start, end = settled[0].resident_kib, settled[-1].resident_kib
    return Outcome(
        growth_kib=end - start,
        slope_kib=1000 * _slope(settled),
        start_kib=start,
        end_kib=end,
        max_kib=max(each.resident_kib for each in samples),
    )


def _slope(samples: Sequence[Sample]) -> float:
    """Return the growth in KiB per heartbeat, calculated by least squares."""
    mean_number = sum(s.number for s in samples) / len(samples)
    mean_kib = sum(s.resident_kib for s in samples) / len(samples)
    spread = sum((s.number - mean_number) ** 2 for s in samples)
    if not spread:
        return 0.0
    return sum((s.number - mean_number) * (s.resident_kib - mean_kib) for s in samples) / spread


class Operator:
    """Requests both kinds of report in turn, and records which requests have been answered."""

    def __init__(self, service: LocalService, instance_id: str) -> None:
        self._service = service
        self._instance_id = instance_id
        self._waiting: list[str] = []
        self.request_count = 0

    def request_report(self) -> None:
        kind = KINDS[self.request_count % len(KINDS)]
        self._waiting.append(self._service.request(self._instance_id, kind))
        self.request_count += 1

    def has_all_reports(self) -> bool:
        """Return whether the service has accepted every report. Raises SystemExit if one failed."""
        while self._waiting:
            row = self._service.request_row(self._instance_id, self._waiting[0])
            if row["finishedAt"] is None:
                return False
            if row["status"] == "failed":
                raise SystemExit(f"a report failed: {row}")
            del self._waiting[0]
        return True


def run_day(pid: int, service: LocalService, device: Json, day: Day) -> list[Sample]:
    """Count the heartbeats that the service receives, request reports, and sample the daemon."""
    operator = Operator(service, str(device["instanceId"]))
    samples = []
    for number in _heartbeats(service, day.heartbeats):
        if operator.request_count < day.requests_before(number):
            operator.request_report()
        if number == day.first_tenth:
            samples.append(Sample(number, _at_rest(pid, service, operator)))
        elif number % day.sample_every == 0:
            # The service lists only the newest requests, so read their results before newer
            # requests replace them in the list.
            operator.has_all_reports()
            samples.append(Sample(number, resident_kib(pid)))
    samples.append(Sample(day.heartbeats, _at_rest(pid, service, operator)))
    if operator.request_count != day.requests:
        raise SystemExit(f"requested {operator.request_count} reports instead of {day.requests}")
    return samples


def _at_rest(pid: int, service: LocalService, operator: Operator) -> int:
    """Return the resident memory one heartbeat after the last requested report."""
    until(operator.has_all_reports, ANSWERED_WITHIN_S)
    next(_heartbeats(service, 1))
    return resident_kib(pid)


def _heartbeats(service: LocalService, count: int) -> Iterator[int]:
    """Yield 1, 2, … ``count`` as heartbeats arrive. Only these change the device's lastSeenAt."""
    seen, number = service.devices()[0]["lastSeenAt"], 0
    while number < count:
        now = until(lambda: _changed_last_seen(service, seen), ANSWERED_WITHIN_S)  # noqa: B023
        seen, number = now, number + 1
        yield number


def _changed_last_seen(service: LocalService, seen: str) -> str | None:
    now = str(service.devices()[0]["lastSeenAt"])
    if now != seen:
        return now
    time.sleep(POLL_EVERY_S)
    return None


def show_day(
    name: str, command: tuple[str, ...], folder: Path, day: Day, curve: Path | None = None
) -> Outcome:
    """Run a day with one build of the daemon, and print the result. ``curve`` receives the samples
    as lines of ``heartbeat,KiB``.
    """
    more = f'[heartbeat]\ninterval_seconds = {day.interval_s}\n[commands]\ndelivery = "stream"\n'
    with local_service(folder) as service:
        config = write_config(folder / "agent", service.base_url, service.api_key, more)
        with running(command, config):
            device = service.enrolled_device()
        # A daemon that has just enrolled uses more memory: restart it.
        with running(command, config) as agent:
            began = time.monotonic()
            samples = run_day(agent.process.pid, service, device, day)
            seconds = time.monotonic() - began
            peak = peak_kib(agent.process.pid)
    outcome = calculate_growth(samples, day)
    if curve is not None:
        curve.write_text("".join(f"{s.number},{s.resident_kib}\n" for s in samples))
    show(
        f"24 h compressed ({name})",
        f"growth {outcome.growth_kib / 1024:+.2f} MiB (goal < {GOAL_KIB / 1024:.0f})",
        f"RSS {outcome.start_kib / 1024:.1f} after the first tenth, {outcome.end_kib / 1024:.1f} at"
        f" the end, max {max(outcome.max_kib, peak) / 1024:.1f}",
        f"{outcome.slope_kib:+.1f} KiB in 1,000 heartbeats",
        f"{day.heartbeats} heartbeats, {day.requests} reports, {seconds:.0f} s",
    )
    return outcome


def main() -> int:
    default = Day()
    parser = argparse.ArgumentParser(description="Run a compressed day, print the memory growth.")
    parser.add_argument("--heartbeats", type=int, default=default.heartbeats)
    parser.add_argument("--requests", type=int, default=default.requests)
    parser.add_argument("--interval", type=float, default=default.interval_s, metavar="SECONDS")
    parser.add_argument("--build", choices=sorted(builds_here()), help="default: the package")
    parser.add_argument("--curve", type=Path, metavar="FILE", help="write the samples as CSV")
    options = parser.parse_args()
    try:
        day = Day(options.heartbeats, options.requests, options.interval)
    except ValueError as error:
        parser.error(str(error))
    if IN_NAMESPACE not in os.environ:
        command = (*LOOPBACK_ONLY, sys.executable, "-m", "tests.bench.day", *sys.argv[1:])
        return subprocess.run(
            command, env={**os.environ, IN_NAMESPACE: "1"}, check=False
        ).returncode
    builds = builds_here()
    name = options.build or list(builds)[-1]
    with tempfile.TemporaryDirectory(prefix="venue-day-") as directory:
        outcome = show_day(name, builds[name], Path(directory), day, options.curve)
    return 0 if outcome.growth_kib < GOAL_KIB else 1


if __name__ == "__main__":
    sys.exit(main())
