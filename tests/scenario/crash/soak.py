"""Kills a real agent at random times, on a bad network (`make soak`).

The service answers three of ten calls with a fault. Before each kill, a new request arrives. The
agent is killed by SIGKILL at a random time and started again. At the end, every request must have
ended exactly once, and the memory of the idle daemon must not have grown by more than 10 %.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from agent.adapters.storage.history import read_history
from agent.adapters.storage.state import StateDirectory
from agent.rules.lifecycle import FINAL
from tests.fakes import hostile_service as replies
from tests.fakes.hostile_service import Exchange, HostileService
from tests.scenario.agent_process import AgentProcess, running_agent, write_config
from tests.scenario.crash.matrix import NEVER, crashing_agent

FAULTS_SHARE = 0.3
FAULTS = (
    replies.status(500),
    replies.status(502, b"<html>bad gateway", "text/html"),
    replies.status(503, Retry_After="0"),
    replies.status(429),
    replies.reset,
    replies.close,
    *(replies.executed_and_lost,) * 2,  # twice as likely as the other faults
    replies.executed_and_truncated,
    replies.status(200, replies.PORTAL, "text/html"),
    replies.status(200, b'{"truncated": "'),
)
KILL_DELAY_RANGE_S = (0.0, 2.0)
"""Minimum and maximum time from the agent's first call to the kill. A report takes much less than
the maximum, so kills happen before, during and after a report."""
SHARE_KILLED_AT_START = 0.1
"""Share of the kills that happen within one second after the start of the agent, instead of after
its first call."""
GROWTH_MAX = 0.10
DRAIN_WITHIN_S = 900.0


class BadNetwork(HostileService):
    """A service that answers three of ten calls with a random fault while ``is_bad`` is set."""

    def __init__(self, rng: Random) -> None:
        super().__init__(lambda: datetime.now(UTC))
        self._rng = rng
        self.is_bad = True
        self.fault_count = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.faults = dict.fromkeys(OPERATIONS, self._reply_or_fault)
        await super()._serve(reader, writer)

    async def _reply_or_fault(self, x: Exchange) -> None:
        if self.is_bad and self._rng.random() < FAULTS_SHARE:
            self.fault_count += 1
            await self._rng.choice(FAULTS)(x)
            return
        reply = await x.execute()
        reply.headers["Connection"] = "close"
        await self._server._answer(reply, x.writer)


OPERATIONS = ("challenge", "enroll", "current", "heartbeat", "onCommands", "acknowledge",
              "submitResult")  # fmt: skip


async def soak(
    home: Path, kills: int, seed: int, kill_delay_range_s: tuple[float, float] = KILL_DELAY_RANGE_S
) -> list[str]:
    """Run the soak test with this number of kills. Return a description of each defect."""
    rng = Random(seed)
    began = time.monotonic()
    async with BadNetwork(rng) as service:
        config = write_config(
            home, service.base_url, service="request_timeout_seconds = 2", heartbeat="",
            limits="min_collection_interval_seconds = 0",
        )  # fmt: skip
        service.is_bad = False
        # The first run enrolls, which needs additional memory. Its memory is not compared.
        await _measure_idle_memory(home, config, service)
        before = await _measure_idle_memory(home, config, service)
        service.is_bad = True
        requests = []
        for number in range(kills):
            async with crashing_agent(NEVER, config, home / "trace") as agent:
                kind = ("network", "application")[number % 2]
                requests.append(await service.request_report(kind, expires_in_s=86_400))
                if rng.random() < SHARE_KILLED_AT_START:
                    await asyncio.sleep(rng.uniform(0, 1))
                else:
                    calls = len(service.called_at)
                    await service.until(lambda: len(service.called_at) > calls, 60)  # noqa: B023
                    await asyncio.sleep(rng.uniform(*kill_delay_range_s))
                if agent.process.returncode is not None:
                    return [f"run {number} ended by itself: {agent.log[-2000:]}"]
                agent.process.kill()
                await agent.process.wait()
            if number % 20 == 19:
                _log(f"{number + 1} kills, {len(service.reports)} of {len(requests)} answered")
        service.is_bad = False
        async with crashing_agent(NEVER, config, home / "trace") as agent:
            # The agent sends reports at a limited rate, so it needs a while for all of them.
            async with asyncio.timeout(DRAIN_WITHIN_S):
                while sum(_states(home).get(r, "") in FINAL for r in requests) < len(requests):  # noqa: ASYNC110
                    await asyncio.sleep(1)
            states = Counter(_states(home)[r] for r in requests)
            await agent.stop()
        after = await _measure_idle_memory(home, config, service)
        _log(
            f"{kills} kills, {service.fault_count} faults, {len(service.calls)} calls in"
            f" {time.monotonic() - began:.0f} s; requests {dict(states)}; idle daemon"
            f" {before / 1024:.1f} MiB before, {after / 1024:.1f} MiB after"
        )
        return _find_defects(service, requests, home, (before, after))


def _states(home: Path) -> dict[str, str]:
    rows = read_history(StateDirectory(home / "state"), limit=100_000)
    return {row.request_id: row.state for row in rows if row.request_id is not None}


def _find_defects(
    service: BadNetwork, requests: list[str], home: Path, memory_kib: tuple[int, int]
) -> list[str]:
    """Return a description of each defect. ``memory_kib`` is the memory of the idle daemon before
    and after the kills.
    """
    answered = Counter(str(report["requestId"]) for report in service.reports)
    collections = (home / "trace").read_text().count("child-started:before")
    before, after = memory_kib
    defects = [f"violation: {line}" for line in service.violations]
    defects += [f"lost: {r}" for r in requests if not answered[r]]
    defects += [f"doubled: {r}" for r, times in answered.items() if times > 1]
    if collections > 2 * len(requests):
        defects.append(
            f"more than two collections per request: {collections} for {len(requests)} requests"
        )
    if after > before * (1 + GROWTH_MAX):
        defects.append(f"the idle daemon grew from {before} to {after} KiB")
    return defects


async def _measure_idle_memory(home: Path, config: Path, service: BadNetwork) -> int:
    """Start the daemon, wait until it is idle, and return its resident memory in KiB."""
    service.heartbeats = 0
    async with running_agent(config) as agent:
        await service.until(lambda: service.heartbeats > 1, 120)
        resident = _resident_kib(agent)
        await agent.stop()
    return resident


def _resident_kib(agent: AgentProcess) -> int:
    status = Path(f"/proc/{agent.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1])


def _log(line: str) -> None:
    print(line, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as home:
        defects = asyncio.run(soak(Path(home), options.kills, options.seed))
    for line in defects:
        _log(line)
    _log(f"defects: {len(defects)}" if defects else "each request has exactly one report")
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
