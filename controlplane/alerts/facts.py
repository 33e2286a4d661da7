"""What is known of a location at a moment, of all its devices or of those that need a look."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from controlplane.alerts.rules import Facts
from controlplane.devices.locations.status import Place, standing


@dataclass(frozen=True, slots=True)
class Seen:
    """A device that is bound at the location."""

    instance_id: UUID
    last_seen_at: datetime
    is_broken: bool


@dataclass(frozen=True, slots=True)
class Listening:
    """Since when somebody has listened without a break, of the service or of its host."""

    judged_at: datetime
    resumed_at: datetime

    def go_on(self, now: datetime, break_after: timedelta) -> "Listening":
        is_break = now - self.judged_at > break_after
        return Listening(now, now if is_break else self.resumed_at)

    def is_settled(self, now: datetime, window: timedelta) -> bool:
        """Tell whether all had the time to be heard."""
        return now - self.resumed_at > window


def facts_of(
    place: Place,
    seen: Iterable[Seen],
    now: datetime,
    window: timedelta,
    *,
    is_settled: bool = True,
    others: int = 0,
    others_heard: int = 0,
    unbound: frozenset[UUID] = frozenset(),
) -> Facts:
    """``others`` are the devices that are not in ``seen``: none of them is offline or broken."""
    devices, heard = others, others_heard
    offline: dict[UUID, datetime] = {}
    silent, broken, unjudged = set(), set(), set()
    for each in seen:
        found = standing(place, each.instance_id, each.last_seen_at, now, window)
        is_maintained = found.until is not None
        devices += not is_maintained
        heard += found.state == "heard" and not is_maintained
        if found.state != "heard":
            silent.add(each.instance_id)
        if found.since is not None:
            offline[each.instance_id] = found.since
        if each.is_broken:
            broken.add(each.instance_id)
        if is_maintained:
            unjudged.add(each.instance_id)
    return Facts(
        devices=devices,
        heard=heard,
        offline=offline,
        silent=frozenset(silent),
        broken=frozenset(broken),
        unjudged=frozenset(unjudged),
        unbound=unbound,
        is_settled=is_settled,
    )
