"""`python -m tests.bench.garbage [--seconds 60]` measures what endless garbage costs the agent.

A hostile service answers `onCommands` with garbage, as fast as the agent reads it. For each kind of
garbage, the output shows the lines that the agent logged, its connections, its heartbeats, its
processor time in per cent of one core, and the counters of its status. Heartbeats and processor
time are measured only after the first five seconds.
"""

import argparse
import asyncio
import json
import os
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.fakes.hostile_service import STREAM, Exchange, Fault, HostileService
from tests.scenario.agent_process import running_agent, write_config

SETTLE_S = 5.0


def command(binding_id: str, *, expires_in_s: float) -> dict[str, object]:
    return {
        "version": 1,
        "requestId": str(uuid.uuid4()),
        "bindingId": binding_id,
        "kind": "network",
        "expiresAt": (datetime.now(UTC) + timedelta(seconds=expires_in_s)).isoformat(),
        "status": "queued",
    }


def event(document: object) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def _unreadable(service: HostileService) -> bytes:
    return b"".join(event({"kind": f"\x1b[31m{uuid.uuid4()}"}) for _ in range(50))


def _not_json(service: HostileService) -> bytes:
    return b"data: {{{\n\n" * 500


def _foreign(service: HostileService) -> bytes:
    """Return commands for the bindings of other devices."""
    return b"".join(event(command(str(uuid.uuid4()), expires_in_s=600)) for _ in range(50))


def _expired(service: HostileService) -> bytes:
    return b"".join(event(command(service.binding_id, expires_in_s=-600)) for _ in range(50))


def _comments(service: HostileService) -> bytes:
    return b":\n" * 16_384


def _errors(service: HostileService) -> bytes:
    return b"event: error\ndata: \x1b]0;owned\x07 no\n\n" * 500


GARBAGE: dict[str, Callable[[HostileService], bytes]] = {
    "unreadable": _unreadable,
    "not-json": _not_json,
    "foreign": _foreign,
    "expired": _expired,
    "comments": _comments,
    "errors": _errors,
}


@dataclass(frozen=True, slots=True)
class Cost:
    """What one kind of garbage costs. ``cpu_percent`` is the use of one core. ``cpu_percent`` and
    ``heartbeats`` do not include the first five seconds.
    """

    lines: int
    log_bytes: int
    connections: int
    cpu_percent: float
    heartbeats: int
    counters: dict[str, int]


def endless(service: HostileService, chunk: Callable[[HostileService], bytes]) -> Fault:
    """Answer with a stream that never ends. Each chunk is sent when the agent has read the previous
    one.
    """

    async def fault(x: Exchange) -> None:
        await x.write(STREAM.format("text/event-stream").encode())
        while True:
            await x.write(chunk(service))
            await asyncio.sleep(0)

    return fault


async def measure(name: str, folder: Path, seconds: float) -> Cost:
    """Run a daemon for ``seconds`` while the service sends garbage of the kind ``name``."""
    async with HostileService(lambda: datetime.now(UTC)) as service:
        service.faults["onCommands"] = endless(service, GARBAGE[name])
        config = write_config(folder, service.base_url)
        async with running_agent(config) as agent:
            await service.until(lambda: service.heartbeats > 0)
            await asyncio.sleep(SETTLE_S)
            cpu_before_s, heartbeats_before = _cpu_s(agent.process.pid), service.heartbeats
            await asyncio.sleep(seconds - SETTLE_S)
            cpu_s = _cpu_s(agent.process.pid) - cpu_before_s
            heartbeats = service.heartbeats - heartbeats_before
            assert await agent.stop() == 0
        requests = [operation for _, operation in service.called_at]
        return Cost(
            lines=len(agent.log.splitlines()),
            log_bytes=len(agent.log.encode()),
            connections=requests.count("onCommands"),
            cpu_percent=100 * cpu_s / (seconds - SETTLE_S),
            heartbeats=heartbeats,
            counters=agent.status()["counters"],
        )


def _cpu_s(pid: int) -> float:
    # utime and stime are the fields 14 and 15 (proc_pid_stat(5)). The list begins with field 3.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("kinds", nargs="*", default=list(GARBAGE))
    options = parser.parse_args()
    for name in options.kinds:
        with tempfile.TemporaryDirectory() as folder:
            cost = asyncio.run(measure(name, Path(folder), options.seconds))
        print(
            f"{name:12} {cost.lines:4} lines {cost.log_bytes / 1024:7.1f} KiB"
            f" {cost.connections:3} connections {cost.cpu_percent:5.1f} % of a core"
            f" {cost.heartbeats:3} heartbeats  {cost.counters}",
            flush=True,
        )


if __name__ == "__main__":
    main()
