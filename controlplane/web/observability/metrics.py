"""The metrics of the service, for Prometheus.

Each label has a small, fixed set of values. Labels never contain devices, keys, organizations or
other values that callers choose. Several processes share their counters in files
(`share_between_workers`).
"""

import multiprocessing
import os
from contextlib import AbstractContextManager
from http import HTTPStatus
from itertools import product
from pathlib import Path
from typing import Final, Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client import values as prometheus_values
from prometheus_client.multiprocess import mark_process_dead

from agent.wire.vocabulary import Kind, Outcome
from controlplane.operation.fairness import StreamKind

disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double the number of series

Way = Literal["stream", "reply"]
Transaction = Literal["read", "write"]
TrackerResult = Literal["sent", "failed", "retried"]
CALL_BUCKETS_S: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
DATABASE_BUCKETS_S: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)


def share_between_workers(directory: Path) -> None:
    """Store the counters of new `Metrics` in files of this worker, in ``directory``.

    The files have the name of the worker, not its process id. A worker that replaces a dead worker
    has the same name and continues the counters of the dead worker, so that no counter decreases
    and files do not accumulate. Gauges start at 0 again.
    """
    worker = multiprocessing.current_process().name
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(directory)
    mark_process_dead(worker, str(directory))  # type: ignore[no-untyped-call]
    prometheus_values.ValueClass = prometheus_values.MultiProcessValue(  # type: ignore[no-untyped-call]
        lambda: worker
    )


class Metrics:
    """The metrics of this process. They can be used from any thread."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = self._counter("requests", "Answered calls.", "operation", "status")
        self._durations = self._histogram(
            "request_duration_seconds",
            "Duration of calls, without streams.",
            CALL_BUCKETS_S,
            "operation",
        )
        self._refusals = self._counter("refusals", "Refused calls, by code.", "code")
        self._streams = Gauge(
            "venue_control_streams_open",
            "Open event streams.",
            ("kind",),
            registry=self.registry,
            multiprocess_mode="livesum",
        )
        self._commands = self._counter(
            "commands_told", "Commands sent to devices, including repeated ones.", "kind", "way"
        )
        self._reports = self._counter("reports_received", "Stored reports.", "kind", "outcome")
        self._transactions = self._histogram(
            "database_transaction_seconds",
            "Duration of transactions.",
            DATABASE_BUCKETS_S,
            "kind",
        )
        self._waits = self._histogram(
            "database_wait_seconds",
            "Time that transactions waited for a thread and for other transactions.",
            DATABASE_BUCKETS_S,
            "kind",
        )
        self._retries = self._counter(
            "database_retries", "Transactions that were repeated after a conflict.", "kind"
        )
        self._tracker = self._counter(
            "tracker_attempts",
            "Attempts to send messages about reports to the webhook of --tracker-url, by result.",
            "result",
        )
        self._calls: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self._by_kind = {
            arg: (self._waits.labels(arg), self._transactions.labels(arg))
            for arg in get_args(Transaction)
        }
        self._begin_at_zero()

    def count_call(self, operation: str, status: int, code: str, took_s: float | None) -> None:
        """Count an answered call.

        ``status`` is 0 if the client disconnected. ``took_s`` is None for a stream.
        """
        call_metrics = self._calls.get((operation, status))
        if call_metrics is None:
            # The series are cached, because finding them by labels costs as much as counting.
            status_class = f"{status // 100}xx" if status else "none"
            call_metrics = (
                self._requests.labels(operation, status_class),
                self._durations.labels(operation),
            )
            self._calls[operation, status] = call_metrics
        requests, durations = call_metrics
        requests.inc()
        if took_s is not None:
            durations.observe(took_s)
        if status >= HTTPStatus.BAD_REQUEST and code:
            self._refusals.labels(code).inc()

    def stream(self, kind: StreamKind) -> AbstractContextManager[object]:
        """Count a stream as long as the context lasts."""
        return self._streams.labels(kind).track_inprogress()

    def count_command(self, kind: Kind, way: Way) -> None:
        self._commands.labels(kind, way).inc()

    def count_report(self, kind: Kind, outcome: Outcome) -> None:
        self._reports.labels(kind, outcome).inc()

    def count_transaction(
        self, kind: Transaction, waited_s: float, took_s: float, tries: int
    ) -> None:
        """Count a transaction, successful or not, that was started ``tries`` times."""
        waits, transactions = self._by_kind[kind]
        waits.observe(waited_s)
        transactions.observe(took_s)
        if tries > 1:
            self._retries.labels(kind).inc(tries - 1)

    def count_tracker_attempt(self, result: TrackerResult) -> None:
        self._tracker.labels(result).inc()

    def _begin_at_zero(self) -> None:
        """Start series with known labels at 0. A rate needs the value before the first event."""
        for stream in get_args(StreamKind):
            self._streams.labels(stream)
        for kind, way in product(get_args(Kind), get_args(Way)):
            self._commands.labels(kind, way)
        for kind, outcome in product(get_args(Kind), get_args(Outcome)):
            self._reports.labels(kind, outcome)
        for result in get_args(TrackerResult):
            self._tracker.labels(result)
        for transaction in get_args(Transaction):
            self._retries.labels(transaction)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"venue_control_{name}", text, labels, registry=self.registry)

    def _histogram(
        self, name: str, text: str, buckets: tuple[float, ...], *labels: str
    ) -> Histogram:
        full_name = f"venue_control_{name}"
        return Histogram(full_name, text, labels, registry=self.registry, buckets=buckets)
