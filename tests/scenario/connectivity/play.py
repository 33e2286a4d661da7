"""Plays faults in venues in real time, and returns what the agents recorded."""

import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final, TypeVar

from agent.wire.payloads.history import CAUSES, Cause, History, Incident
from tests.fakes.fake_path import nearest_causes
from tests.lab.connectivity.venue import GATEWAY, TILL
from tests.scenario.connectivity.faults import FAULTS
from tests.scenario.connectivity.site import Site, site, wait_until

PAUSE_S = 12.0
"""Minimum time between the end of a case and the next case, and the time between the steps of
`play_healthy`."""
ENDS_WITHIN_S = 120.0
"""Maximum time after the end of a case until its incidents have ended."""
LASTS_S = 10.0
"""Minimum time after the recording of a cause until the next step of the case. The record leaves
out a cause that was diagnosed only for a few seconds (agent/rules/connectivity/incidents.py)."""
EARLY_S = 10.0
"""An incident that begins at most this long before a fault belongs to this fault."""
PER_VENUE_S = 45.0
"""Maximum total duration of the cases of a venue, unless a single case lasts longer."""
HEARTBEAT_S: Final = {"change": 60.0, "silence": 60.0, "call": 15.0}
"""Interval of the heartbeats, by how the agent detects the fault (`NoticedBy`)."""

OVERLAPPING: Final = frozenset({"carrier", "address", "gateway-gone", "provider-silent"})
"""Faults that can overlap, because the start and the end of one fault do not change another fault.
"""

Answer = TypeVar("Answer")
Work = Callable[[Site], Answer]


@dataclass(frozen=True, slots=True)
class Part:
    """A fault of a case. It begins ``after_s`` seconds after the start of the case."""

    kind: str
    after_s: float
    length_s: float

    @property
    def ends_s(self) -> float:
        return self.after_s + self.length_s


@dataclass(frozen=True, slots=True)
class Case:
    """Faults that follow each other or overlap."""

    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return "+".join(f"{part.kind}-{part.length_s:g}s" for part in self.parts)

    @property
    def begins_s(self) -> float:
        return min(part.after_s for part in self.parts)

    @property
    def ends_s(self) -> float:
        return max(part.ends_s for part in self.parts)

    @property
    def expected(self) -> list[Cause]:
        """The causes that the record must show, in the order of time.

        A cause that comes again within a minute continues its incident, so it is in the list once.
        """
        spans = [(FAULTS[part.kind].cause, part.after_s, part.ends_s) for part in self.parts]
        return [*dict.fromkeys(nearest_causes(spans))]

    @property
    def causes(self) -> frozenset[Cause]:
        return frozenset(FAULTS[part.kind].cause for part in self.parts)

    @property
    def heartbeat_s(self) -> float:
        return min(HEARTBEAT_S[FAULTS[part.kind].noticed_by] for part in self.parts)


@dataclass(frozen=True, slots=True)
class Result:
    """The recorded incidents of a case. Errors are in seconds; a positive error is late."""

    case: Case
    began_at: datetime
    ended_at: datetime
    incidents: tuple[Incident, ...]

    @property
    def causes(self) -> list[Cause]:
        return [incident.cause for incident in self.incidents]

    @property
    def begin_error_s(self) -> float:
        return (self.incidents[0].began_at - self.began_at).total_seconds() - self.case.begins_s

    @property
    def end_error_s(self) -> float:
        ended_at = max(incident.ended_at or datetime.now(UTC) for incident in self.incidents)
        return (ended_at - self.ended_at).total_seconds()


def single(kind: str, length_s: float) -> Case:
    return Case((Part(kind, 0.0, length_s),))


def pair(rng: Random) -> Case:
    """Return two faults that overlap.

    Their times are such that a delay of some seconds seldom changes the causes that the record must
    show (agent/rules/connectivity/incidents.py defines how long a cause must last).
    """
    first, second = rng.sample(sorted(OVERLAPPING), 2)
    second_begins_s, first_ends_s = rng.randint(12, 25), rng.randint(60, 75)
    apart_s = rng.choice((rng.randint(12, 20), rng.randint(45, 55)))
    # The second fault ends after or before the first.
    second_ends_s = rng.choice(
        (first_ends_s + apart_s, max(first_ends_s - apart_s, second_begins_s + 15))
    )
    second_part = Part(second, second_begins_s, second_ends_s - second_begins_s)
    return Case((Part(first, 0.0, first_ends_s), second_part))


def play_cases(cases: Sequence[Case], grace_s: float) -> list[Result]:
    """Play each case. All venues run at the same time.

    Args:
        grace_s: seconds after the start of an agent in which it records no incident.
    """
    groups = _distribute(cases)
    works = [lambda venue_site, group=group: _play_all(venue_site, group) for group in groups]
    intervals = [group[0].heartbeat_s for group in groups]
    return [result for results in run_venues(works, intervals, grace_s) for result in results]


def run_venues(
    works: Sequence[Work[Answer]], intervals: Sequence[float], grace_s: float
) -> list[Answer]:
    """Run all functions at the same time, each with its own venue and running agent.

    Args:
        intervals: the interval of the heartbeats in each venue, in seconds.
    """

    def run(work: Work[Answer], heartbeat_s: float) -> Answer:
        with (
            tempfile.TemporaryDirectory() as home,
            site(Path(home), heartbeat_s, grace_s) as venue_site,
        ):
            venue_site.start_agent()
            time.sleep(grace_s + 1.0)
            return work(venue_site)

    with ThreadPoolExecutor(len(works)) as threads:  # the threads only wait
        return list(threads.map(run, works, intervals))


def _distribute(cases: Sequence[Case]) -> list[list[Case]]:
    """Distribute cases over venues. Cases of one venue have different causes, because the agent
    merges incidents with the same cause that follow each other closely.
    """
    venues: list[list[Case]] = []
    for case in sorted(cases, key=lambda each: -each.ends_s):
        for venue_cases in venues:
            causes = frozenset[Cause]().union(*(each.causes for each in venue_cases))
            duration_s = sum(each.ends_s + PAUSE_S for each in venue_cases)
            if (
                not causes & case.causes
                and venue_cases[0].heartbeat_s == case.heartbeat_s
                and duration_s + case.ends_s <= PER_VENUE_S
            ):
                venue_cases.append(case)
                break
        else:
            venues.append([case])
    return venues


def _play_all(venue_site: Site, cases: Sequence[Case]) -> list[Result]:
    times = [_play(venue_site, case) for case in cases]
    tolerance = timedelta(seconds=EARLY_S)
    history = venue_site.record(times[0][0] - tolerance)
    bounds = [*(began_at - tolerance for began_at, _ in times), datetime.now(UTC)]
    return [
        Result(case, *times[i], _between(history, bounds[i], bounds[i + 1]))
        for i, case in enumerate(cases)
    ]


def _play(venue_site: Site, case: Case) -> tuple[datetime, datetime]:
    """Play a case, and wait until its incidents have ended. Return when its faults began and ended.

    On a busy machine, the agent needs longer to record a fault. The later steps are then delayed.
    """
    steps = sorted(
        step
        for number, part in enumerate(case.parts)
        for step in ((part.after_s, number, True), (part.ends_s, number, False))
    )
    began_at, began_s = datetime.now(UTC), time.monotonic()
    since = began_at - timedelta(seconds=EARLY_S)
    present_causes: list[Cause] = []
    earliest_s = 0.0
    for at_s, number, is_begin in steps:
        began_s = max(began_s, earliest_s - at_s)
        time.sleep(max(0.0, began_s + at_s - time.monotonic()))
        fault = FAULTS[case.parts[number].kind]
        (fault.begin if is_begin else fault.end)(venue_site)
        if is_begin:
            present_causes.append(fault.cause)
        else:
            present_causes.remove(fault.cause)
        nearest = min(present_causes, key=CAUSES.index, default=None)
        if nearest in case.expected:
            _wait_until_open(venue_site, nearest, since)
            earliest_s = time.monotonic() + LASTS_S
    ended_at = datetime.now(UTC)
    time.sleep(PAUSE_S)
    # If an incident is still open after this time, its end error is above the limit.
    wait_until(ENDS_WITHIN_S, lambda: not _open_causes(venue_site.record(since)))
    return began_at, ended_at


def _wait_until_open(venue_site: Site, cause: Cause | None, since: datetime) -> None:
    """Wait until an incident with this cause is open.

    If no such incident is open after `ENDS_WITHIN_S`, the case goes on. The causes of its result
    then differ from the expected causes.
    """
    wait_until(ENDS_WITHIN_S, lambda: cause in _open_causes(venue_site.record(since)))


def _open_causes(history: History) -> list[Cause]:
    return [incident.cause for incident in history.incidents if incident.ended_at is None]


def _between(history: History, begin: datetime, end: datetime) -> tuple[Incident, ...]:
    return tuple(incident for incident in history.incidents if begin <= incident.began_at < end)


def play_healthy(venue_site: Site) -> History:
    """Play what happens in a healthy venue, and return the record.

    A lease is renewed, the machine gets another address, the agent is restarted, and its process
    is suspended for some seconds.
    """
    began_at = datetime.now(UTC)
    other_address = TILL.replace(".2", ".3")
    venue_site.venue.ip("till", f"addr change {TILL}/24 dev eth0 valid_lft 3600 preferred_lft 3600")
    time.sleep(PAUSE_S)
    # Without this, the kernel removes the new address together with the old one.
    promote = "echo 1 > /proc/sys/net/ipv4/conf/all/promote_secondaries"
    venue_site.venue.run("till", "sh", "-c", promote)
    venue_site.venue.ip("till", f"addr add {other_address}/24 dev eth0")
    venue_site.venue.ip("till", f"route replace default via {GATEWAY} src {other_address}")
    venue_site.venue.ip("till", f"addr del {TILL}/24 dev eth0")
    time.sleep(PAUSE_S)
    venue_site.stop_agent()
    venue_site.start_agent()
    time.sleep(venue_site.grace_s + 1.0)
    venue_site.signal("agent", signal.SIGSTOP)
    time.sleep(PAUSE_S)
    venue_site.signal("agent", signal.SIGCONT)
    time.sleep(2 * PAUSE_S)
    return venue_site.record(began_at)
