"""Thirty days of a device, as the console and the command line are told of them."""

from agent.wire.base import Array, Tolerant


class PresenceCell(Tolerant):
    """Seconds. ``state`` is heard, partly, offline, closed or unknown."""

    state: str
    heard_s: int
    offline_s: int
    closed_s: int


class PresenceDay(PresenceCell):
    """``hours`` are those of the location's clock: 23 or 25 where it is put forward or back."""

    date: str
    requests: int
    reports: int
    hours: Array[PresenceCell]


class Presence(Tolerant):
    """``line`` has a character for each day."""

    zone: str
    line: str
    days: Array[PresenceDay]
