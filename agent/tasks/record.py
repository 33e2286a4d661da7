"""The recorder: detects interruptions of the connection, and records them with their cause.

A healthy connection costs no timer. The only additional packets are the kernel's TCP keep-alive, a
query to each name server and a datagram to each watched device every five minutes, and a probe of
each new path. The recorder runs when the system reports a changed link, address or route, when a
call to the service fails, and with heartbeats. Every five minutes, it also reads the print queues,
the kiosk and the watched devices. During an interruption, it probes the path to the service every
few seconds, to find the beginning, the end and the cause.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Final

from agent.adapters.clock import Clock, wait_at_most
from agent.adapters.storage.record import Record
from agent.config.local_hours import LocalHours
from agent.errors import ServiceError
from agent.rules.connectivity.cause import LinkState, Sample, diagnose
from agent.rules.connectivity.events import (
    GatewayMacs,
    MachineState,
    describe_start,
    link_events,
    machine_events,
)
from agent.rules.connectivity.hours import HourBuilder, join_hours, start_of_hour
from agent.rules.connectivity.incidents import FLAPPING_WITHIN, IncidentBuilder, with_uncertain_end
from agent.rules.connectivity.pace import ProbePace
from agent.rules.connectivity.sensors import Sensors
from agent.rules.connectivity.suspicion import Suspicion
from agent.rules.time_jump import STEP_MIN_S
from agent.wire.payloads.history import Event, History, Hour, Incident

if TYPE_CHECKING:
    from agent.tasks.local_faults import LocalFaultRecorder

log = logging.getLogger(__name__)

NAME_SERVERS_EVERY_S: Final = 300.0
"""Interval of the queries to the name servers while the connection works."""
SILENT_PROBES_MAX: Final = 3
"""Maximum number of probes of a new path whose gateway never answers."""
STREAM_SILENT_S: Final = 5.0
"""Assumed time from an interruption of the path until an idle command stream breaks. The real time
is 3 to 7 seconds (`adapters.http_client`)."""
GRACE_S: Final = 60.0
"""After the start of the agent and after a sleep, the network may need this time to come up. During
this time, no interruption is recorded."""
SLEEP_MIN_S: Final = 5.0
"""Minimum duration of a sleep of the machine that is recorded."""
WRITE_EVERY_S: Final = 60.0
"""Interval at which an open interruption is written. If the agent is killed or the power fails, the
record shows the interruption until the last write."""
PRUNE_EVERY_S: Final = 3 * 86_400.0
"""Interval at which old rows are deleted while only hourly figures are written. A deletion changes
whole pages of 4 KiB, and a healthy day should write less than 100 KiB."""
UNWRITTEN_MAX: Final = 200
"""Maximum number of rows of a kind that wait in memory while they cannot be written."""


@dataclass(kw_only=True, slots=True, eq=False)
class Recorder:
    """Records the connection to the service.

    Args:
        keep: the age at which rows of the record are deleted.
        quiet_hours: local hours in which interruptions are not recorded, or None.
        boot_id: identifies the current run of the operating system; None if unknown.
        run_id: identifies this process. After a reload, the recorder with the same id continues the
            open incidents.
        read_machine: returns the state of memory and disk.
        local: records the print queues, the kiosk and the watched devices; None if there are none.
        on_change: is called when an interruption begins, changes its cause or ends.
    """

    sensors: Sensors
    record: Record
    clock: Clock
    keep: timedelta
    local: "LocalFaultRecorder | None" = None
    quiet_hours: LocalHours | None = None
    boot_id: str | None = None
    run_id: str = ""
    read_machine: Callable[[], MachineState] = MachineState
    on_change: Callable[[], None] = lambda: None
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _incidents: IncidentBuilder = field(default_factory=IncidentBuilder)
    _suspicion: Suspicion = field(default_factory=Suspicion)
    _pace: ProbePace = field(default_factory=ProbePace)
    _hours: HourBuilder = field(init=False)
    _link: LinkState = field(default_factory=LinkState)
    _machine: MachineState = field(default_factory=MachineState)
    _has_begun: bool = False
    _has_reply: bool = False
    """Whether a call has just succeeded. The next sample then needs a probe only of a new path."""
    _probed_path: tuple[object, ...] | None = None
    """The path that was probed while the connection worked."""
    _gateway_macs: GatewayMacs = field(default_factory=GatewayMacs)
    _silent_probes: int = 0
    """Number of consecutive probes of the current path that the gateway did not answer."""
    _name_servers_due_s: float = 0.0
    """When the next query to the name servers is due."""
    _write_due_s: float = 0.0
    _prune_due_s: float = 0.0
    _slept_s: float = 0.0
    """How long the machine has slept in total, as last read."""
    _clock_offset_s: float = field(init=False)
    """The wall clock minus the monotonic clock, as last read. It changes if the clock is set."""
    _grace_ends_s: float = 0.0
    """Until this time of the monotonic clock, interruptions are not recorded."""
    _open_incidents: tuple[Incident, ...] = ()
    """The incidents of the current interruption."""
    # The rows that are not written yet:
    _events: list[Event] = field(default_factory=list)
    _ended_incidents: list[Incident] = field(default_factory=list)
    _finished_hours: list[Hour] = field(default_factory=list)
    _values: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._hours = HourBuilder(start_of_hour(self.clock.now()))
        self._clock_offset_s = self._read_clock_offset_s()

    # ------------------------------------------------------------------ what other tasks report

    def note_attempt(self, operation: str, error: ServiceError | None, took_s: float) -> None:
        """Note a call to the service, which failed with ``error`` or succeeded."""
        if operation == "heartbeat":
            self._note_heartbeat(None if error else took_s * 1000)
            if self._is_local_due():
                self._wake.set()
        if error is not None:
            began_at = self._now() - timedelta(seconds=took_s)
            if self._suspicion.note_failure(operation, error, began_at):
                self._wake.set()
            return
        self._suspicion.note_success(operation)
        if not self._incidents.is_open:
            self._suspicion.failed_until = None
        is_due = operation == "heartbeat" and self.clock.monotonic() >= self._name_servers_due_s
        if self._incidents.is_open or is_due:
            self._has_reply = True
            self._wake.set()

    def note_stream_broken(self) -> None:
        """Note that the connection of the command stream broke."""
        self._suspicion.note_sign(self._now() - timedelta(seconds=STREAM_SILENT_S))
        self._wake.set()

    def note_clock_set(self, stepped_s: float) -> None:
        """Note that the wall clock was set by ``stepped_s`` seconds."""
        self._events.append(Event("clock-set", self._now(), f"{stepped_s:+.0f} s"))
        self._wake.set()

    def history(self, since: datetime) -> History:
        """Return the record since a time, including the current hour. Raises sqlite3.Error."""
        self._write()
        history = self.record.history(since, self.clock.now())
        hour = self._hours.hour()
        if hour is None:
            return history
        other_hours = [other for other in history.hours if other.at != hour.at]
        stored_hours = [other for other in history.hours if other.at == hour.at]
        return replace(history, hours=(*other_hours, reduce(join_hours, (*stored_hours, hour))))

    # ------------------------------------------------------------------ the loop

    async def run(self) -> None:
        """Record without end. After an exception, call this method again to continue the record."""
        if not self._has_begun:
            self._begin()
        self.sensors.open(self._wake.set)
        try:
            while True:
                await wait_at_most(self._wake, self._pause_s(), self.clock)
                self._wake.clear()
                await self._observe()
                if self._events and self._until_write_s() <= 0:
                    self._write()
        finally:
            self.sensors.close()

    def stop(self, *, is_reload: bool = False) -> None:
        """End the record of this run. Call this at a clean stop.

        With ``is_reload``, the next recorder of this process continues the open incidents.
        """
        if not self._has_begun:
            return
        now = self._now()
        if is_reload:
            self._open_incidents = self._incidents.current_incidents(now)
        else:
            self._ended_incidents += self._incidents.observe(now, None)
            self._ended_incidents += self.local.faults.end_all(now) if self.local else ()
            self._open_incidents = ()
        self._finished_hours += filter(None, (self._hours.hour(),))
        self._write(("stopped", self.run_id if is_reload else "cleanly"))

    def _begin(self) -> None:
        """Record how the previous run ended, and continue its record."""
        now = self._now()
        self.record.quarantine_unreadable()
        values, open_incidents = self.record.values(), self.record.open_incidents()
        recent = self.record.history(now - FLAPPING_WITHIN, now).incidents
        interruptions = [incident for incident in open_incidents if incident.is_interruption]
        self._link, self._machine = self.sensors.read_link(), self.read_machine()
        self._slept_s = self.clock.slept_s()
        if self.run_id and values.get("stopped") == self.run_id:
            self._incidents = IncidentBuilder(recent, interruptions)
            self._open_incidents = self._incidents.current_incidents(now)
            faults = (incident for incident in open_incidents if not incident.is_interruption)
            if self.local is None:
                self._ended_incidents += faults
            else:
                self.local.resume(recent, faults)
        else:
            self._incidents = IncidentBuilder(recent)
            self._events += describe_start(values, self.boot_id, now)
            self._ended_incidents += open_incidents
            self._start_grace_period()
        # A stored beginning in the future was written before the clock was set back.
        since = min(float(values.get("since", now.timestamp())), now.timestamp())
        self._has_begun = True
        self._write(("since", str(since)), ("boot-id", self.boot_id or ""), ("stopped", ""))

    def _pause_s(self) -> float | None:
        """Return the seconds until the next probe or write; None if none is due."""
        began_at = self._incidents.began_at
        if began_at is not None:
            return self._pace.pause_s(self._now(), began_at)
        return max(0.0, self._until_write_s()) if self._events else None

    def _until_write_s(self) -> float:
        return self._write_due_s - self.clock.monotonic()

    async def _observe(self) -> None:
        """Take a sample if there is a reason for one, and record what it shows."""
        woken_at, woken_s = self._now(), self.clock.monotonic()
        self._note_sleep(woken_at)
        link = self.sensors.read_link()
        is_changed = link.path != self._link.path
        if is_changed:
            self._silent_probes = 0
        machine = self.read_machine()
        self._events += filter(None, (self._gateway_macs.observe(link, woken_at, woken_s),))
        has_conflict = self._gateway_macs.has_conflict(woken_s)
        self._events += link_events(self._link, link, woken_at, has_conflict=has_conflict)
        self._events += machine_events(self._machine, machine, woken_at)
        self._link, self._machine = link, machine
        is_suspected = self._suspicion.since is not None
        if is_changed or is_suspected or self._has_reply or self._incidents.is_open:
            await self._observe_path(link, woken_at, woken_s)
        if self.local is not None and self._is_local_due():
            await self._observe_local(self.local)

    async def _observe_path(self, link: LinkState, woken_at: datetime, woken_s: float) -> None:
        sample = await self._sample(link)
        if self._is_in_quiet_hours():
            self._suspicion = Suspicion()
        diagnosis = None if self._is_excused() else diagnose(sample)
        now = self._now()  # the clock may have been set while the sample was taken
        woken_at = now - timedelta(seconds=self.clock.monotonic() - woken_s)
        # Most calls fail some time after the interruption began, so the incident begins when the
        # first failed call began. This is not necessary for a refused connection: it fails at once.
        is_late = sample.service != "refused" and not self._incidents.is_open
        first_failure_at = self._suspicion.since if is_late else None
        ended_incidents = self._incidents.observe(now, diagnosis, first_failure_at or woken_at)
        if ended_incidents:
            if (failed_until := self._suspicion.failed_until) is not None:
                *others, last = ended_incidents
                ended_incidents = (*others, with_uncertain_end(last, failed_until))
            self._suspicion.since = self._suspicion.failed_until = None
        self._ended_incidents += ended_incidents
        self._note_incidents(ended_incidents)

    async def _observe_local(self, local: "LocalFaultRecorder") -> None:
        ended_incidents, events, is_new = await local.observe(
            self._now, self.clock.monotonic(), is_excused=self._is_in_quiet_hours()
        )
        self._ended_incidents += ended_incidents
        self._events += events
        if ended_incidents or is_new:
            self._write()

    def _is_local_due(self) -> bool:
        now_s = self.clock.monotonic()
        return self.local is not None and now_s >= self._grace_ends_s and self.local.is_due(now_s)

    async def _sample(self, link: LinkState) -> Sample:
        """Return a sample. A path that was probed before is not probed if a call just succeeded."""
        has_reply, self._has_reply = self._has_reply, False
        sample = await (self._sample_after_reply(link) if has_reply else self.sensors.probe(link))
        has_conflict = self._gateway_macs.has_conflict(self.clock.monotonic())
        if sample.conflicting_address is None and has_conflict:
            sample = replace(sample, conflicting_address=link.gateway)
        return self._suspicion.add_refusal(sample, self._now())

    async def _sample_after_reply(self, link: LinkState) -> Sample:
        if self._probed_path != link.path:
            # The sensors compare later probes with this probe of the working connection. It is
            # repeated a few times if the gateway does not answer.
            sample = await self.sensors.probe(link)
            needs_no_gateway = sample.is_service_local or link.gateway is None
            is_conclusive = sample.gateway_answers or needs_no_gateway
            self._silent_probes = 0 if is_conclusive else self._silent_probes + 1
            if is_conclusive or self._silent_probes >= SILENT_PROBES_MAX:
                self._probed_path, self._silent_probes = link.path, 0
        self._name_servers_due_s = self.clock.monotonic() + NAME_SERVERS_EVERY_S
        return Sample(link, name_servers=await self.sensors.query_name_servers(), service="reply")

    def _note_incidents(self, ended: Sequence[Incident]) -> None:
        """Write incidents when they begin and end, and at intervals while they are open."""
        causes_before = [incident.cause for incident in self._open_incidents]
        self._open_incidents = self._incidents.current_incidents(self._now())
        is_new = causes_before != [incident.cause for incident in self._open_incidents]
        if is_new and self._open_incidents:
            newest = self._open_incidents[-1]
            log.warning("interrupted: %s (%s)", newest.evidence, newest.cause)
        for incident in ended:
            log.warning("the interruption (%s) ended", incident.cause)
        is_changed = is_new or bool(ended)
        has_rows = bool(self._open_incidents or self._ended_incidents)
        if is_changed or (has_rows and self._until_write_s() <= 0):
            self._write()
        if is_changed:
            self.on_change()

    # ------------------------------------------------------------------ details

    def _note_heartbeat(self, round_trip_ms: float | None) -> None:
        now = self._now()
        if (finished := self._hours.begin(now)) is not None:
            self._finished_hours.append(finished)
            self._write()
        self._hours.add_heartbeat(round_trip_ms)
        self._hours.add_link(self._link.signal_dbm, self._link.link_errors)

    def _note_sleep(self, now: datetime) -> None:
        """Record a sleep. An open interruption ends at the time when the machine fell asleep."""
        slept_s = self.clock.slept_s() - self._slept_s
        if slept_s < SLEEP_MIN_S:
            return
        self._slept_s += slept_s
        asleep_at = now - timedelta(seconds=slept_s)
        self._ended_incidents += self._incidents.observe(asleep_at, None)
        self._events.append(Event("slept", asleep_at, f"{slept_s:.0f} s"))
        self._start_grace_period()

    def _start_grace_period(self) -> None:
        """Do not record interruptions for the next GRACE_S seconds."""
        self._grace_ends_s = self.clock.monotonic() + GRACE_S
        self._suspicion = Suspicion()

    def _is_excused(self) -> bool:
        """Return whether interruptions are expected now, and are not recorded."""
        return self._is_in_quiet_hours() or self.clock.monotonic() < self._grace_ends_s

    def _is_in_quiet_hours(self) -> bool:
        local_time = self.clock.now().astimezone()
        return self.quiet_hours is not None and self.quiet_hours.contains(local_time)

    def _now(self) -> datetime:
        """Return the time. Move open incidents if the wall clock was set since the last call."""
        offset_s = self._read_clock_offset_s()
        stepped_s, self._clock_offset_s = offset_s - self._clock_offset_s, offset_s
        if abs(stepped_s) >= STEP_MIN_S:
            self._incidents.shift(timedelta(seconds=stepped_s))
            if self.local is not None:
                self.local.faults.shift(timedelta(seconds=stepped_s))
            self._suspicion.shift(timedelta(seconds=stepped_s))
        return self.clock.now()

    def _read_clock_offset_s(self) -> float:
        return self.clock.now().timestamp() - self.clock.monotonic()

    def _write(self, *values: tuple[str, str]) -> None:
        """Write the new rows. If this fails, they stay in memory and are written later.

        Before the record has begun, nothing is written: a write would delete the open incidents of
        the previous run.
        """
        self._write_due_s = self.clock.monotonic() + WRITE_EVERY_S
        self._values.update(values)
        if not self._has_begun:
            self._drop_oldest()
            return
        open_faults = self.local.faults.current_incidents(self.clock.now()) if self.local else ()
        has_more = bool(self._ended_incidents or self._open_incidents or self._events)
        is_pruned = has_more or self.clock.monotonic() >= self._prune_due_s
        try:
            self.record.write(
                incidents=(*self._ended_incidents, *self._open_incidents, *open_faults),
                events=self._events,
                hours=self._finished_hours,
                values=self._values.items(),
                keep_since=self.clock.now() - self.keep if is_pruned else None,
            )
        except sqlite3.Error as error:
            log.warning("the connectivity record cannot be written: %s", error)
            self._drop_oldest()
            return
        if is_pruned:
            self._prune_due_s = self.clock.monotonic() + PRUNE_EVERY_S
        for written_rows in (self._ended_incidents, self._events, self._finished_hours):
            written_rows.clear()
        self._values.clear()

    def _drop_oldest(self) -> None:
        """Limit the rows that wait in memory."""
        for rows in (self._ended_incidents, self._events, self._finished_hours):
            del rows[:-UNWRITTEN_MAX]
