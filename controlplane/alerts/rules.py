"""The alert rules: which alerts of a location fire and resolve. All functions are pure.

Each condition (`rule.Condition`) belongs to a device, except ``site_outage``, which belongs to a
location. Each evaluation finds a condition active, inactive or unknown.

1. A condition *begins* at an evaluation that finds it active, if it was inactive before. As long as
   its alert has not fired, an unknown condition counts as inactive here. Once the alert is firing,
   an unknown condition keeps its last value, active or inactive.
2. An alert *fires* when all evaluations during ``fire_after`` have found the condition active.
3. A firing alert *resolves* once the condition has been inactive for ``resolve_after``. This time
   starts again after an evaluation that finds the condition active, but not after one that finds
   the condition unknown.
4. A condition *changes* when it becomes active or inactive. Evaluations that find it unknown are
   ignored here. At the fourth change within an hour, the condition is *flapping*, and an alert
   about the flapping fires. This alert resolves when the last change is an hour old. While a
   condition is flapping, its own alert does not fire, but it can resolve.
5. A location has a site outage while *enough* of its devices are offline, and these devices became
   offline within ``outage_window`` of each other. Two or more devices are enough if no
   other device was online before. Three or more devices are enough if they are at least four
   fifths of the devices that were online before. Once the alert has fired, the outage lasts as
   long as enough devices are offline, no matter when they became offline.
6. While the site outage of a location is active, firing or flapping, it *inhibits* alerts of the
   location's devices with the conditions `INHIBITED_BY_OUTAGE`: these alerts do not fire. In the
   same way, the condition ``offline`` of a device inhibits its alert ``no_report_for``.
7. A device is offline only if it should be online (`devices.locations.status`), and only after
   monitoring has run for long enough (``can_detect_offline``). If a device is in maintenance, its
   active conditions are unknown. The condition ``no_report_for`` is also unknown while the device
   is not online and need not be online.
8. The alerts of a device that is no longer bound at the location, and the alerts of a rule that is
   no longer enabled, resolve at once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, NamedTuple
from uuid import UUID

from controlplane.alerts.rule import DEFAULT_RULES, Rule, parse_name
from controlplane.alerts.site_outage import is_enough, went_offline_together

HOUR: Final = timedelta(hours=1)
FLAPPING_CHANGES: Final = 4
"""A condition is flapping if it changes this many times within an hour."""
INHIBITED_BY_OUTAGE: Final = frozenset({"offline", "no_report_for", "finding"})
"""The conditions of devices that a site outage inhibits."""


class Value(Enum):
    """The value of a condition in one evaluation."""

    ACTIVE = "active"
    INACTIVE = "inactive"
    UNKNOWN = "unknown"


class Key(NamedTuple):
    """A condition of a device, or of the location itself if ``instance_id`` is None.

    ``condition`` is the name of the rule (`rule.Rule.name`).
    """

    instance_id: UUID | None
    condition: str


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a location, and the durations that the docstring of this module uses.

    Attributes:
        fire_after: for rules without a duration of their own.
        by_name: the enabled rules.
    """

    fire_after: timedelta = timedelta(minutes=5)
    resolve_after: timedelta = timedelta(minutes=5)
    outage_window: timedelta = timedelta(minutes=5)
    by_name: Mapping[str, Rule] = field(default_factory=lambda: DEFAULT_RULES)

    def fire_after_of(self, name: str) -> timedelta:
        fire_after = self.by_name[name].fire_after
        return self.fire_after if fire_after is None else fire_after


@dataclass(frozen=True, slots=True)
class ConditionState:
    """The state of a condition between two evaluations.

    Attributes:
        is_active: whether the condition is active. An evaluation that finds it unknown does not
            change this.
        active_since: when the condition began (rule 1 of the module). None if it is inactive, or if
            an evaluation has found it unknown before its alert fired.
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
    """The facts about a location in one evaluation.

    A device that is in none of the collections below is online and not broken.

    Attributes:
        device_count: number of bound devices, without those in maintenance.
        online_count: how many of these devices are online.
        offline: devices that should be online and are not, each with its `DeviceStatus.since`.
        not_online: all devices that are not online, even if they need not be online.
        broken: devices whose newest reports contain a fault.
        active: devices for which conditions other than ``offline`` and ``broken`` are active, by
            the name of the rule.
        in_maintenance: devices in a maintenance window.
        unbound: devices that have a stored state at the location but are no longer bound to it.
        can_detect_offline: whether monitoring has run long enough for each device to send a
            heartbeat.
    """

    device_count: int = 0
    online_count: int = 0
    offline: Mapping[UUID, datetime] = field(default_factory=dict)
    not_online: frozenset[UUID] = frozenset()
    broken: frozenset[UUID] = frozenset()
    active: Mapping[str, frozenset[UUID]] = field(default_factory=dict)
    in_maintenance: frozenset[UUID] = frozenset()
    unbound: frozenset[UUID] = frozenset()
    can_detect_offline: bool = True


class Transition(NamedTuple):
    """An alert that fires or resolves.

    ``is_flapping`` means that the alert is about the flapping of the condition. ``at`` is when the
    condition, or its flapping, began or ended.
    """

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
    new_states: dict[Key, ConditionState] = {}
    transitions: list[Transition] = []

    def step(key: Key, value: Value, *, may_fire: bool = True) -> ConditionState:
        before = states.get(key, NO_STATE)
        state, result = advance(key, before, value, now, rules, may_fire=may_fire)
        transitions.extend(result)
        if not state.is_disposable(now):
            new_states[key] = state
        return state

    is_outage = False
    outage_key = Key(None, "site_outage")
    if outage_key.condition in rules.by_name:
        value = _site_outage_value(facts, states.get(outage_key, NO_STATE), rules)
        is_outage = step(outage_key, value).needs_attention
    else:
        transitions += _resolve_now(outage_key, states.get(outage_key, NO_STATE), now)
    offline: set[UUID | None] = set()
    for key in _device_keys(states, facts):
        condition, _ = parse_name(key.condition)
        if key.instance_id in facts.unbound or key.condition not in rules.by_name:
            transitions += _resolve_now(key, states.get(key, NO_STATE), now)
            continue
        is_inhibited = (is_outage and condition in INHIBITED_BY_OUTAGE) or (
            condition == "no_report_for" and key.instance_id in offline
        )
        state = step(key, _value(key, condition, facts), may_fire=not is_inhibited)
        if condition == "offline" and state.needs_attention:
            offline.add(key.instance_id)
    return new_states, transitions


def advance(
    key: Key, state: ConditionState, value: Value, now: datetime, rules: Rules, *, may_fire: bool
) -> tuple[ConditionState, list[Transition]]:
    """Return the new state of one condition, and its alerts that fire or resolve."""
    transitions: list[Transition] = []
    state = _update(state, value, now)
    inactive_since = state.inactive_since if state.is_firing else None
    if inactive_since is not None and now - inactive_since >= rules.resolve_after:
        transitions.append(Transition(key, is_flapping=False, is_resolved=True, at=inactive_since))
        state = replace(state, is_firing=False, inactive_since=None)
    if state.is_flapping and now - state.changes[-1] >= HOUR:
        transitions.append(
            Transition(key, is_flapping=True, is_resolved=True, at=state.changes[-1])
        )
        state = replace(state, is_flapping=False)
    if not may_fire:
        return state, transitions
    if not state.is_flapping and _flaps(state, now):
        transitions.append(
            Transition(key, is_flapping=True, is_resolved=False, at=state.changes[0])
        )
        state = replace(state, is_flapping=True)
    active_since = None if state.is_firing or state.is_flapping else state.active_since
    fire_after = rules.fire_after_of(key.condition)
    if active_since is not None and now - active_since >= fire_after:
        transitions.append(Transition(key, is_flapping=False, is_resolved=False, at=active_since))
        state = replace(state, is_firing=True, inactive_since=None)
    return state, transitions


def _update(state: ConditionState, value: Value, now: datetime) -> ConditionState:
    if value is Value.UNKNOWN:
        return state if state.is_firing else replace(state, active_since=None)
    is_active = value is Value.ACTIVE
    changes = state.changes
    if is_active != state.is_active:
        changes = (*changes, now)[-FLAPPING_CHANGES:]
    inactive_since = None
    if state.is_firing and not is_active:
        inactive_since = state.inactive_since or now
    return replace(
        state,
        is_active=is_active,
        active_since=(state.active_since or now) if is_active else None,
        inactive_since=inactive_since,
        changes=changes,
    )


def _flaps(state: ConditionState, now: datetime) -> bool:
    return len(state.changes) == FLAPPING_CHANGES and now - state.changes[0] < HOUR


def _resolve_now(key: Key, state: ConditionState, now: datetime) -> Iterable[Transition]:
    if state.is_firing:
        at = state.inactive_since or now
        yield Transition(key, is_flapping=False, is_resolved=True, at=at)
    if state.is_flapping:
        yield Transition(key, is_flapping=True, is_resolved=True, at=now)


def _device_keys(states: States, facts: Facts) -> list[Key]:
    """Return the keys of the devices' conditions, sorted by device.

    The condition ``offline`` of a device comes first, because it can inhibit ``no_report_for``.
    """
    keys = {key for key in states if key.instance_id is not None}
    keys |= {Key(each, "offline") for each in facts.offline}
    keys |= {Key(each, "broken") for each in facts.broken}
    keys |= {Key(each, name) for name, devices in facts.active.items() for each in devices}
    return sorted(keys, key=lambda k: (str(k.instance_id), k.condition != "offline", k.condition))


def _value(key: Key, condition: str, facts: Facts) -> Value:
    if condition == "offline":
        return _offline_value(key.instance_id, facts)
    active = facts.broken if condition == "broken" else facts.active.get(key.condition, ())
    if key.instance_id not in active:
        return Value.INACTIVE
    if key.instance_id in facts.in_maintenance:
        return Value.UNKNOWN
    if condition == "no_report_for" and key.instance_id in facts.not_online:
        return _offline_value(key.instance_id, facts)
    return Value.ACTIVE


def _offline_value(instance_id: UUID | None, facts: Facts) -> Value:
    if instance_id not in facts.not_online:
        return Value.INACTIVE
    is_known = instance_id in facts.offline and facts.can_detect_offline
    return Value.ACTIVE if is_known else Value.UNKNOWN


def _site_outage_value(facts: Facts, state: ConditionState, rules: Rules) -> Value:
    offline = facts.offline if facts.can_detect_offline else {}
    is_active = (
        is_enough(len(offline), facts.device_count)
        if state.is_firing
        else went_offline_together(list(offline.values()), facts.device_count, rules.outage_window)
    )
    if is_active:
        return Value.ACTIVE
    # Enough devices are not online, but some of them need not be online, for example because the
    # location is closed. These devices might be part of the outage, so its end is unknown.
    not_online_count = facts.device_count - facts.online_count
    if len(offline) < not_online_count and is_enough(not_online_count, facts.device_count):
        return Value.UNKNOWN
    return Value.INACTIVE
