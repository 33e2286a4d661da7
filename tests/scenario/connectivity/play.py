"""Plays faults in a venue in real time, and compares them with what the agent recorded."""

import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.tasks.record import GRACE_S
from agent.wire.payloads.history import Cause, History, Incident
from tests.scenario.connectivity.faults import FAULTS
from tests.scenario.connectivity.site import Site, site

PAUSE_S = 12.0
"""The time between the end of an incident and the next fault."""
ENDS_WITHIN_S = 120.0
EARLY_S = 15.0
"""An incident that begins at most so long before a fault belongs to this fault."""


@dataclass(frozen=True, slots=True)
class Part:
    """A fault of a play, which begins some seconds after the begin of the play."""

    kind: str
    after_s: float
    length_s: float

    @property
    def ends_s(self) -> float:
        return self.after_s + self.length_s

    def __str__(self) -> str:
        return f"{self.kind}-{self.length_s:g}s"


@dataclass(frozen=True, slots=True)
class Result:
    """A play, and the incidents that were recorded. Errors are in seconds, late is positive."""

    parts: tuple[Part, ...]
    began_at: datetime
    incidents: tuple[Incident, ...]

    @property
    def causes(self) -> list[Cause]:
        return [each.cause for each in self.incidents]

    @property
    def began_late_s(self) -> float:
        begins = min(each.after_s for each in self.parts)
        return (self.incidents[0].began_at - self.began_at).total_seconds() - begins

    @property
    def ended_late_s(self) -> float:
        ended_at = self.incidents[-1].ended_at or datetime.now(UTC)
        return (ended_at - self.began_at).total_seconds() - max(each.ends_s for each in self.parts)


Play = Sequence[Part]


@dataclass(frozen=True, slots=True)
class Venture:
    """Plays that follow each other in one venue."""

    plays: Sequence[Play]
    heartbeat_s: float = 60.0
    seed: int = 0


def alone(kind: str, length_s: float) -> Play:
    return (Part(kind, 0.0, length_s),)


def play_all(ventures: Sequence[Venture]) -> list[list[Result]]:
    """Play in as many venues at the same time. The threads only wait."""
    with ThreadPoolExecutor(len(ventures)) as threads:
        return list(threads.map(_play_in_a_venue, ventures))


def _play_in_a_venue(venture: Venture) -> list[Result]:
    with tempfile.TemporaryDirectory() as home, site(Path(home), venture.heartbeat_s) as built:
        built.start_agent()
        time.sleep(GRACE_S + 1.0)
        began = [_play(built, play) for play in venture.plays]
        history = built.record(began[0] - timedelta(seconds=EARLY_S))
        built.stop_agent()
    assert not [each.kind for each in history.events if each.kind == "agent-killed"]
    bounds = [*(at - timedelta(seconds=EARLY_S) for at in began), datetime.now(UTC)]
    return [
        Result(tuple(play), began[i], _between(history, bounds[i], bounds[i + 1]))
        for i, play in enumerate(venture.plays)
    ]


def _play(built: Site, play: Play) -> datetime:
    """Play faults, wait until their incidents have ended, and return when the play began."""
    steps = sorted(
        step
        for number, part in enumerate(play)
        for step in ((part.after_s, number, True), (part.ends_s, number, False))
    )
    began_at, began_s = datetime.now(UTC), time.monotonic()
    for at_s, number, is_begin in steps:
        time.sleep(max(0.0, began_s + at_s - time.monotonic()))
        fault = FAULTS[play[number].kind]
        (fault.begin if is_begin else fault.end)(built)
    time.sleep(PAUSE_S)
    since = began_at - timedelta(seconds=EARLY_S)
    if built.wait_for(lambda: not _is_open(built.record(since)), ENDS_WITHIN_S):
        time.sleep(1.0)
    return began_at


def _is_open(history: History) -> bool:
    return any(each.ended_at is None for each in history.incidents)


def _between(history: History, begin: datetime, end: datetime) -> tuple[Incident, ...]:
    return tuple(each for each in history.incidents if begin <= each.began_at < end)
