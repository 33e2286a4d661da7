"""Restarts a real service while agents call it over real HTTP."""

import asyncio
import contextlib
import resource
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from agent.adapters import failpoints
from agent.adapters.clock import SystemClock
from agent.adapters.failpoints import Failpoint
from agent.adapters.service_client import CommandStream, ServiceClient
from agent.config.credential import ApiKeySource
from agent.config.model import Service
from tests.bench.fleet.databases import temporary_database, write_fleet
from tests.bench.fleet.fleet import Member
from tests.bench.fleet.simulated_fleet import INTERVAL_S, AgentLoops

CALLS = {Failpoint.HEARTBEAT_CALLED, Failpoint.COMMANDS_OPENED}
KEEP_ALIVES_S = 20.0
"""Seconds between the opening of the last stream and the restart. In this time, each stream
receives a keep-alive with the reconnection time, which the service calculates from the number of
open streams.
"""
OUTAGE_S = 5.0
BACK_WITHIN_S = 120.0
"""Timeout for all streams to be open."""


class StreamStateClient(ServiceClient):
    """A client that records whether its stream is open."""

    has_stream = False

    @contextlib.asynccontextmanager
    async def commands(
        self, *, stream: bool, answer_within_s: float | None = None
    ) -> AsyncIterator[CommandStream]:
        async with super().commands(stream=stream, answer_within_s=answer_within_s) as answer:
            self.has_stream = answer.is_stream
            try:
                yield answer
            finally:
                self.has_stream = False


def restart_real_service(devices: int) -> str:
    """Return a line with the time until all streams of a fleet are open again, and the rates of
    calls.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with temporary_database("sqlite") as url:
        fleet = write_fleet(url, devices)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        return asyncio.run(_restart(url, port, fleet))


def _serve(url: str, port: int) -> "subprocess.Popen[str]":
    words = ("--database", url, "--port", str(port), "--log-level", "error")
    command = (sys.executable, "-m", "controlplane", "serve", *words)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


async def _restart(url: str, port: int, fleet: list[Member]) -> str:
    process = await asyncio.to_thread(_serve, url, port)
    calls: list[float] = []

    def note(failpoint: Failpoint, is_over: bool) -> None:
        if failpoint in CALLS and not is_over:
            calls.append(time.monotonic())

    failpoints.set_listener(note)
    clients = [_client(port, member, Path(url.partition("///")[2]).parent) for member in fleet]
    loops = [
        AgentLoops(client, SystemClock(), member.binding_id, number)
        for number, (client, member) in enumerate(zip(clients, fleet, strict=True))
    ]
    tasks = [asyncio.create_task(each.run(begun_within_s=INTERVAL_S / 2)) for each in loops]
    try:
        await _until_all_streams_are_open(clients)
        await asyncio.sleep(KEEP_ALIVES_S)
        process.kill()
        process.wait()
        cut_s = time.monotonic()
        await asyncio.sleep(OUTAGE_S)
        process = await asyncio.to_thread(_serve, url, port)
        back_s = time.monotonic()
        await _until_all_streams_are_open(clients)
        took_s = time.monotonic() - back_s
        peak = _peak([each - cut_s for each in calls if each >= cut_s])
        return (
            f"{len(fleet):,} agents, real HTTP, {back_s - cut_s:.0f} s of outage: all streams back "
            f"after {took_s:.1f} s  steady {len(fleet) / INTERVAL_S:.0f}/s  peak {peak}/s"
        )
    finally:
        failpoints.set_listener(lambda failpoint, is_over: None)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(client.close() for client in clients))
        process.kill()
        process.wait()


def _client(port: int, member: Member, folder: Path) -> StreamStateClient:
    key = folder / f"key-{member.location_id}"
    key.write_text(member.api_key)
    key.chmod(0o600)
    service = Service(
        base_url=f"http://127.0.0.1:{port}",
        location_id=member.location_id,
        api_key_file=str(key),
    )
    return StreamStateClient(service, ApiKeySource(key, None), SystemClock())


async def _until_all_streams_are_open(clients: list[StreamStateClient]) -> None:
    until_s = time.monotonic() + BACK_WITHIN_S
    while missing := sum(not each.has_stream for each in clients):
        if time.monotonic() > until_s:
            raise TimeoutError(f"{missing} of {len(clients)} streams are not back")
        await asyncio.sleep(0.1)


def _peak(calls_s: list[float]) -> int:
    seconds = [int(each) for each in calls_s]
    return max(map(seconds.count, set(seconds)))
