"""The composition root: the only module that creates and connects the daemon's components."""

import asyncio
import hashlib
import logging
import os
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, Literal

from agent import __version__
from agent.adapters import memory
from agent.adapters.clock import Clock
from agent.adapters.connectivity.sensors import SystemSensors
from agent.adapters.identity import IdentityFile
from agent.adapters.machine import CUPS, boot_id, memory_kills, thermal_throttles
from agent.adapters.service_client import ServiceClient
from agent.adapters.service_manager.last_exit import LastExit, read_last_exit
from agent.adapters.storage.database import Database, NewerDatabase, quarantine_database
from agent.adapters.storage.device_record import Binding, DeviceRecordFile
from agent.adapters.storage.ledger import DROPPED_COUNTER, Ledger
from agent.adapters.storage.record import Record
from agent.adapters.storage.state import StateDirectory
from agent.adapters.storage.status_file import BindingStatus, DaemonStatus, StatusFile
from agent.config.credential import ApiKeySource, key_source
from agent.config.file import LoadedConfig
from agent.config.local_hours import parse_local_hours
from agent.config.model import Config, LocalConfig
from agent.device_setup import load_or_create_device
from agent.errors import StateError
from agent.rules import retry
from agent.rules.connectivity.events import MachineState
from agent.rules.reports.fit import clip
from agent.rules.time_jump import TimeJump
from agent.tasks.acknowledge import Acknowledger
from agent.tasks.disk_floor import DiskFloor
from agent.tasks.execute import IDLE, Executor
from agent.tasks.health_board import HealthBoard
from agent.tasks.heartbeat import Heartbeat
from agent.tasks.receive import Receiver
from agent.tasks.record import Recorder
from agent.tasks.schedule import Scheduler
from agent.tasks.session.binding_state import BindingState
from agent.tasks.session.circuit_breaker import CircuitBreaker
from agent.tasks.session.device_session import DeviceSession
from agent.tasks.session.enrollment import Enrollment
from agent.tasks.status import StatusWriter
from agent.tasks.submit import Submitter
from agent.tasks.timekeeper import watch_clocks
from agent.wire.codec import encode
from agent.wire.sd_notify import Notifier

if TYPE_CHECKING:
    from agent.tasks.collection import Collection
    from agent.tasks.local_faults import LocalFaultRecorder
    from collectors.contract import Field

log = logging.getLogger(__name__)

Phase = Literal["starting", "running", "stopping", "stopped"]

RELEASE_MEMORY_AFTER_S: Final = 10.0
"""Delay in seconds before an idle daemon returns memory to the operating system. The delay starts
after each new binding and after each report."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The objects that stay the same when the configuration is reloaded."""

    state: StateDirectory
    notifier: Notifier
    clock: Clock
    rng: Random
    started_at: datetime
    foreground: bool
    """Whether the daemon runs on a terminal. Each heartbeat reports this."""
    config_path: Path | None = None
    """The path of the configuration that the user gave, if any."""
    collector_command: Callable[[str], Sequence[str]] | None = None
    """Returns the command line of the collector for a kind. None means the default command."""
    kept_key: ApiKeySource | None = None
    """The API key that root has read, if root started the daemon and the daemon then changed to a
    user who cannot read the key's file. Otherwise None."""


def config_digest(config: LocalConfig) -> str:
    """Return a short digest of a configuration."""
    return hashlib.sha256(encode(config)).hexdigest()[:16]


class App:
    """The components of the daemon. Each reload of the configuration creates a new `App`.

    Create it inside the asyncio event loop, and call `close` when the tasks of `loops` have ended.
    """

    def __init__(self, loaded: LoadedConfig[Config], runtime: Runtime) -> None:
        """Create all components, without starting them. Raises ConfigError and StateError."""
        self._loaded = loaded
        self._config = loaded.config
        self._runtime = runtime
        self.phase: Phase = "starting"
        self.activity = IDLE
        self._memory_timer: asyncio.TimerHandle | None = None
        self.status = StatusWriter(
            StatusFile(runtime.state), runtime.notifier, runtime.clock, self._status_now
        )
        self.health = HealthBoard(runtime.clock, self.status.note_change)
        self._open_state()
        self._make_session()
        self._make_request_loops()
        self._make_timers()
        self._make_recorder()

    def _open_state(self) -> None:
        """Load the device record, and open the journal and the outbox."""
        state, service = self._runtime.state, self._config.service
        self._last_exit = _last_exit_in(state)
        self._identity, record_file = IdentityFile(state), DeviceRecordFile(state)
        record, is_clone = load_or_create_device(
            self._config, record_file, self._identity, quarantine_journal=self._quarantine_journal
        )
        self.binding_state = BindingState(record_file, record, base_url=service.base_url)
        self._database = _open_database(state)
        self._database.on_row_quarantined = self._note_row_quarantined
        self._ledger = Ledger(self._database)
        self._ledger.outbox.quarantine_unreadable()
        if is_clone:
            self.health.set("device-cloned", "the machine id differs from the stored one")
        if self._database.was_quarantined or record_file.was_quarantined:
            self.health.set("state-quarantined", f"see {state.quarantine_path}")

    def _quarantine_journal(self) -> None:
        """Quarantine the database, because it belongs to another device or service."""
        unsent = quarantine_database(self._runtime.state)
        if unsent:
            where = self._runtime.state.quarantine_path
            self.health.set("place-changed", f"unsent reports: {unsent}, kept in {where}")

    def _note_row_quarantined(self) -> None:
        rows = self._database.counters().get("rows_quarantined", 0)
        where = self._runtime.state.quarantine_path
        self.health.set("state-quarantined", f"unreadable rows so far: {rows}, see {where}")

    def _make_session(self) -> None:
        """Build the components that call the service."""
        runtime, service = self._runtime, self._config.service
        api_key = runtime.kept_key or key_source(service.api_key_file, self._loaded.path)
        has_recorder = self._config.recorder.enabled
        self.client = ServiceClient(service, api_key, runtime.clock, tcp_keep_alive=has_recorder)
        self._breaker = CircuitBreaker(runtime.clock, runtime.rng, self.health, api_key)
        self._session = DeviceSession(
            self.client, self._breaker, self.binding_state, runtime.clock, runtime.foreground
        )
        self._enrollment = Enrollment(
            self._session, self._config, self._identity, self.health, runtime.clock, runtime.rng
        )
        self._heartbeat = Heartbeat(self._session, self.health)

    def _make_request_loops(self) -> None:
        """Build the loops that handle a request: receive, acknowledge, execute, submit."""
        runtime, limits = self._runtime, self._config.limits
        work = asyncio.Event()
        self._acknowledger = Acknowledger(
            self._session, self._ledger.journal, runtime.clock, wake_executor=work.set
        )
        self._receiver = Receiver(
            self._config.commands, self._session, self._acknowledger, self._ledger.journal,
            self.health, runtime.clock, runtime.rng,
        )  # fmt: skip
        self._submitter = Submitter(
            limits=limits,
            session=self._session,
            ledger=self._ledger,
            state=runtime.state,
            health=self.health,
            clock=runtime.clock,
            rng=runtime.rng,
            wake_executor=work.set,
        )
        self._executor = Executor(
            collection=cache(self._build_collection),
            limits=limits,
            session=self._session,
            ledger=self._ledger,
            work=work,
            clock=runtime.clock,
            wake_submitter=self._submitter.wake,
            on_activity=self._note_activity,
        )

    def _make_timers(self) -> None:
        floor = DiskFloor(self._runtime.state, self.health, self._executor.schedule)
        self._scheduler = Scheduler(
            send_heartbeat=self._send_heartbeat,
            interval_s=self._config.heartbeat.interval_seconds,
            request_report=floor.start_or_skip,
            schedule=self._config.schedule,
        )

    def _make_recorder(self) -> None:
        """Build the recorder, and connect it with the calls to the service."""
        self._recorder: Recorder | None = None
        config, runtime = self._config.recorder, self._runtime
        if not config.enabled:
            return
        sensors = SystemSensors(self._config.service)
        self._recorder = Recorder(
            sensors=sensors,
            local=_local_faults(self._config, sensors),
            record=Record(self._database),
            clock=runtime.clock,
            keep=timedelta(days=config.keep_days),
            quiet_hours=parse_local_hours(config.quiet_hours),
            boot_id=boot_id(),
            run_id=f"run of {runtime.started_at.isoformat()}",
            read_machine=lambda: MachineState(memory_kills(), runtime.state.free_bytes()),
            on_change=self.status.note_change,
        )
        self._breaker.on_attempt = self._recorder.note_attempt
        self._receiver.on_break = self._recorder.note_stream_broken

    def loops(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """Return the daemon's loops by name, in the order of their start."""
        recorder = {} if self._recorder is None else {"record": self._recorder.run}
        return {
            "status": self.status.run,
            "time": partial(watch_clocks, self._runtime.clock, self._on_time_jump),
            "enroll": self._enroll,
            "heartbeat": self._send_heartbeat_when_bound,
            "receive": self._receiver.run,
            "acknowledge": self._acknowledger.run,
            "execute": self._executor.run,
            "submit": self._submitter.run,
            **recorder,
        }

    def start(self) -> None:
        self.phase = "running"
        self._ledger.journal.prune(self._runtime.clock.now())
        self._ledger.sent.drop_old(self._runtime.clock.now())
        self._scheduler.start()
        self.status.note_change()

    def stop_timers(self) -> None:
        self.phase = "stopping"
        self._scheduler.stop()

    async def close(self, next_config: LoadedConfig[Config] | None = None) -> None:
        """Close connections and files. The tasks of `loops` must have ended.

        ``next_config``: the configuration of the next `App` of this process, after a reload.
        """
        self.phase = "stopped"
        if self._memory_timer is not None:
            self._memory_timer.cancel()
        if self._recorder is not None:
            is_reload = next_config is not None and next_config.config.recorder.enabled
            self._recorder.stop(is_reload=is_reload)
        self.status.write_now()
        await self.client.close()
        self._database.close()

    async def _enroll(self) -> None:
        """Enroll after a delay, because after a power cut many machines start at the same time."""
        clock = self._runtime.clock
        # On every supported system, the monotonic clock returns the time since boot.
        delay_s = retry.first_contact_delay_s(clock.monotonic(), self._runtime.rng)
        if delay_s:
            await clock.sleep(delay_s)
        await self._enrollment.run()

    async def _send_heartbeat_when_bound(self) -> None:
        """Send a heartbeat at once for each new binding."""
        while True:
            await self.binding_state.wait_until_bound()
            self._scheduler.send_heartbeat_now()
            self._release_memory_soon()
            await self.binding_state.wait_for_loss()

    def _on_time_jump(self, jump: TimeJump) -> None:
        """Restart timers and connections, because they are unreliable after a time jump."""
        self._scheduler.reschedule()
        self._breaker.retry_now()
        self._receiver.reconnect()
        if self._recorder is not None and jump.stepped_s:
            self._recorder.note_clock_set(jump.stepped_s)
        self._ledger.outbox.shift_creation_times(timedelta(seconds=max(0.0, jump.stepped_s)))

    async def _send_heartbeat(self) -> None:
        await self._heartbeat.send()
        self._ledger.sent.drop_old(self._runtime.clock.now())
        self.status.note_change()

    def _note_activity(self, activity: str) -> None:
        self.activity = activity
        self.status.note_change()
        self._release_memory_soon()

    def _release_memory_soon(self) -> None:
        """Return memory to the system if the daemon is idle.

        This is delayed, because another request can follow soon.
        """
        if self._memory_timer is not None:
            self._memory_timer.cancel()
        if self.activity == IDLE:
            loop = asyncio.get_running_loop()
            self._memory_timer = loop.call_later(RELEASE_MEMORY_AFTER_S, memory.release_memory)

    def _build_collection(self) -> "Collection":
        """Create the `Collection`. Called for the first report."""
        # These modules need some megabytes of memory. A daemon that makes no report does not import
        # them.
        from agent.adapters.collector_process import CollectorProcess
        from agent.adapters.storage.printer_memory import PrinterMemory
        from agent.reporting import describe_environment
        from agent.tasks.collection import Collection

        command = self._runtime.collector_command
        return Collection(
            config=self._config,
            binding_state=self.binding_state,
            environment=describe_environment(self._config),
            agent_fields=self._agent_fields,
            collectors=CollectorProcess() if command is None else CollectorProcess(command),
            memory=PrinterMemory(self._runtime.state),
            health=self.health,
            clock=self._runtime.clock,
            on_activity=self._note_activity,
        )

    def _agent_fields(self) -> "Iterable[Field]":
        from agent.reporting import agent_fields  # large, so only for reports

        yield from self._history_fields()
        yield from agent_fields(
            uptime_s=int((self._runtime.clock.now() - self._runtime.started_at).total_seconds()),
            outbox=self._ledger.outbox.depth(),
            config_digest=config_digest(self._config),
            last_exit=None if self._last_exit is None else self._last_exit.describe(),
            last_heartbeat_at=_format_timestamp(self._heartbeat.last_at),
        )

    def _history_fields(self) -> "Iterable[Field]":
        from agent.rules.connectivity.fields import history_fields, missing_history_fields

        if self._recorder is None:
            return missing_history_fields("the recorder is switched off in the configuration")
        now = self._runtime.clock.now()
        try:
            return history_fields(self._recorder.history(now - self._recorder.keep), now)
        except sqlite3.Error as error:
            return missing_history_fields(f"the record cannot be read: {error}")

    def _status_now(self) -> DaemonStatus:
        depth = self._ledger.outbox.depth()
        return DaemonStatus(
            version=__version__,
            pid=os.getpid(),
            phase=self.phase,
            started_at=_format_timestamp(self._runtime.started_at) or "",
            written_at=_format_timestamp(self._runtime.clock.now()) or "",
            config_path=str(self._loaded.path) if self._loaded.path else None,
            binding=_binding_status(self.binding_state.record.binding),
            is_revoked=self.binding_state.is_revoked,
            last_heartbeat_at=_format_timestamp(self._heartbeat.last_at),
            last_contact_at=_format_timestamp(self.client.last_contact_at),
            delivery=self._receiver.delivery,
            activity=self.activity,
            outbox_reports=depth.reports,
            outbox_bytes=depth.size_bytes,
            outbox_oldest_at=_format_timestamp(depth.oldest_at),
            counters={
                "commands_received": self._receiver.received,
                "commands_ignored": self._receiver.ignored,
                "commands_unreadable": self._receiver.unreadable,
                "commands_for_others": self._receiver.for_others,
                "requests_expired": self._receiver.expired
                + self._acknowledger.expired
                + self._executor.expired,
                "current_of_others": self._enrollment.current_of_others,
                DROPPED_COUNTER: 0,
                **self._database.counters(),
            },
            problems=self.health.problems(),
        )


def _binding_status(binding: Binding | None) -> BindingStatus | None:
    if binding is None:
        return None
    return BindingStatus(
        instance_id=str(binding.record.instance_id),
        binding_id=str(binding.record.binding_id),
        organization_id=clip(binding.record.organization_id),
        location_id=clip(binding.record.location_id),
        base_url=binding.base_url,
    )


def _local_faults(config: LocalConfig, sensors: SystemSensors) -> "LocalFaultRecorder | None":
    """Return the recorder of faults of print queues, the kiosk and watched devices.

    It also records when the processor was slowed down because of heat. Returns None if there is
    nothing to record: no print queues, kiosk or watched devices, and a processor that does not
    count its slow-downs. The modules that this function imports need 100 KiB of memory, so they are
    imported only if they are used.
    """
    has_queues = sys.platform == "win32" or CUPS.exists()
    has_kiosk = bool(config.application.kiosk_debug_url)
    if not (has_queues or has_kiosk or config.watched_devices or thermal_throttles() is not None):
        return None
    from agent.adapters.connectivity.local import SystemLocalSensors
    from agent.tasks.local_faults import LocalFaultRecorder

    return LocalFaultRecorder(SystemLocalSensors(config, sensors.networks).read)


def _open_database(state: StateDirectory) -> Database:
    """Open the database. After a rolled-back upgrade, a database of the newer version is replaced.

    If an administrator has installed an older version, NewerDatabase is raised, and the
    administrator decides what happens to the database. After a roll-back there may be no
    administrator, and the device must work.
    """
    try:
        return Database(state)
    except NewerDatabase:
        from agent.adapters.upgrade.record import read_upgrade  # rarely needed

        if (upgrade := read_upgrade()) is None or upgrade.state != "failed":
            raise
        return Database(state, replace_newer=True)


def _last_exit_in(state: StateDirectory) -> LastExit | None:
    """Return how the previous run of the daemon ended, or None if this is unknown."""
    try:
        return read_last_exit(state.path)
    except StateError as error:
        log.warning("the reason why the previous run ended cannot be read: %s", error)
        return None


def _format_timestamp(timestamp: datetime | None) -> str | None:
    return None if timestamp is None else timestamp.isoformat(timespec="seconds")
