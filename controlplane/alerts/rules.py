"""The alert rules: which alerts of a location fire and resolve. Pure: no input or output.

Conditions are ``offline`` and ``broken`` of a device, and ``site_outage`` of a location. Each
evaluation finds a condition active, inactive or unknown.

1. A condition *begins* at the first evaluation that finds it active after one that did not. If an
   evaluation finds it unknown, a beginning without an alert is dropped.
2. An alert *fires* once the condition has been active for ``fire_after`` without a break.
3. A firing alert *resolves* once the condition has been inactive for ``resolve_after``. Finding it
   active restarts that time; finding it unknown does not.
4. A *change* is an evaluation that finds it active when it was last found inactive, or the reverse.
   At the fourth change within an hour it is *flapping*: an alert about that fires, and resolves as
   soon as the last change is an hour old. Meanwhile the condition's own alert does not fire, but it
   may resolve.
5. A location has an outage while all of its devices that were online before, at least two, or at
   least three and four fifths of them, are offline and became so within ``outage_window``. Once the
   alert fires, the outage lasts as long as so many are offline, whenever they became so.
6. While the outage of a location is active, firing or flapping, no alert fires because its devices
   are offline.
7. A device is offline only while it should be online (`devices.locations.status`), and only once
   monitoring has run for long enough (``is_settled``). ``broken`` is unknown during maintenance.
8. The alerts of a device that is no longer bound at the location resolve at once.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, Literal, NamedTuple
from uuid import UUID

Condition = Literal["offline", "broken", "site_outage"]
HOUR: Final = timedelta(hours=1)
CHANGES: Final = 4
ALL_MIN: Final = 2
MANY_MIN: Final = 3
MANY_SHARE: Final = (4, 5)


class Value(Enum):
    """What an evaluation finds of a condition."""

    ACTIVE = "active"
    INACTIVE = "inactive"
    UNKNOWN = "unknown"


class Key(NamedTuple):
    """A condition of a device, or of the location itself: then ``instance_id`` is None."""

    instance_id: UUID | None
    condition: Condition


@dataclass(frozen=True, slots=True)
class Rules:
    """The durations of the rules above."""

    fire_after: timedelta = timedelta(minutes=5)
    resolve_after: timedelta = timedelta(minutes=5)
    outage_window: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class ConditionState:
    """The state of a condition between two evaluations.

    Attributes:
        inactive_since: only set while the alert is firing.
        changes: the times of the last four changes, oldest first.
    """

    is_active: bool = False
    active_since: datetime | None = None
    inactive_since: datetime | None = None
    is_firing: bool = False
    is_flapping: bool = False
    changes: tuple[datetime, ...] = ()

    @property
    def needs_attention(self) -> bool:
        return self.is_active or self.is_firing or self.is_flapping

    def is_disposable(self, now: datetime) -> bool:
        """Return whether no later evaluation needs this state."""
        return not self.needs_attention and not (self.changes and now - self.changes[-1] < HOUR)


@dataclass(frozen=True, slots=True)
class Facts:
    """A location at an evaluation. Devices that no set names are online and not broken.

    Attributes:
        devices: number of bound devices without those in maintenance.
        online: how many of these are online.
        offline: devices that should be online and are not, and since when.
        not_online: these and other devices that are not online.
        broken: devices whose newest reports contain a fault.
        in_maintenance: devices whose ``broken`` is unknown.
        unbound: devices that have a state here and are no longer bound here.
        is_settled: whether monitoring has run long enough for each device to send a heartbeat.
    """

    devices: int = 0
    online: int = 0
    offline: Mapping[UUID, datetime] = field(default_factory=dict)
    not_online: frozenset[UUID] = frozenset()
    broken: frozenset[UUID] = frozenset()
    in_maintenance: frozenset[UUID] = frozenset()
    unbound: frozenset[UUID] = frozenset()
    is_settled: bool = True


class Transition(NamedTuple):
    """An alert that fires or resolves. ``at`` is when its condition began or ended."""

    key: Key
    is_flapping: bool
    is_resolved: bool
    at: datetime


States = Mapping[Key, ConditionState]
NO_STATE: Final = ConditionState()


def evaluate(
    states: States, facts: Facts, now: datetime, rules: Rules
) -> tuple[dict[Key, ConditionState], list[Transition]]:
    """Return the new states of a location's conditions, and the alerts that fire or resolve."""
    kept: dict[Key, ConditionState] = {}
    transitions: list[Transition] = []

    def step(key: Key, value: Value, *, may_fire: bool = True) -> ConditionState:
        before = states.get(key, NO_STATE)
        state, result = advance(key, before, value, now, rules, may_fire=may_fire)
        transitions.extend(result)
        if not state.is_disposable(now):
            kept[key] = state
        return state

    location = Key(None, "site_outage")
    outage = step(location, _site_outage(facts, states.get(location, NO_STATE), rules))
    for key in _device_keys(states, facts):
        if key.instance_id in facts.unbound:
            transitions += _resolve_now(key, states.get(key, NO_STATE), now)
        elif key.condition == "offline":
            step(key, _offline(key.instance_id, facts), may_fire=not outage.needs_attention)
        else:
            step(key, _broken(key.instance_id, facts))
    return kept, transitions


def advance(
    key: Key, state: ConditionState, value: Value, now: datetime, rules: Rules, *, may_fire: bool
) -> tuple[ConditionState, list[Transition]]:
    """Return the new state of one condition, and its alerts that fire or resolve."""
    transitions: list[Transition] = []
    state = _update(state, value, now)
    inactive_since = state.inactive_since if state.is_firing else None
    if inactive_since is not None and now - inactive_since >= rules.resolve_after:
        transitions.append(Transition(key, False, True, inactive_since))
        state = replace(state, is_firing=False, inactive_since=None)
    if state.is_flapping and now - state.changes[-1] >= HOUR:
        transitions.append(Transition(key, True, True, state.changes[-1]))
        state = replace(state, is_flapping=False)
    if not may_fire:
        return state, transitions
    if not state.is_flapping and _flaps(state, now):
        transitions.append(Transition(key, True, False, state.changes[0]))
        state = replace(state, is_flapping=True)
    active_since = None if state.is_firing or state.is_flapping else state.active_since
    if active_since is not None and now - active_since >= rules.fire_after:
        transitions.append(Transition(key, False, False, active_since))
        state = replace(state, is_firing=True, inactive_since=None)
    return state, transitions


def together(begins: Sequence[datetime], devices: int, within: timedelta) -> bool:
    """Return whether enough of ``devices`` became offline within a period of that length."""
    ordered = sorted(begins)
    for first in sorted(set(begins)):
        before = bisect_left(ordered, first)
        group = bisect_right(ordered, first + within) - before
        if _enough(group, devices - before):
            return True
    return False


def _update(state: ConditionState, value: Value, now: datetime) -> ConditionState:
    if value is Value.UNKNOWN:
        return state if state.is_firing else replace(state, active_since=None)
    is_active = value is Value.ACTIVE
    changes = state.changes
    if is_active != state.is_active:
        changes = (*changes, now)[-CHANGES:]
    return replace(
        state,
        is_active=is_active,
        active_since=(state.active_since or now) if is_active else None,
        inactive_since=None if is_active or not state.is_firing else state.inactive_since or now,
        changes=changes,
    )


def _flaps(state: ConditionState, now: datetime) -> bool:
    return len(state.changes) == CHANGES and now - state.changes[0] < HOUR


def _resolve_now(key: Key, state: ConditionState, now: datetime) -> Iterable[Transition]:
    if state.is_firing:
        yield Transition(key, False, True, state.inactive_since or now)
    if state.is_flapping:
        yield Transition(key, True, True, now)


def _device_keys(states: States, facts: Facts) -> list[Key]:
    keys = {key for key in states if key.instance_id is not None}
    keys |= {Key(each, "offline") for each in facts.offline}
    keys |= {Key(each, "broken") for each in facts.broken}
    return sorted(keys, key=str)


def _offline(instance_id: UUID | None, facts: Facts) -> Value:
    if instance_id not in facts.not_online:
        return Value.INACTIVE
    is_known = instance_id in facts.offline and facts.is_settled
    return Value.ACTIVE if is_known else Value.UNKNOWN


def _broken(instance_id: UUID | None, facts: Facts) -> Value:
    if instance_id not in facts.broken:
        return Value.INACTIVE
    return Value.UNKNOWN if instance_id in facts.in_maintenance else Value.ACTIVE


def _site_outage(facts: Facts, state: ConditionState, rules: Rules) -> Value:
    offline = facts.offline if facts.is_settled else {}
    is_active = (
        _enough(len(offline), facts.devices)
        if state.is_firing
        else together(list(offline.values()), facts.devices, rules.outage_window)
    )
    if is_active:
        return Value.ACTIVE
    # Devices that need not be online may be without power, too.
    not_online = facts.devices - facts.online
    if len(offline) < not_online and _enough(not_online, facts.devices):
        return Value.UNKNOWN
    return Value.INACTIVE


def _enough(count: int, devices: int) -> bool:
    if count == devices:
        return count >= ALL_MIN
    share, of = MANY_SHARE
    return count >= MANY_MIN and count * of >= devices * share
