"""What is to be told of a week, worked out from the words of docs/notices.md, slowly.

It keeps nothing but what was the case at each look, and asks that history each question anew. It
shares no code with the service: hours are read off the location's clock, minute by minute.
"""

from bisect import bisect_left
from collections.abc import Callable
from datetime import timedelta
from zoneinfo import ZoneInfo

from tests.unit.controlplane.remote_control.notices.week import (
    BEGINS,
    SECONDS,
    PlayedLocation,
    Stretch,
    Week,
    last_at_each,
)

WINDOW = 180
HOLD = CALM = TOGETHER = 300
HOUR = 3600
BREAK_AFTER = 60
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
BEFORE_S = 9 * 86400
HOLDS, GONE, UNKNOWN = "holds", "gone", "unknown"

Told = tuple[float, str, str, str, bool, bool]
"""When, location, device or "", condition, about flapping, an end."""


def expected(week: Week, step_s: int) -> list[Told]:
    ticks = list(week.ticks(step_s))
    told: list[Told] = []
    for location in week.locations:
        told += _of_location(location, week.service_downs, ticks)
    return sorted(told)


def _of_location(location: PlayedLocation, downs: list[Stretch], ticks: list[float]) -> list[Told]:
    opened = _opening(location)
    settled = _settled(ticks)
    beats = [device.beats(downs) for device in location.devices]
    values: list[list[str]] = []
    sinces: list[list[float | None]] = []
    maintained: list[list[bool]] = []
    lasts = [last_at_each(heard, ticks) for heard in beats]
    for device, last in zip(location.devices, lasts, strict=True):
        said = location.maintenance + device.maintenance
        at_ticks = [
            (GONE, None)
            if now - heard <= WINDOW
            else _offline(location, said, heard, opened=opened, now=now, settled=settled)
            for heard, now in zip(last, ticks, strict=True)
        ]
        values.append([value for value, _ in at_ticks])
        sinces.append([since for _, since in at_ticks])
        maintained.append([_in(said, t) for t in ticks] if said else [False] * len(ticks))
    dark = Story(location.name, "", "dark", ticks)
    is_covered: list[bool] = []
    for at, (now, column) in enumerate(zip(ticks, zip(*values, strict=True), strict=True)):
        if set(column) == {GONE}:
            dark.look(GONE)
            is_covered.append(dark.is_active())
            continue
        present = [i for i in range(len(beats)) if not maintained[i][at]]
        silent = [i for i in present if now - lasts[i][at] > WINDOW]
        offline = [s for i in range(len(beats)) if (s := sinces[i][at]) is not None]
        dark.look(_dark(len(present), len(silent), offline, TOGETHER, dark.is_open))
        is_covered.append(dark.is_active())
    told = dark.told
    for i, device in enumerate(location.devices):
        story = Story(location.name, str(device.instance_id), "offline", ticks)
        if set(values[i]) != {GONE}:
            for value, covered in zip(values[i], is_covered, strict=True):
                story.look(value, may_begin=not covered)
        told += story.told
        if device.broken:
            story = Story(location.name, str(device.instance_id), "broken", ticks)
            for at, now in enumerate(ticks):
                bad = UNKNOWN if maintained[i][at] else HOLDS
                story.look(bad if _in(device.broken, now) else GONE)
            told += story.told
    return told


def _dark(devices: int, silent: int, offline: list[float], within: float, is_open: bool) -> str:
    def enough(some: int, of: int) -> bool:
        return (some == of and some >= 2) or (some >= 3 and some / of >= 0.8)

    if is_open and enough(len(offline), devices):
        return HOLDS
    for first in offline:
        fell = [each for each in offline if 0 <= each - first <= within]
        before = [each for each in offline if each < first]
        if not is_open and enough(len(fell), devices - len(before)):
            return HOLDS
    if len(offline) < silent and enough(silent, devices):
        return UNKNOWN
    return GONE


def _offline(
    location: PlayedLocation,
    said: list[Stretch],
    last: float,
    *,
    opened: Callable[[float], float | None],
    now: float,
    settled: Callable[[float], bool],
) -> tuple[str, float | None]:
    """Judge a device that was not heard. Since when it has to be, where it is offline."""
    if not settled(now):
        return UNKNOWN, None
    if _in(said, now):
        return UNKNOWN, None
    since = last
    if location.lines:
        open_since = opened(now)
        if open_since is None:
            return UNKNOWN, None
        since = max(since, open_since)
    since = max([since, *(end for _, end in said if end <= now)])
    return (HOLDS, since) if now - since > WINDOW else (UNKNOWN, None)


def _settled(ticks: list[float]) -> Callable[[float], bool]:
    resumed: dict[float, float] = {}
    last = before = ticks[0]
    for now in ticks:
        if now - before > BREAK_AFTER:
            last = now
        before = now
        resumed[now] = last
    return lambda now: now - resumed[now] > WINDOW


def _opening(location: PlayedLocation) -> Callable[[float], float | None]:
    """Look at the clock on the wall at each minute, and remember since when it has been open."""
    if not location.lines:
        return lambda now: None
    zone = ZoneInfo(location.zone)
    week = [_line(line) for line in location.lines]
    since: list[float | None] = []
    open_since: float | None = None
    for at in range(-BEFORE_S, SECONDS, 60):
        local = (BEGINS + timedelta(seconds=at)).astimezone(zone)
        minute, day = local.hour * 60 + local.minute, local.weekday()
        is_open = any(
            (day in days and start <= minute < (end if end > start else 1440))
            or ((day - 1) % 7 in days and end <= start and minute < end)
            for days, start, end in week
        )
        open_since = (open_since if open_since is not None else at) if is_open else None
        since.append(open_since)
    return lambda now: since[int((now + BEFORE_S) // 60)]


def _line(line: str) -> tuple[list[int], int, int]:
    days, hours = line.split(" ")
    first, _, last = days.partition("-")
    start, end = (int(each[:2]) * 60 + int(each[3:]) for each in hours.split("-"))
    return list(range(DAYS.index(first), DAYS.index(last or first) + 1)), start, end


def _in(stretches: list[Stretch], now: float) -> bool:
    return any(start <= now < end for start, end in stretches)


class Story:
    """One condition: what it was at each look, and what was told by then."""

    def __init__(self, location: str, device: str, condition: str, ticks: list[float]) -> None:
        self.who = (location, device, condition)
        self.ticks = ticks
        self.values: list[str] = []
        self.told: list[Told] = []
        self.is_open = self.is_flapping = False
        self.opened_look = 0
        self.quiet_looks = 0

    def look(self, value: str, may_begin: bool = True) -> None:
        self.values.append(value)
        self.quiet_looks = 0 if value != GONE else self.quiet_looks + 1
        now = self.ticks[len(self.values) - 1]
        if not self.is_open and not self.is_flapping and self._is_long_quiet():
            return
        if self.is_open and self._gone_for(now) >= CALM:
            self.is_open = False
            self._tell(now, False, True)
        changes = self._changes(now)
        if self.is_flapping and not changes:
            self.is_flapping = False
            self._tell(now, True, True)
        if may_begin and not self.is_flapping and len(changes) >= 4:
            self.is_flapping = True
            self._tell(now, True, False)
        if may_begin and not self.is_open and not self.is_flapping and self._held_for(now) >= HOLD:
            self.is_open, self.opened_look = True, len(self.values) - 1
            self._tell(now, False, False)

    def is_active(self) -> bool:
        judged = next((each for each in reversed(self.values[-5000:]) if each != UNKNOWN), GONE)
        return judged == HOLDS or self.is_open or self.is_flapping

    def _is_long_quiet(self) -> bool:
        """Nothing was the matter for so long that no rule looks back that far."""
        at = len(self.values) - 1
        first = max(0, at - self.quiet_looks + 1)
        return self.ticks[at] - self.ticks[first] > 2 * HOUR

    def _held_for(self, now: float) -> float:
        began = None
        for at in range(len(self.values) - 1, -1, -1):
            if self.values[at] != HOLDS:
                break
            began = self.ticks[at]
        return -1 if began is None else now - began

    def _gone_for(self, now: float) -> float:
        """Since the first look at which it was gone, after the last at which it held."""
        gone = None
        for at in range(len(self.values) - 1, self.opened_look, -1):
            if self.values[at] == HOLDS:
                break
            if self.values[at] == GONE:
                gone = self.ticks[at]
        return -1 if gone is None else now - gone

    def _changes(self, now: float) -> list[float]:
        """Of the last hour."""
        first = bisect_left(self.ticks, now - HOUR + 0.001)
        before = next((v for v in reversed(self.values[:first]) if v != UNKNOWN), GONE)
        found = []
        for at in range(first, len(self.values)):
            if self.values[at] not in {UNKNOWN, before}:
                before = self.values[at]
                found.append(self.ticks[at])
        return found

    def _tell(self, now: float, is_flapping: bool, is_end: bool) -> None:
        self.told.append((now, *self.who, is_flapping, is_end))
