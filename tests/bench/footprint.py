"""Measures the resource use and the speed of the agent, as a package and in a virtual environment.
Also measures the resource use of other common agents that idle at the same time.

Everything runs in a separate network namespace that has only loopback.
Usage: python -m tests.bench.footprint [--window SECONDS] [--requests N] [--no-peers] [--idle-only]
"""

import argparse
import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench import peers as bench_peers
from tests.bench.daemon import (
    LOOPBACK_ONLY,
    ROOT,
    builds_here,
    running,
    show,
    write_config,
)
from tests.bench.day import Day, show_day
from tests.bench.latency import show_latencies
from tests.bench.processes import Cost, cost_of
from tests.fakes.strict_service import API_KEY, Reading, StrictService
from tests.packaging.local_service import LocalService, local_service, until

IN_NAMESPACE = "VENUE_BENCH_IN_NAMESPACE"
SETTLE_S = 80
"""Seconds before the idle measurement begins. The agent releases memory and then loads a part of it
again for its next heartbeat; neither counts as idling.
"""
STARTS = 10


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure memory, CPU, latency and sizes.")
    parser.add_argument("--window", type=float, default=120, help="seconds of the idle measurement")
    parser.add_argument("--requests", type=int, default=50, help="number of requests to each build")
    parser.add_argument("--no-peers", action="store_true", help="measure this agent only")
    parser.add_argument("--idle-only", action="store_true", help="measure idling only")
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("namespaces and the peers' overlay need root: run it with sudo")
    if IN_NAMESPACE not in os.environ:
        return _restart_in_namespaces(with_peers=not options.no_peers)
    builds = builds_here()
    with tempfile.TemporaryDirectory(prefix="venue-bench-") as directory:
        folder = Path(directory)
        if not options.idle_only:
            show_work(builds, folder, options.requests)
        with local_service(_new_directory(folder / "idle")) as service:
            show_idling(builds, folder, service, options.window, options.root)
        if not options.idle_only:
            name, command = list(builds.items())[-1]  # the package, if it is built
            show_day(name, command, _new_directory(folder / "day"), Day())
    return 0


def show_work(builds: dict[str, tuple[str, ...]], folder: Path, requests: int) -> None:
    """Print the sizes of the packages, and the durations of commands, starts and requests."""
    show_sizes()
    for name, command in builds.items():
        show_commands(name, command, folder)
        asyncio.run(show_starts(name, command, folder))
        show_latencies(name, command, _new_directory(folder / f"latency-{name}"), requests)


def _restart_in_namespaces(*, with_peers: bool) -> int:
    """Restart this program twice: first in its own mount namespace, and then in a network namespace
    with only loopback. In between, install the packages of the other agents in a temporary overlay,
    because their installation needs the network.
    """
    if "VENUE_BENCH_IN_MOUNTS" not in os.environ:
        words = ("unshare", "--mount", "--propagation", "private", sys.executable, *_arguments())
        return subprocess.run(
            words, env={**os.environ, "VENUE_BENCH_IN_MOUNTS": "1"}, check=False
        ).returncode
    with contextlib.ExitStack() as stack:
        options: tuple[str, ...] = ()
        if with_peers:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="venue-peers-"))
            root = stack.enter_context(bench_peers.overlay(Path(folder)))
            peers = bench_peers.install(root)
            sys.stdout.write(f"peers installed: {', '.join(p.package for p in peers)}\n")
            sys.stdout.flush()
            options = ("--root", str(root))
        words = (*LOOPBACK_ONLY, sys.executable, *_arguments(), *options)
        return subprocess.run(words, env={**os.environ, IN_NAMESPACE: "1"}, check=False).returncode


def _arguments() -> tuple[str, ...]:
    return ("-m", "tests.bench.footprint", *sys.argv[1:])


# ---------------------------------------------------------------------------- the figures


def show_sizes() -> None:
    for package in sorted((ROOT / "dist").glob("*.deb")):
        words = ("dpkg-deb", "--field", str(package), "Installed-Size")
        installed = int(subprocess.run(words, capture_output=True, check=True).stdout)
        size = package.stat().st_size / 2**20
        show(package.name, f"{size:.1f} MiB", f"installed {installed / 1024:.1f} MiB")


def show_commands(name: str, command: tuple[str, ...], folder: Path) -> None:
    # No service listens at this address.
    config = write_config(folder / "commands", "http://127.0.0.1:9", "key")
    with_config = ("--config", str(config))
    for verb, options in (
        ("--version", ()),
        ("status", with_config),
        ("config check", with_config),
        ("history", with_config),
        ("service --help", ()),
    ):
        words = (*command, *verb.split(), *options)
        seconds = [_duration_s(lambda words=words: _quietly(*words)) for _ in range(5)]
        show(f"{name}: venue-agent {verb}", _format_durations(seconds))


async def show_starts(name: str, command: tuple[str, ...], folder: Path) -> None:
    """Measure repeated starts of an agent that is already enrolled, and print the durations."""
    async with StrictService(Reading.SSE) as service:
        config = write_config(folder / f"starts-{name}", service.base_url, API_KEY)
        ready, acknowledged = [], []
        for _ in range(STARTS + 1):
            service.heartbeats = 0
            daemon = running(command, config)
            agent = await asyncio.to_thread(daemon.__enter__)
            try:
                await service.until(lambda: service.heartbeats > 0)
                acknowledged.append(time.monotonic() - agent.began)
                ready.append(agent.ready_s)
            finally:
                await asyncio.to_thread(daemon.__exit__, None, None, None)
        # The first start also enrolled the agent.
        ready, acknowledged = ready[1:], acknowledged[1:]
        show(f"{name}: exec to READY=1", _format_durations(ready))
        show(f"{name}: exec to first heartbeat acknowledged", _format_durations(acknowledged))


def show_idling(
    builds: dict[str, tuple[str, ...]],
    folder: Path,
    service: LocalService,
    window_s: float,
    peers_root: Path | None,
) -> None:
    """Let all agents idle at the same time. Read their counters at the start and the end of the
    window.
    """
    with contextlib.ExitStack() as stack:
        pids: dict[str, int] = {}
        for name, command in builds.items():
            config = write_config(folder / f"idle-{name}", service.base_url, service.api_key)
            count = len(service.devices())
            with running(command, config):
                until(lambda count=count: len(service.devices()) > count, 30)
            # A daemon that has just enrolled uses more memory: restart it.
            agent = stack.enter_context(running(command, config))
            pids[f"venue-agent ({name})"] = agent.process.pid
        for peer in bench_peers.PEERS if peers_root else ():
            with contextlib.suppress(FileNotFoundError):
                pids[peer.package] = stack.enter_context(
                    bench_peers.running(peers_root or Path(), peer)
                )
        time.sleep(SETTLE_S)
        before = _costs(pids)
        time.sleep(window_s)
        after = _costs(pids)
    show(f"idle for {window_s:.0f} s", "PSS MiB", "RSS MiB", "CPU %", "wake-ups/min", "processes")
    for name, cost in after.items():
        show(name, *_idle_row(before.get(name), cost, window_s))
    for name in sorted(set(pids) - set(after)):
        show(name, "ended by itself")


def _idle_row(before: Cost | None, after: Cost, window_s: float) -> tuple[str, ...]:
    if before is None:
        return ("not measured",)
    percent = 100 * (after.cpu_s - before.cpu_s) / window_s
    wakeups = 60 * (after.wakeups - before.wakeups) / window_s
    return (
        f"{after.pss_mib:7.1f}",
        f"{after.rss_mib:7.1f}",
        f"{percent:6.3f}",
        f"{wakeups:8.1f}",
        str(after.processes),
    )


def _costs(pids: dict[str, int]) -> dict[str, Cost]:
    costs = {}
    for name, pid in pids.items():
        with contextlib.suppress(OSError):
            costs[name] = cost_of(pid)
    return costs


def _new_directory(path: Path) -> Path:
    path.mkdir()
    return path


def _duration_s(action: Callable[[], object]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


def _quietly(*words: str) -> None:
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _format_durations(seconds: list[float]) -> str:
    return f"median {1000 * statistics.median(seconds):.0f} ms, max {1000 * max(seconds):.0f} ms"


if __name__ == "__main__":
    sys.exit(main())
