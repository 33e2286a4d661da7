"""What is told of a location and its devices: the rules, without any input or output.

Conditions: ``offline`` and ``broken`` (of a device), ``dark`` (of a location). At each moment a
condition holds, is gone, or cannot be judged.

1. It *begins* at the first moment at which it holds after one at which it did not. A moment at
   which it cannot be judged forgets a beginning that was not told.
2. It is *told* at the first moment by which it has held for ``hold`` without a break.
3. Once told, its end is told at the first moment by which it has been gone for ``calm``. A moment
   at which it holds starts that anew; one at which it cannot be judged does not.
4. A *change* is a moment at which it holds when it was last judged to be gone, or the reverse. From
   the fourth change within an hour on it is *flapping*: that is told, and its end as soon as the
   last change is an hour old. Meanwhile the condition itself is not told; an end still is.
5. A location is dark while all of its devices that were heard before, at least two, or at least
   three and four fifths of them, are offline and became so within ``together``. Once that is told
   it lasts as long as so many are offline, whenever they became so.
6. While a location's darkness holds, as last judged, is told or flaps, no beginning is told of its
   devices being offline.
7. A device is offline only where it has to be heard (`presence.standing`), and only when somebody
   has listened for long enough (``is_settled``). ``broken`` is judged but in maintenance.
8. What is told of a device that is not bound at the location any more ends at once.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, Literal, NamedTuple
from uuid import UUID

Condition = Literal["offline", "broken", "dark"]
HOUR: Final = timedelta(hours=1)
CHANGES: Final = 4
ALL_MIN: Final = 2
MANY_MIN: Final = 3
MANY_SHARE: Final = (4, 5)


class Value(Enum):
    HOLDS = "holds"
    GONE = "gone"
    UNKNOWN = "unknown"


class Key(NamedTuple):
    """``instance_id`` None is the location itself."""

    instance_id: UUID | None
    condition: Condition


@dataclass(frozen=True, slots=True)
class Rules:
    hold: timedelta = timedelta(minutes=5)
    calm: timedelta = timedelta(minutes=5)
    together: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Watch:
    """What is remembered of a condition. ``changes`` are the last four, oldest first."""

    holds: bool = False
    began_at: datetime | None = None
    gone_at: datetime | None = None
    is_told: bool = False
    is_flapping: bool = False
    changes: tuple[datetime, ...] = ()

    def is_nothing(self, now: datetime) -> bool:
        """Tell whether it may be forgotten."""
        is_active = self.holds or self.is_told or self.is_flapping
        return not is_active and not (self.changes and now - self.changes[-1] < HOUR)


@dataclass(frozen=True, slots=True)
class Facts:
    """A location at a moment. Devices in maintenance count nowhere but in ``unjudged``.

    ``devices`` is how many are bound, ``heard`` how many of them are heard; ``offline`` are those
    that have to be heard and are not, with the moment since when; ``broken`` those whose newest
    reports name a fault; ``unjudged`` those that neither can be said of. ``unbound`` are devices
    that are watched and no more here. Of devices that are named nowhere all is well.
    """

    devices: int = 0
    heard: int = 0
    offline: Mapping[UUID, datetime] = field(default_factory=dict)
    silent: frozenset[UUID] = frozenset()
    broken: frozenset[UUID] = frozenset()
    unjudged: frozenset[UUID] = frozenset()
    unbound: frozenset[UUID] = frozenset()
    is_settled: bool = True


class Change(NamedTuple):
    """``is_end`` tells of an end. ``is_flapping`` that it is about coming and going. ``at`` is when
    it began or ended, which is before it is told."""

    key: Key
    is_flapping: bool
    is_end: bool
    at: datetime


Watches = Mapping[Key, Watch]


def judge(
    watches: Watches, facts: Facts, now: datetime, rules: Rules
) -> tuple[dict[Key, Watch], list[Change]]:
    """Return what is remembered of a location from now on, and what is to be told."""
    kept: dict[Key, Watch] = {}
    told: list[Change] = []

    def step(key: Key, value: Value, *, may_begin: bool = True) -> Watch:
        watch, changes = advance(
            key, watches.get(key, NOTHING), value, now, rules, may_begin=may_begin
        )
        told.extend(changes)
        if not watch.is_nothing(now):
            kept[key] = watch
        return watch

    location = Key(None, "dark")
    known = watches.get(location, NOTHING)
    watch = step(location, _dark(facts, known, rules))
    is_covered = watch.holds or watch.is_told or watch.is_flapping
    for key in _device_keys(watches, facts):
        if key.instance_id in facts.unbound:
            told += _ended(key, watches.get(key, NOTHING), now)
        elif key.condition == "offline":
            step(key, _offline(key.instance_id, facts), may_begin=not is_covered)
        else:
            step(key, _broken(key.instance_id, facts))
    return kept, told


NOTHING: Final = Watch()


def advance(
    key: Key, watch: Watch, value: Value, now: datetime, rules: Rules, *, may_begin: bool
) -> tuple[Watch, list[Change]]:
    """Return what is remembered of one condition after a moment, and what is to be told."""
    told: list[Change] = []
    watch = _seen(watch, value, now)
    if watch.is_told and watch.gone_at is not None and now - watch.gone_at >= rules.calm:
        told.append(Change(key, False, True, watch.gone_at))
        watch = replace(watch, is_told=False, gone_at=None)
    if watch.is_flapping and now - watch.changes[-1] >= HOUR:
        told.append(Change(key, True, True, watch.changes[-1]))
        watch = replace(watch, is_flapping=False)
    if not may_begin:
        return watch, told
    if not watch.is_flapping and _flaps(watch, now):
        told.append(Change(key, True, False, watch.changes[0]))
        watch = replace(watch, is_flapping=True)
    began_at = watch.began_at
    is_due = began_at is not None and now - began_at >= rules.hold
    if is_due and began_at is not None and not watch.is_told and not watch.is_flapping:
        told.append(Change(key, False, False, began_at))
        watch = replace(watch, is_told=True, gone_at=None)
    return watch, told


def together(begins: Sequence[datetime], devices: int, within: timedelta) -> bool:
    """Tell whether enough of ``devices`` became offline within so long of each other."""
    ordered = sorted(begins)
    for first in sorted(set(begins)):
        before = bisect_left(ordered, first)
        group = bisect_right(ordered, first + within) - before
        if _enough(group, devices - before):
            return True
    return False


def _seen(watch: Watch, value: Value, now: datetime) -> Watch:
    if value is Value.UNKNOWN:
        return watch if watch.is_told else replace(watch, began_at=None)
    holds = value is Value.HOLDS
    changes = watch.changes
    if holds != watch.holds:
        changes = (*changes, now)[-CHANGES:]
    return replace(
        watch,
        holds=holds,
        began_at=(watch.began_at or now) if holds else None,
        gone_at=None if holds or not watch.is_told else watch.gone_at or now,
        changes=changes,
    )


def _flaps(watch: Watch, now: datetime) -> bool:
    return len(watch.changes) == CHANGES and now - watch.changes[0] < HOUR


def _ended(key: Key, watch: Watch, now: datetime) -> Iterable[Change]:
    if watch.is_told:
        yield Change(key, False, True, watch.gone_at or now)
    if watch.is_flapping:
        yield Change(key, True, True, now)


def _device_keys(watches: Watches, facts: Facts) -> list[Key]:
    keys = {key for key in watches if key.instance_id is not None}
    keys |= {Key(each, "offline") for each in facts.offline}
    keys |= {Key(each, "broken") for each in facts.broken}
    return sorted(keys, key=str)


def _offline(instance_id: UUID | None, facts: Facts) -> Value:
    if instance_id in facts.silent:
        is_known = instance_id in facts.offline and facts.is_settled
        return Value.HOLDS if is_known else Value.UNKNOWN
    return Value.GONE


def _broken(instance_id: UUID | None, facts: Facts) -> Value:
    if instance_id not in facts.broken:
        return Value.GONE
    return Value.UNKNOWN if instance_id in facts.unjudged else Value.HOLDS


def _dark(facts: Facts, watch: Watch, rules: Rules) -> Value:
    offline = facts.offline if facts.is_settled else {}
    is_so = (
        _enough(len(offline), facts.devices)
        if watch.is_told
        else together(list(offline.values()), facts.devices, rules.together)
    )
    if is_so:
        return Value.HOLDS
    # Those that need not be heard may be away all the same.
    is_open_question = len(offline) < facts.devices - facts.heard
    if is_open_question and _enough(facts.devices - facts.heard, facts.devices):
        return Value.UNKNOWN
    return Value.GONE


def _enough(count: int, devices: int) -> bool:
    if count == devices:
        return count >= ALL_MIN
    share, of = MANY_SHARE
    return count >= MANY_MIN and count * of >= devices * share
