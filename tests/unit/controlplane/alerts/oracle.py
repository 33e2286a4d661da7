"""The expected alerts of a week: a second, slow implementation of the rules in docs/alerts.md.

It stores only the value of each condition at each evaluation and the times of its changes, and
derives the alerts from this history. It shares no code with the service. For example, it computes
opening hours minute by minute.
"""

from collections.abc import Callable
from datetime import timedelta
from zoneinfo import ZoneInfo

from tests.unit.controlplane.alerts.week import (
    BEGINS,
    SECONDS,
    Stretch,
    Week,
    WeekLocation,
    last_at_each,
)

ONLINE_WINDOW_S = 180
"""For this many seconds after its last heartbeat, a device is online."""
FIRE_AFTER_S = RESOLVE_AFTER_S = 300
"""For this many seconds, a condition must be active before its alert fires, and inactive before its
alert resolves."""
TOGETHER_S = 300
"""The devices of a site outage went offline within this many seconds of each other."""
HOUR_S = 3600
BREAK_AFTER_S = 60
"""If two evaluations are more than this many seconds apart, the service did not run in between."""
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
BEFORE_S = 9 * 86400
"""Opening hours are computed from this many seconds before the week begins."""
ACTIVE, INACTIVE, UNKNOWN = "active", "inactive", "unknown"

Event = tuple[float, str, str, str, bool, bool]
"""The start or the end of an alert. The fields are: time in seconds since ``BEGINS``, location,
device ("" for an alert of the location), condition, whether the condition is flapping, whether the
alert has resolved.
"""


def expected_events(week: Week, ticks: list[float]) -> list[Event]:
    """Return the events of a week in which the alerts are evaluated at ``ticks``."""
    events: list[Event] = []
    for location in week.locations:
        events += _events_of_location(location, week.service_downs, ticks)
    return sorted(events)


def _events_of_location(
    location: WeekLocation, downs: list[Stretch], ticks: list[float]
) -> list[Event]:
    opening_before = _last_opening(location)
    can_detect = _offline_detection(ticks)
    heartbeats = [device.heartbeats(downs) for device in location.devices]
    values: list[list[str]] = []
    offline_since: list[list[float | None]] = []
    in_maintenance: list[list[bool]] = []
    last_heartbeats = [last_at_each(each, ticks) for each in heartbeats]
    for device, last in zip(location.devices, last_heartbeats, strict=True):
        windows = location.maintenance + device.maintenance
        at_ticks = [
            (INACTIVE, None)
            if now - seen_at <= ONLINE_WINDOW_S
            else _offline_value(
                location,
                windows,
                seen_at,
                opening_before=opening_before,
                now=now,
                can_detect=can_detect,
            )
            for seen_at, now in zip(last, ticks, strict=True)
        ]
        values.append([value for value, _ in at_ticks])
        offline_since.append([since for _, since in at_ticks])
        in_maintenance.append(
            [_is_within(windows, t) for t in ticks] if windows else [False] * len(ticks)
        )
    outage = ConditionHistory(location.name, "", "site_outage", ticks)
    is_inhibited: list[bool] = []
    for at, (now, column) in enumerate(zip(ticks, zip(*values, strict=True), strict=True)):
        if set(column) == {INACTIVE}:
            outage.add(INACTIVE)
            is_inhibited.append(outage.needs_attention())
            continue
        not_in_maintenance = [i for i in range(len(heartbeats)) if not in_maintenance[i][at]]
        not_online = [
            i for i in not_in_maintenance if now - last_heartbeats[i][at] > ONLINE_WINDOW_S
        ]
        offline = [s for i in range(len(heartbeats)) if (s := offline_since[i][at]) is not None]
        outage.add(
            _outage_value(
                len(not_in_maintenance), len(not_online), offline, TOGETHER_S, outage.is_open
            )
        )
        is_inhibited.append(outage.needs_attention())
    events = outage.events
    for i, device in enumerate(location.devices):
        history = ConditionHistory(location.name, str(device.instance_id), "offline", ticks)
        if set(values[i]) != {INACTIVE}:
            for value, inhibited in zip(values[i], is_inhibited, strict=True):
                history.add(value, may_fire=not inhibited)
        events += history.events
        if device.broken:
            history = ConditionHistory(location.name, str(device.instance_id), "broken", ticks)
            for at, now in enumerate(ticks):
                bad = UNKNOWN if in_maintenance[i][at] else ACTIVE
                history.add(bad if _is_within(device.broken, now) else INACTIVE)
            events += history.events
    return events


def _outage_value(
    devices: int, not_online: int, offline: list[float], within_s: float, is_open: bool
) -> str:
    """Return the value of the site outage condition of a location.

    Args:
        devices: the number of devices that are not in maintenance.
        not_online: the number of these devices that are not online.
        offline: for each device that counts as offline, the time since which it is offline.
        within_s: devices of one outage went offline within this many seconds of each other.
        is_open: whether the alert is firing.
    """

    def enough(some: int, of: int) -> bool:
        """Return whether ``some`` devices, out of ``of`` devices, are enough for a site outage."""
        return (some == of and some >= 2) or (some >= 3 and some / of >= 0.8)

    if is_open and enough(len(offline), devices):
        return ACTIVE
    for first in offline:
        offline_together = [each for each in offline if 0 <= each - first <= within_s]
        offline_earlier = [each for each in offline if each < first]
        if not is_open and enough(len(offline_together), devices - len(offline_earlier)):
            return ACTIVE
    if len(offline) < not_online and enough(not_online, devices):
        return UNKNOWN
    return INACTIVE


def _offline_value(
    location: WeekLocation,
    windows: list[Stretch],
    last: float,
    *,
    opening_before: Callable[[float], float | None],
    now: float,
    can_detect: Callable[[float], bool],
) -> tuple[str, float | None]:
    """Return the value of the offline condition of a device that is not online.

    The second item is the time since which the device counts as offline; None if the value of the
    condition is unknown.
    """
    if not can_detect(now):
        return UNKNOWN, None
    if _is_within(windows, now):
        return UNKNOWN, None
    since = last
    if location.lines:
        open_since = opening_before(now)
        if open_since is None:
            return UNKNOWN, None
        since = max(since, open_since)
    since = max([since, *(end for _, end in windows if end <= now)])
    return (ACTIVE, since) if now - since > ONLINE_WINDOW_S else (UNKNOWN, None)


def _offline_detection(ticks: list[float]) -> Callable[[float], bool]:
    """Return a function that takes a tick and returns whether offline devices can be detected.

    This requires that the service has run for more than ``ONLINE_WINDOW_S`` seconds without a
    break. A break is a time of more than ``BREAK_AFTER_S`` seconds between two ticks.
    """
    resumed: dict[float, float] = {}
    last = before = ticks[0]
    for now in ticks:
        if now - before > BREAK_AFTER_S:
            last = now
        before = now
        resumed[now] = last
    return lambda now: now - resumed[now] > ONLINE_WINDOW_S


def _last_opening(location: WeekLocation) -> Callable[[float], float | None]:
    """Return a function that takes a time and returns when the location last opened.

    The function returns None while the location is closed, and for a location without opening
    hours. The openings are computed from the local time of each minute.
    """
    if not location.lines:
        return lambda now: None
    zone = ZoneInfo(location.zone)
    week = [_parse_hours(line) for line in location.lines]
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


def _parse_hours(line: str) -> tuple[list[int], int, int]:
    """Return the weekdays of a line of opening hours, and its start and end as minutes of the day.

    Monday is 0. An end that is not after the start is on the following day.
    """
    days, hours = line.split(" ")
    first, _, last = days.partition("-")
    start, end = (int(each[:2]) * 60 + int(each[3:]) for each in hours.split("-"))
    return list(range(DAYS.index(first), DAYS.index(last or first) + 1)), start, end


def _is_within(stretches: list[Stretch], now: float) -> bool:
    return any(start <= now < end for start, end in stretches)


class ConditionHistory:
    """The history of one condition: its value at each evaluation, and the alerts it caused.

    ``known_value`` is the last value other than unknown, and ``changed_at`` are the times at which
    it changed. ``is_open``: the alert is firing, since the evaluation ``fired_at_index``.
    ``is_flapping``: the alert that reports flapping is firing.
    """

    def __init__(self, location: str, device: str, condition: str, ticks: list[float]) -> None:
        self.subject = (location, device, condition)
        self.ticks = ticks
        self.values: list[str] = []
        self.known_value = INACTIVE
        self.changed_at: list[float] = []
        self.events: list[Event] = []
        self.is_open = self.is_flapping = False
        self.fired_at_index = 0

    def add(self, value: str, may_fire: bool = True) -> None:
        now = self.ticks[len(self.values)]
        self.values.append(value)
        if value not in {UNKNOWN, self.known_value}:
            self.known_value = value
            self.changed_at.append(now)
        changes = self._changes(now)
        if not (changes or self.is_open or self.is_flapping or value == ACTIVE):
            return
        if self.is_open and self._inactive_for(now) >= RESOLVE_AFTER_S:
            self.is_open = False
            self._report(now, False, True)
        if self.is_flapping and not changes:
            self.is_flapping = False
            self._report(now, True, True)
        if may_fire and not self.is_flapping and len(changes) >= 4:
            self.is_flapping = True
            self._report(now, True, False)
        if (
            may_fire
            and not self.is_open
            and not self.is_flapping
            and self._active_for(now) >= FIRE_AFTER_S
        ):
            self.is_open, self.fired_at_index = True, len(self.values) - 1
            self._report(now, False, False)

    def needs_attention(self) -> bool:
        """Return whether the condition is active or an alert of it is firing."""
        return self.known_value == ACTIVE or self.is_open or self.is_flapping

    def _active_for(self, now: float) -> float:
        """Return for how many seconds the condition has been active; -1 if it is not active."""
        since = None
        for at in range(len(self.values) - 1, -1, -1):
            if self.values[at] != ACTIVE:
                break
            since = self.ticks[at]
        return -1 if since is None else now - since

    def _inactive_for(self, now: float) -> float:
        """Return the seconds since the first inactive evaluation after the last active one.

        Returns -1 if there is no such evaluation.
        """
        since = None
        for at in range(len(self.values) - 1, self.fired_at_index, -1):
            if self.values[at] == ACTIVE:
                break
            if self.values[at] == INACTIVE:
                since = self.ticks[at]
        return -1 if since is None else now - since

    def _changes(self, now: float) -> list[float]:
        """Return the times in the last hour at which the condition became active or inactive."""
        return [each for each in self.changed_at if now - each < HOUR_S]

    def _report(self, now: float, is_flapping: bool, is_resolved: bool) -> None:
        self.events.append((now, *self.subject, is_flapping, is_resolved))
