"""The facts about a location at one evaluation, for the alert rules."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final
from uuid import UUID

from controlplane.alerts.rules import Facts
from controlplane.devices.locations.status import Schedule, status_of

NO_CONDITIONS: Final[Mapping[str, frozenset[UUID]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class BoundDevice:
    """A device that is bound at the location."""

    instance_id: UUID
    last_seen_at: datetime
    is_broken: bool


@dataclass(frozen=True, slots=True)
class Monitoring:
    """The times of the evaluations.

    Attributes:
        checked_at: when devices were last evaluated.
        resumed_at: when evaluations started again after the last pause of the service or its host.
    """

    checked_at: datetime
    resumed_at: datetime

    def after_evaluation(self, now: datetime, pause: timedelta) -> "Monitoring":
        """Return the times after an evaluation at ``now``.

        If the previous evaluation is longer ago than ``pause``, ``now`` is the new ``resumed_at``.
        """
        return Monitoring(now, now if now - self.checked_at > pause else self.resumed_at)

    def can_detect_offline(self, now: datetime, window: timedelta) -> bool:
        """Return whether each device has had the time to send a heartbeat since the last pause."""
        return now - self.resumed_at > window


def facts_of(
    schedule: Schedule,
    bound: Iterable[BoundDevice],
    now: datetime,
    window: timedelta,
    *,
    can_detect_offline: bool = True,
    other_count: int = 0,
    other_online_count: int = 0,
    unbound: frozenset[UUID] = frozenset(),
    active: Mapping[str, frozenset[UUID]] = NO_CONDITIONS,
) -> Facts:
    """Return the facts about a location.

    Args:
        bound: the bound devices that the evaluation reads: those that are offline, broken or in a
            maintenance window of their own, and those for which a condition is active or
            has a stored state.
        window: longest time between two heartbeats of a device that is online.
        can_detect_offline: see `Facts`.
        other_count: number of the location's bound devices that are not in ``bound``.
        other_online_count: how many of these devices are online.
        unbound: see `Facts`.
        active: devices for which conditions other than ``offline`` and ``broken`` are active, by
            the name of the rule.
    """
    device_count, online_count = other_count, other_online_count
    # ``in_maintenance`` contains None if the whole location is in maintenance. Then no device is
    # counted.
    if None in schedule.in_maintenance(now):
        device_count = online_count = 0
    offline: dict[UUID, datetime] = {}
    not_online, broken, in_maintenance = set(), set(), set()
    for each in bound:
        status = status_of(schedule, each.instance_id, each.last_seen_at, now, window)
        is_in_maintenance = status.until is not None
        device_count += not is_in_maintenance
        online_count += status.state == "online" and not is_in_maintenance
        if status.state != "online":
            not_online.add(each.instance_id)
        if status.since is not None:
            offline[each.instance_id] = status.since
        if each.is_broken:
            broken.add(each.instance_id)
        if is_in_maintenance:
            in_maintenance.add(each.instance_id)
    return Facts(
        device_count=device_count,
        online_count=online_count,
        offline=offline,
        not_online=frozenset(not_online),
        broken=frozenset(broken),
        active=active,
        in_maintenance=frozenset(in_maintenance),
        unbound=unbound,
        can_detect_offline=can_detect_offline,
    )
