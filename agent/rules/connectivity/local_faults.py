"""Faults of this machine and its devices that leave the connection intact: queues, kiosk, devices.

The state of the queues, the kiosk and the devices is read about every five minutes, and sooner to
confirm a fault. A fault is recorded if two readings in a row show it. It begins with the first of
these readings, or earlier if the system reports an earlier beginning.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, NamedTuple

from agent.rules.connectivity.cause import Diagnosis
from agent.rules.connectivity.incidents import IncidentBuilder
from agent.wire.payloads.history import LOCAL_CAUSES, SUBJECT_END, Cause, EventKind, Incident

Key = tuple[Cause, str]
"""A cause of `LOCAL_CAUSES`, and the subject, such as the name of a print queue."""
_EARLIER_MAX: Final = timedelta(days=1)
"""A fault begins at most this long before the first reading that shows it, even if the system
reports an earlier time."""


class LocalState(NamedTuple):
    """The state of one subject.

    Args:
        fault: what is wrong, without a full stop; None if nothing is wrong.
        changed_at: when the subject came into this state; None if unknown.
    """

    fault: str | None
    changed_at: datetime | None = None


class LocalReading(NamedTuple):
    """The state of the queues, the kiosk and the watched devices.

    Args:
        states: the subjects whose state is known.
        complete_causes: the causes for which ``states`` contains every existing subject. If a
            subject with such a cause is not in ``states``, it does not exist any more.
        events: new events, each with a detail.
        throttle_count: how often the processor was slowed down because of heat, since the start of
            the machine. None: not known.
        is_pending: addresses of watched devices are being resolved. The next reading shows the
            result, and should be taken with the next heartbeat.
    """

    states: Mapping[Key, LocalState] = MappingProxyType({})
    complete_causes: frozenset[Cause] = frozenset()
    events: tuple[tuple[EventKind, str], ...] = ()
    throttle_count: int | None = None
    is_pending: bool = False


class LocalFaults:
    """The incidents of local faults. Call ``observe`` in the order of time.

    ``recent`` are the ended incidents of the last hour, which a new incident may continue.
    ``open_incidents`` are the incidents that have not ended.
    """

    def __init__(
        self, recent: Iterable[Incident] = (), open_incidents: Iterable[Incident] = ()
    ) -> None:
        self._builders: dict[Key, IncidentBuilder] = {}
        self._suspected: dict[Key, datetime] = {}
        earlier, lasting = _by_subject(recent), _by_subject(open_incidents)
        for key in earlier.keys() | lasting.keys():
            self._builders[key] = IncidentBuilder(earlier[key], lasting[key])

    @property
    def is_suspected(self) -> bool:
        """Whether a reading showed a fault that the next reading has to confirm."""
        return bool(self._suspected)

    def observe(self, now: datetime, reading: LocalReading) -> tuple[Incident, ...]:
        """Add a reading. Returns the incidents that ended."""
        ended_incidents: list[Incident] = []
        for key, state in reading.states.items():
            if state.fault is None:
                ended_incidents += self._end(key, state.changed_at or now, now)
            else:
                self._add_fault(key, state.fault, state.changed_at or now, now)
        for key in {*self._builders, *self._suspected} - reading.states.keys():
            if key[0] in reading.complete_causes:
                ended_incidents += self._end(key, now, now)
        return tuple(ended_incidents)

    def end_all(self, now: datetime) -> tuple[Incident, ...]:
        """End all incidents. Returns them."""
        keys = {*self._builders, *self._suspected}
        return tuple(incident for key in keys for incident in self._end(key, now, now))

    def current_incidents(self, now: datetime) -> tuple[Incident, ...]:
        """Return the open incidents, with their downtime until ``now``."""
        return tuple(
            fault for builder in self._builders.values() for fault in builder.current_incidents(now)
        )

    def shift(self, by: timedelta) -> None:
        """Move the open incidents and suspected faults, because the wall clock was set."""
        for builder in self._builders.values():
            builder.shift(by)
        self._suspected = {key: at + by for key, at in self._suspected.items()}

    def _add_fault(self, key: Key, fault: str, since: datetime, now: datetime) -> None:
        """Suspect a fault, or begin its incident if the previous reading showed it, too."""
        builder = self._builders.get(key)
        if builder is not None and builder.is_open:
            return
        if key not in self._suspected:
            self._suspected[key] = min(now, max(since, now - _EARLIER_MAX))
            return
        began_at = self._unused_start(self._suspected.pop(key))
        diagnosis = Diagnosis(key[0], f"{key[1]}{SUBJECT_END}{fault}")
        self._builders.setdefault(key, IncidentBuilder()).observe(now, diagnosis, began_at)

    def _unused_start(self, at: datetime) -> datetime:
        """Return ``at``, or the next time at which no open incident begins.

        The beginning identifies an incident, so two open incidents must not share it.
        """
        used_starts = {builder.began_at for builder in self._builders.values()}
        while at in used_starts:
            at += timedelta(microseconds=1)
        return at

    def _end(self, key: Key, at: datetime, now: datetime) -> Iterator[Incident]:
        self._suspected.pop(key, None)
        builder = self._builders.get(key)
        if builder is not None and builder.began_at is not None:
            yield from builder.observe(min(now, max(at, builder.began_at)), None)


def _by_subject(incidents: Iterable[Incident]) -> defaultdict[Key, list[Incident]]:
    results: defaultdict[Key, list[Incident]] = defaultdict(list)
    for incident in incidents:
        if incident.cause in LOCAL_CAUSES:
            results[incident.cause, incident.subject].append(incident)
    return results
