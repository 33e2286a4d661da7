"""The expected notifications of a simulated week, derived from its expected alerts.

This module shares no code with the service. It takes the alerts of `oracle`, and applies silences,
matchers and grouping as docs/alerts.md describes them.
"""

from collections import Counter
from dataclasses import dataclass

from tests.unit.controlplane.alerts.oracle import Event

Subject = tuple[str, str, str, bool]
"""Location, device ("" if the alert is about the location itself), condition, and whether the
condition is flapping."""
Notification = tuple[float, str, tuple[tuple[Subject, bool], ...]]
"""A notification: the time in seconds, the route, and its alerts in order of their subjects, each
with whether it has resolved."""
Message = tuple[float, Subject, bool, float]
"""The start or the end of an alert: when the receivers should be notified, the subject of the
alert, whether it has resolved, and when it fired. The time at which it fired distinguishes alerts
of the same subject."""


@dataclass(frozen=True)
class WeekRoute:
    """A simulated route. Empty ``severities`` or ``locations`` match all alerts.

    The route groups alerts by location and condition. Notifications of a group are at least
    ``interval_s`` seconds apart. With 0, the start and the end of each alert are separate
    notifications.
    """

    name: str
    severities: tuple[str, ...] = ()
    locations: tuple[str, ...] = ()
    interval_s: int = 0

    def matches(self, subject: Subject) -> bool:
        severity = "critical" if subject[2] == "site_outage" else "warning"
        return (not self.severities or severity in self.severities) and (
            not self.locations or subject[0] in self.locations
        )


@dataclass(frozen=True)
class WeekSilence:
    """A simulated silence. An empty ``location``, ``device`` or ``rule`` matches every alert."""

    start: float
    end: float
    location: str = ""
    device: str = ""
    rule: str = ""

    def covers(self, subject: Subject, at: float) -> bool:
        pairs = zip((self.location, self.device, self.rule), subject, strict=False)
        return self.start <= at < self.end and all(own in {"", other} for own, other in pairs)


def expected_notifications(
    events: list[Event],
    routes: list[WeekRoute],
    silences: list[WeekSilence],
    ticks: list[float],
) -> Counter[Notification]:
    """Return each expected notification with the number of times that it must be sent.

    ``ticks`` are the times at which the service evaluates alerts and sends notifications.
    """
    messages = _messages(events, silences, ticks)
    results: Counter[Notification] = Counter()
    for route in routes:
        matching = [each for each in messages if route.matches(each[1])]
        if route.interval_s == 0:
            results.update(
                (at, route.name, ((subject, is_resolved),))
                for at, subject, is_resolved, _ in matching
            )
            continue
        for key in {(subject[0], subject[2]) for _, subject, *_ in matching}:
            group = [each for each in matching if (each[1][0], each[1][2]) == key]
            results.update(_group_notifications(route, group, ticks))
    return results


def _messages(
    events: list[Event], silences: list[WeekSilence], ticks: list[float]
) -> list[Message]:
    """Return the messages about each alert, without grouping.

    An alert that is silenced all the time has no messages.
    """
    results = []
    for index, (fired, *rest, is_resolved) in enumerate(events):
        if is_resolved:
            continue
        subject: Subject = (rest[0], rest[1], rest[2], rest[3])  # type: ignore[assignment]
        resolved = next(
            (each[0] for each in events[index + 1 :] if each[1:] == (*subject, True)), None
        )
        notified = next(
            (
                at
                for at in ticks
                if at >= fired and not any(each.covers(subject, at) for each in silences)
            ),
            None,
        )
        if notified is None or (resolved is not None and notified >= resolved):
            continue
        results.append((notified, subject, False, fired))
        if resolved is not None:
            results.append((resolved, subject, True, fired))
    return sorted(results)


def _group_notifications(
    route: WeekRoute, group: list[Message], ticks: list[float]
) -> list[Notification]:
    """Return the notifications of one group.

    After a notification is due, the next one is due ``interval_s`` seconds later at the earliest.
    """
    results: list[Notification] = []
    pending = list(group)
    allowed_at = float("-inf")
    while pending:
        first = pending[0][0]
        due_at = max(first, allowed_at)
        at = next((tick for tick in ticks if tick >= due_at), None)
        if at is None:
            break
        together = [each for each in pending if each[0] <= at]
        newest = {(subject, fired): is_resolved for _, subject, is_resolved, fired in together}
        alerts = sorted((subject, is_resolved) for (subject, _), is_resolved in newest.items())
        results.append((at, route.name, tuple(alerts)))
        pending = pending[len(together) :]
        allowed_at = due_at + route.interval_s
    return results
