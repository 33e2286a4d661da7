"""Runs the whole agent in this process. Only collector, clock and link are simulated."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch
from uuid import UUID

from agent import daemon
from agent.adapters import memory
from agent.adapters.collector_process import CollectedFacts, OnProgress
from agent.adapters.connectivity import sensors
from agent.adapters.connectivity.link import LinkReading
from agent.adapters.storage.journal import Entry
from agent.adapters.storage.printer_memory import PrinterMemory
from agent.adapters.storage.state import StateDirectory
from agent.app import App, Runtime
from agent.config.file import LoadedConfig
from agent.config.model import Config
from agent.reporting import describe_environment
from agent.rules.connectivity.cause import LinkState
from agent.rules.lifecycle import FINAL
from agent.tasks.collection import Collection
from agent.wire.codec import validate
from agent.wire.sd_notify import Notifier
from collectors.contract import Job
from tests.fakes.collectors.quick import facts_of
from tests.fakes.strict_service import API_KEY
from tests.fakes.virtual_clock import VirtualClock

LINK = LinkReading(LinkState("ppp0", has_link=True, addresses=("192.0.2.2",), has_route=True))
"""A link to a provider. It has no gateway, so no packet is sent to the network of this machine."""


class QuickCollectors:
    """Returns the facts of `tests.fakes.collectors.quick`, without a process.

    ``runs`` counts the calls.
    """

    def __init__(self) -> None:
        self.runs = 0
        self.may_end = asyncio.Event()
        """A test clears it to let collections last until it is set again."""
        self.may_end.set()

    async def collect(
        self, job: Job, on_progress: OnProgress, cancel: asyncio.Event | None = None
    ) -> CollectedFacts:
        self.runs += 1
        await self.may_end.wait()
        return CollectedFacts(facts_of(job.kind))


class SimulatedApp(App):
    """An app with fast collections, whose heartbeats follow the virtual clock."""

    def __init__(self, loaded: LoadedConfig[Config], runtime: Runtime) -> None:
        super().__init__(loaded, runtime)
        self.collectors = QuickCollectors()
        self._virtual_clock = runtime.clock
        self.conditions_seen: set[str] = set()
        """The codes of all conditions that the agent has reported so far."""
        self.health.on_change = self._note_conditions

    def loops(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        return {**super().loops(), "heartbeat-timer": self._send_heartbeats}

    def entry(self, request_id: str) -> Entry | None:
        return self._ledger.journal.get(UUID(request_id))

    async def until_ended(self, request_ids: Iterable[str], within_s: float) -> None:
        """Wait, in virtual time, until each of these requests has ended."""
        waiting = set(request_ids)
        async with asyncio.timeout(within_s):
            while waiting := {r for r in waiting if not self._has_ended(r)}:  # noqa: ASYNC110
                await asyncio.sleep(10)

    def _has_ended(self, request_id: str) -> bool:
        entry = self.entry(request_id)
        return entry is not None and entry.state in FINAL

    def _note_conditions(self) -> None:
        self.conditions_seen.update(p.code for p in self.health.problems())
        self.status.note_change()

    async def _send_heartbeats(self) -> None:
        """Send heartbeats by the virtual clock. The agent's own timer uses the machine's clock."""
        while True:
            await self._virtual_clock.sleep(self._loaded.config.heartbeat.interval_seconds)
            self._scheduler.send_heartbeat_now()

    def _build_collection(self) -> Collection:
        collectors: Any = self.collectors
        return Collection(
            collectors=collectors,
            config=self._loaded.config,
            binding_state=self.binding_state,
            environment=describe_environment(self._loaded.config),
            agent_fields=self._agent_fields,
            memory=PrinterMemory(self._runtime.state),
            health=self.health,
            clock=self._virtual_clock,
            on_activity=self._note_activity,
        )


def config_for(home: Path, base_url: str, **sections: dict[str, Any]) -> Config:
    """Return a configuration that sets only the service, the paths and ``sections``."""
    key = home / "api-key"
    if not key.exists():
        home.mkdir(parents=True, exist_ok=True)
        key.write_text(API_KEY + "\n")
        key.chmod(0o600)
    service = {"base_url": base_url, "location_id": "loc-1", "api_key_file": str(key)}
    service |= sections.pop("service", {})
    return validate(
        {"service": service, "device": {"state_dir": str(home / "state")}, **sections}, Config
    )


def runtime_of(home: Path, clock: VirtualClock, seed: int = 0) -> Runtime:
    state = StateDirectory(home / "state")
    state.prepare()
    return Runtime(
        state=state,
        notifier=Notifier({}),
        clock=clock,
        rng=Random(seed),
        started_at=clock.now(),
        foreground=False,
    )


@contextlib.asynccontextmanager
async def simulated_agent(
    config: Config, home: Path, clock: VirtualClock, seed: int = 0
) -> AsyncIterator[SimulatedApp]:
    """Run an agent as the daemon does, and stop it cleanly at the end.

    The agent does not release memory when it is idle: the process of the tests has so many objects
    that this would take longer than a test. It does not read the links of this machine either,
    because it would read them several times in each simulated minute of an outage.
    """
    with patch.object(sensors, "_link_reader", return_value=_read_link):
        app = SimulatedApp(LoadedConfig(config, None, {}), runtime_of(home, clock, seed))
    with patch.object(memory, "release_memory", autospec=True):
        async with _running(app):
            yield app


def _read_link(last: str | None, *, needs_ipv4: bool) -> LinkReading:
    return LINK


@contextlib.asynccontextmanager
async def _running(app: SimulatedApp) -> AsyncIterator[None]:
    app.start()
    signals: asyncio.Queue[daemon.Signal] = asyncio.Queue()
    tasks = [
        asyncio.create_task(daemon._keep_running(name, loop, app, signals), name=name)
        for name, loop in app.loops().items()
    ]
    try:
        yield
    finally:
        app.stop_timers()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await app.close()
