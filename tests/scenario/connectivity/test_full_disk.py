"""Tests that a real daemon continues on a full disk, and writes its record when there is space."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.fakes.http_server import Reply
from tests.fakes.strict_service import StrictService
from tests.paths import ROOT
from tests.scenario.agent_process import AgentProcess, environment, write_config

DISK_KIB = 1024
MOUNT = f'mount -t tmpfs -o size={DISK_KIB}k,mode=700 disk "$0" && exec "$@"'
WITHIN_S = 120.0


@contextlib.asynccontextmanager
async def agent_on_a_small_disk(config: Path) -> AsyncIterator[tuple[AgentProcess, Path]]:
    """Run the agent in a mount namespace, with its state on a small disk.

    Yields the agent, and the path of its state directory from outside the namespace.
    """
    state, log = config.parent / "state", config.parent / "agent.log"
    state.mkdir()
    unshare = ("unshare", *(("--map-root-user",) if os.geteuid() else ()), "--mount")
    # The argument READY_FILE is omitted: `quick_agent` creates this file only after a probe of the
    # gateway. The service is on this machine, so the agent does not probe the gateway.
    module = ("-m", "tests.scenario.connectivity.quick_agent", "0", str(config))
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *unshare, "sh", "-c", MOUNT, str(state), sys.executable, *module,
            stdout=output, stderr=output, env=environment(), cwd=ROOT,
        )  # fmt: skip
    try:
        yield AgentProcess(process, config.parent, log), Path(f"/proc/{process.pid}/root{state}")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def fill_disk(disk: Path) -> Path:
    """Fill the disk, and return the file to delete."""
    path = disk / "filler"
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    assert os.statvfs(disk).f_bavail == 0
    return path


async def until(condition: Callable[[], bool], agent: AgentProcess) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not condition():
            assert agent.process.returncode is None, agent.log
            await asyncio.sleep(0.05)


async def read_incidents(agent: AgentProcess, config: Path) -> list[tuple[str, int]]:
    """Return cause and count of each incident that `venue-agent timeline` prints."""
    user = ("--user", "--preserve-credentials") if os.geteuid() else ()
    namespace_entry = ("nsenter", f"--target={agent.process.pid}", *user, "--mount")
    command = (sys.executable, "-m", "agent", "timeline", "--json", "--config", str(config))
    process = await asyncio.create_subprocess_exec(
        *namespace_entry, *command, stdout=asyncio.subprocess.PIPE, env=environment(), cwd=ROOT
    )
    output, _ = await process.communicate()
    return [(incident["cause"], incident["count"]) for incident in json.loads(output)["incidents"]]


async def interrupt(service: StrictService, agent: AgentProcess, number: int) -> None:
    """Refuse heartbeats until the agent has logged ``number`` interruptions. Wait for their end."""
    service.overrides["heartbeat"] = lambda: Reply(503, media_type=None)
    await until(lambda: agent.log.count("interrupted: ") == number, agent)
    service.overrides.clear()
    await until(lambda: agent.log.count("the interruption (service-down) ended") == number, agent)


@pytest.mark.large
@pytest.mark.needs("mount-namespace")
async def test_a_full_disk_delays_the_record_and_nothing_else(tmp_path: Path) -> None:
    async with StrictService() as service:
        config = write_config(tmp_path, service.base_url)
        async with agent_on_a_small_disk(config) as (agent, disk):
            await service.until(lambda: service.heartbeats > 1 and "onCommands" in service.calls)
            filler = fill_disk(disk)
            await interrupt(service, agent, 1)
            assert "the connectivity record cannot be written: " in agent.log
            before = service.heartbeats
            await service.until(lambda: service.heartbeats > before + 1)
            assert await read_incidents(agent, config) == []
            filler.unlink()
            await interrupt(service, agent, 2)
            # If both interruptions are within a minute, they are one incident.
            recorded_incidents = await read_incidents(agent, config)
            assert {cause for cause, _ in recorded_incidents} == {"service-down"}
            assert sum(count for _, count in recorded_incidents) == 2
            assert await agent.stop() == 0
