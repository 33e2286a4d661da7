"""Sums up the figures of each hour."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from agent.wire.payloads.history import Hour

VALUES_MAX: Final = 720
"""Maximum number of round-trip times that are kept for an hour: one every five seconds."""


@dataclass(slots=True)
class HourBuilder:
    """Collects the figures of the present hour. Call its methods in the order of time."""

    at: datetime
    """The beginning of the present hour."""
    _heartbeats: int = 0
    _failures: int = 0
    _round_trips_ms: list[float] = field(default_factory=list)
    _signal_dbm: int | None = None
    _link_errors: int | None = None
    _last_link_errors: int | None = None

    def add_heartbeat(self, round_trip_ms: float | None) -> None:
        """Add a heartbeat. ``round_trip_ms`` is None if it failed."""
        self._heartbeats += 1
        if round_trip_ms is None:
            self._failures += 1
        elif len(self._round_trips_ms) < VALUES_MAX:
            self._round_trips_ms.append(round_trip_ms)

    def add_link(self, signal_dbm: int | None, link_errors: int | None) -> None:
        """Add the signal of the Wi-Fi, and the error counter of the interface."""
        if signal_dbm is not None:
            self._signal_dbm = min(signal_dbm, self._signal_dbm or 0)  # signals are below 0 dBm
        last, self._last_link_errors = self._last_link_errors, link_errors
        if link_errors is None:
            return
        increase = link_errors  # a counter that is lower than before belongs to a new interface
        if last is None:
            increase = 0
        elif link_errors >= last:
            increase = link_errors - last
        self._link_errors = (self._link_errors or 0) + increase

    def hour(self) -> Hour | None:
        """Return the figures of the present hour so far; None if there are none."""
        if not self._heartbeats and self._signal_dbm is None and self._link_errors is None:
            return None
        return Hour(
            self.at,
            self._heartbeats,
            self._failures,
            percentile(self._round_trips_ms, 0.5),
            percentile(self._round_trips_ms, 0.95),
            self._signal_dbm,
            self._link_errors,
        )

    def begin(self, now: datetime) -> Hour | None:
        """Begin the hour of ``now``, unless it is the present hour.

        Returns the figures of the hour that ended; None if no hour ended or it has no figures.
        """
        at = start_of_hour(now)
        if at == self.at:
            return None
        finished_hour = self.hour()
        self.at, self._heartbeats, self._failures = at, 0, 0
        self._round_trips_ms, self._signal_dbm, self._link_errors = [], None, None
        return finished_hour


def join_hours(first: Hour, second: Hour) -> Hour:
    """Return the figures of two parts of one hour, such as before and after a restart.

    The round-trip times are those of the part with more replies.
    """
    busier = max(second, first, key=lambda part: part.heartbeats - part.failures)
    signals = [part.signal_dbm for part in (first, second) if part.signal_dbm is not None]
    errors = [part.link_errors for part in (first, second) if part.link_errors is not None]
    return replace(
        busier,
        heartbeats=first.heartbeats + second.heartbeats,
        failures=first.failures + second.failures,
        signal_dbm=min(signals, default=None),
        link_errors=sum(errors) if errors else None,
    )


def start_of_hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the nearest-rank percentile, rounded to a tenth; None without values."""
    if not values:
        return None
    return round(sorted(values)[math.ceil(share * len(values)) - 1], 1)
