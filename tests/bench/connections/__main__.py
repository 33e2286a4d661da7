"""Measures the heartbeats of a device while an attacker holds many connections of the service open:
`make bench-connections`. By default, all attacks of the module `attack` are measured, one after the
other.

Each heartbeat uses a new connection. The service may open 4,096 files. Goals: the 95th percentile
of the latency is at most twice the undisturbed one, no heartbeat fails, and after the end of the
attack the service recovers within 2 s. The exit code is 1 if a goal is missed. The last column is
the share of a processor that the service uses during the attack.

Usage: python -m tests.bench.connections [unread|slow]
"""

import asyncio
import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from controlplane.storage.database import Database
from tests.bench.connections.attack import ATTACKS
from tests.bench.fleet.databases import temporary_database
from tests.bench.fleet.fleet import Member, populate
from tests.bench.fleet.load import heartbeat, post
from tests.bench.fleet.service import Service, service

FILES = 4096
RATIO_MAX = 2.0
RECOVERY_MAX_S = 2.0
UNDISTURBED_HEARTBEATS = 200
"""Heartbeats of a measurement without an attack."""
ATTACKED_HEARTBEATS = 1200
"""Heartbeats of the measurement during an attack."""
INTERVAL_S = 0.05
"""Interval of the heartbeats."""
TIMEOUT_S = 30
"""Timeout of one heartbeat, and the longest recovery that is measured."""
RECOVERY_HEARTBEATS = 5
"""The service has recovered when the median of this many heartbeats is normal again."""


@dataclass(slots=True)
class Heartbeats:
    latencies_s: list[float]
    failures: int = 0

    @property
    def p95_ms(self) -> float:
        return 1000 * statistics.quantiles(self.latencies_s, n=20)[18]


HEADINGS = (
    "attack", "undisturbed p95", "attacked p95", "ratio", "slowest", "failed", "recovery",
    "open files", "processor",
)  # fmt: skip


def main() -> int:
    print(*HEADINGS, sep="   ", flush=True)
    has_met_goals = True
    for name in sys.argv[1:] or ATTACKS:
        with temporary_database("sqlite") as url:
            database = Database(url)
            member = populate(database, 1)[0]
            database.close()
            with service(url, files=FILES) as started:
                has_met_goals &= _measure(started, member, name)
    return 0 if has_met_goals else 1


def _measure(started: Service, member: Member, name: str) -> bool:
    """Measure an attack and print the result. Return whether the goals were met."""
    asyncio.run(_send(started.port, member, UNDISTURBED_HEARTBEATS))  # warm-up
    undisturbed = asyncio.run(_send(started.port, member, UNDISTURBED_HEARTBEATS))
    with _attack(name, started.port):
        began_s, cpu_s = time.perf_counter(), started.cpu_s
        attacked = asyncio.run(_send(started.port, member, ATTACKED_HEARTBEATS))
        share = (started.cpu_s - cpu_s) / (time.perf_counter() - began_s)
        files = started.files
    recovery_s = asyncio.run(_measure_recovery_s(started.port, member, undisturbed))
    after = asyncio.run(_send(started.port, member, UNDISTURBED_HEARTBEATS))
    undisturbed_ms = Heartbeats(undisturbed.latencies_s + after.latencies_s).p95_ms
    ratio = attacked.p95_ms / undisturbed_ms
    print(
        f"{name:<8} {undisturbed_ms:12.1f} ms  {attacked.p95_ms:8.1f} ms  ×{ratio:5.1f}"
        f"  {max(attacked.latencies_s):6.2f} s  {attacked.failures:6}  {recovery_s:7.2f} s"
        f"  {files:9}  {share:9.0%}",
        flush=True,
    )
    return ratio <= RATIO_MAX and not attacked.failures and recovery_s <= RECOVERY_MAX_S


async def _send(port: int, member: Member, count: int) -> Heartbeats:
    """Send heartbeats at a fixed rate, without waiting for earlier ones."""
    result = Heartbeats([])

    async def send_one() -> None:
        began_s = time.perf_counter()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await post(port, heartbeat(member))
        except (OSError, RuntimeError, TimeoutError, asyncio.IncompleteReadError):
            result.failures += 1
        result.latencies_s.append(time.perf_counter() - began_s)

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(send_one())
            await asyncio.sleep(INTERVAL_S)
    return result


async def _measure_recovery_s(port: int, member: Member, undisturbed: Heartbeats) -> float:
    """Return the time until the heartbeats take at most twice the undisturbed median."""
    began_s = time.perf_counter()
    normal_s = 2 * statistics.median(undisturbed.latencies_s)
    while time.perf_counter() - began_s < TIMEOUT_S:
        waited_s = time.perf_counter() - began_s
        heartbeats = await _send(port, member, RECOVERY_HEARTBEATS)
        if not heartbeats.failures and statistics.median(heartbeats.latencies_s) <= normal_s:
            return waited_s
    return TIMEOUT_S


@contextlib.contextmanager
def _attack(name: str, port: int) -> Iterator[None]:
    command = (sys.executable, "-m", "tests.bench.connections.attack", name, str(port))
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()  # the attack has begun
            yield
        finally:
            process.kill()


if __name__ == "__main__":
    sys.exit(main())
