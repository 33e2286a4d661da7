"""Tests of `serve --metrics` with one process, and with workers whose metrics are summed."""

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from agent.wire import routes
from tests.packaging.local_service import until
from tests.unit.controlplane.test_process import TIMEOUT_S, Process, run, start, stop
from tests.unit.controlplane.test_workers import FORKED_WORKERS, database, workers_of
from tests.unit.controlplane.web.observability.test_metrics import Samples, parse_samples, value

__all__ = ["database"]  # a fixture
pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(
        sys.platform == "win32", reason="the test stops the service with POSIX signals"
    ),
]


def metrics_url(process: Process) -> str:
    line = process.output.readline()
    assert line.startswith("metrics on http://127.0.0.1:"), line
    return line.split()[-1]


def scrape(url: str) -> Samples:
    response = httpx2.get(url, timeout=TIMEOUT_S)
    assert response.status_code == 200
    return parse_samples(response.text)


def call_current(process: Process, times: int) -> None:
    """Call the operation ``current``. Each call uses a new connection and can reach any worker."""
    headers = {"Authorization": f"Bearer {process.api_key}"}
    limits = httpx2.Limits(max_keepalive_connections=0)
    with httpx2.Client(
        base_url=process.url, headers=headers, limits=limits, timeout=TIMEOUT_S
    ) as http:
        for _ in range(times):
            assert http.post(routes.CURRENT, json={}).status_code == 200


def count_of_current(metrics: Samples) -> float:
    return value(metrics, "requests_total", operation="remoteControl.current", status="2xx")


def test_one_process_serves_metrics_on_a_separate_port(tmp_path: Path) -> None:
    process = start(str(tmp_path / "service.db"), "--metrics", "127.0.0.1:0")
    try:
        url = metrics_url(process)
        call_current(process, 3)
        result = scrape(url)
        assert count_of_current(result) == 3
        assert result["process_open_fds", ()] > 0
        assert httpx2.get(process.url + "/metrics").status_code == 404
    finally:
        assert stop(process) == 0


@pytest.mark.parametrize(
    "address", ["", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", ":9470", "h:70000"]
)
def test_an_invalid_address_is_reported(address: str) -> None:
    result = run("serve", "--port", "0", "--metrics", address)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_an_address_in_use_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        database = str(tmp_path / "service.db")
        result = run("serve", "--port", "0", "--database", database, "--metrics", address)
    assert result.returncode == 2
    assert result.stderr.startswith("venue-control: cannot listen on 127.0.0.1 port")
    assert "for metrics" in result.stderr


@pytest.fixture
def two_workers(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Process]:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process = start(database, "--workers", "2", "--metrics", "127.0.0.1:0", module=FORKED_WORKERS)
    yield process
    stop(process)


@pytest.mark.needs("postgresql")
def test_metrics_are_summed_over_workers(two_workers: Process, tmp_path: Path) -> None:
    url = metrics_url(two_workers)
    call_current(two_workers, 40)
    # Every worker returns the sums over all workers.
    assert {count_of_current(scrape(url)) for _ in range(10)} == {40}
    pids = {two_workers.fork.pid, *workers_of(two_workers)}
    resident = sum(resident_bytes(pid) for pid in pids)
    assert scrape(url)["process_resident_memory_bytes", ()] >= resident * 0.9
    (directory,) = tmp_path.glob("venue-control-metrics-*")
    assert stop(two_workers) == 0
    assert not directory.exists()


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.needs("postgresql")
@pytest.mark.large
def test_metrics_keep_the_counters_of_a_dead_worker_but_not_its_open_streams(
    two_workers: Process, tmp_path: Path
) -> None:
    url = metrics_url(two_workers)
    call_current(two_workers, 20)
    headers = {"Authorization": f"Bearer {two_workers.api_key}", "Accept": "text/event-stream"}
    with (
        httpx2.Client(base_url=two_workers.url, timeout=TIMEOUT_S, headers=headers) as http,
        ExitStack() as streams,
    ):
        for _ in range(4):
            streams.enter_context(http.stream("POST", routes.ON_COMMANDS, json={}))
        assert value(scrape(url), "streams_open", kind="commands") == 4
        before = workers_of(two_workers)
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        until(lambda: len(set(workers_of(two_workers)) - set(before)) == 2, TIMEOUT_S)
        assert count_of_current(scrape(url)) == 20
        # The worker that replaces a dead worker removes the streams of the dead worker from the
        # metrics.
        until(
            lambda: value(scrape(url), "streams_open", kind="commands") == 0,
            TIMEOUT_S,
        )
    call_current(two_workers, 5)
    assert count_of_current(scrape(url)) == 25
    (directory,) = tmp_path.glob("venue-control-metrics-*")
    assert len(list(directory.glob("counter_*.db"))) == 2
