"""One look at the fleet: who is heard, what that means by the rules, and what is told of it."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import ColumnElement, func, select, text, tuple_
from sqlalchemy.orm import Session

from controlplane.alerts.facts import Listening, Seen, facts_of
from controlplane.alerts.rules import Change, Rules, judge
from controlplane.alerts.store import About, Memory, remember, remembered, tell
from controlplane.devices.liveness import note_break, note_silence
from controlplane.devices.locations.locations import At, places, zones
from controlplane.devices.priority import HEARD, SILENT, UNHEARD, Priority
from controlplane.settings import HEARTBEAT_S, Settings
from controlplane.storage.tables import Device, Report
from controlplane.storage.watch_tables import Listened

TURN: Final = 0x6E6F7469
"""An advisory lock that nobody else takes: "noti"."""
IDS_A_STEP: Final = 500


@dataclass(slots=True)
class Look:
    """``moved`` are the devices whose place in the lists is another, by organization."""

    moved: dict[str, set[int]] = field(default_factory=dict)
    told: int = 0


def look(session: Session, now: datetime, settings: Settings) -> Look:
    """Look once. Of several processes one looks at a time; the others have nothing to do."""
    if not _has_turn(session):
        return Look()
    listening = _listen(session, now, settings)
    if not listening.is_settled(now, settings.offline_window):
        # While the service was down nobody could be heard: all get the time to return.
        return Look(told=_tell(session, now, settings, is_settled=False))
    moved = note_silence(session, now, settings.offline_window)
    return Look(moved, _tell(session, now, settings, is_settled=True))


def _has_turn(session: Session) -> bool:
    if session.get_bind().dialect.name != "postgresql":
        return True  # SQLite has one writer anyway
    asked = text("SELECT pg_try_advisory_xact_lock(:key)")
    return bool(session.execute(asked, {"key": TURN}).scalar())


def _listen(session: Session, now: datetime, settings: Settings) -> Listening:
    """Note that somebody listens. In a pause longer than a heartbeat none was heard."""
    row = session.get(Listened, 1)
    if row is None:
        session.add(Listened(id=1, began_at=now, judged_at=now, resumed_at=now))
        return Listening(now, now)
    break_after = timedelta(seconds=max(HEARTBEAT_S, 2 * settings.sweep_interval_s))
    before = Listening(row.judged_at, row.resumed_at)
    listening = before.go_on(max(now, row.judged_at), break_after)
    if listening.resumed_at != before.resumed_at:
        note_break(session, before.judged_at, now)
    row.judged_at, row.resumed_at = listening.judged_at, listening.resumed_at
    return listening


def _tell(session: Session, now: datetime, settings: Settings, *, is_settled: bool) -> int:
    memory = remembered(session)
    devices = _devices(session, memory)
    at = sorted(memory.keys() | devices.keys())
    said, counts, clocks = places(session, now, at), _counts(session, at), zones(session, at)
    rules = Rules(
        timedelta(seconds=settings.notice_hold_s), timedelta(seconds=settings.notice_calm_s)
    )
    told = 0
    for place in at:
        known, before = devices.get(place, ()), memory.get(place, {})
        bound = [each for each in known if each.priority != Priority.REVOKED]
        here = {each.instance_id for each in bound}
        all_devices, all_heard = counts.get(place, (0, 0))
        facts = facts_of(
            said[place],
            [Seen(each.instance_id, each.last_seen_at, each.tone == "bad") for each in bound],
            now,
            settings.offline_window,
            is_settled=is_settled,
            others=all_devices - len(bound),
            others_heard=all_heard - sum(each.priority in HEARD for each in bound),
            unbound=frozenset(key.instance_id for key in before if key.instance_id) - here,
        )
        after, changes = judge(before, facts, now, rules)
        remember(session, place, before, after)
        for change in changes:
            about = _about(
                session, place, change, known, offline=len(facts.offline), zone=clocks.get(place)
            )
            has_webhook = settings.notify_url is not None
            tell(session, place, change, about, now, has_webhook=has_webhook)
        told += len(changes)
    return told


def _devices(session: Session, memory: Memory) -> dict[At, list[Device]]:
    """Return the devices that need a look: those that are offline or broken, and the watched."""
    watched = [key.instance_id for keys in memory.values() for key in keys if key.instance_id]
    found: dict[int, Device] = {}
    is_wanted = Device.priority.in_(SILENT) | (
        (Device.tone == "bad") & (Device.priority != Priority.REVOKED)
    )
    for query in (is_wanted, *_in_steps(watched)):
        found |= {each.position: each for each in session.scalars(select(Device).where(query))}
    by_place: defaultdict[At, list[Device]] = defaultdict(list)
    for each in found.values():
        by_place[each.organization_id, each.location_id].append(each)
    return by_place


def _in_steps(instances: Sequence[UUID]) -> Iterable[ColumnElement[bool]]:
    for at in range(0, len(instances), IDS_A_STEP):
        yield Device.instance_id.in_(instances[at : at + IDS_A_STEP])


def _counts(session: Session, at: Collection[At]) -> dict[At, tuple[int, int]]:
    """Return how many devices are bound at these locations, and how many of them are heard."""
    found: defaultdict[At, list[int]] = defaultdict(lambda: [0, 0])
    wanted = sorted(at)
    for first in range(0, len(wanted), IDS_A_STEP):
        query = (
            select(Device.organization_id, Device.location_id, Device.priority, func.count())
            .where(
                tuple_(Device.organization_id, Device.location_id).in_(
                    wanted[first : first + IDS_A_STEP]
                ),
                Device.priority.in_(HEARD | UNHEARD),
            )
            .group_by(Device.organization_id, Device.location_id, Device.priority)
        )
        for organization_id, location_id, priority, count in session.execute(query):
            found[organization_id, location_id][0] += count
            found[organization_id, location_id][1] += count if priority in HEARD else 0
    return {place: (devices, heard) for place, (devices, heard) in found.items()}


def _about(
    session: Session,
    at: At,
    change: Change,
    known: Iterable[Device],
    *,
    offline: int,
    zone: str | None,
) -> About:
    if change.key.instance_id is None:
        return About(at[1], "" if change.is_flapping else f"{offline} devices are offline", zone)
    device = next((d for d in known if d.instance_id == change.key.instance_id), None)
    if device is None:
        return About(str(change.key.instance_id), "", zone)
    detail = _headline(session, device) if change.key.condition == "broken" else ""
    return About(device.legacy_install_id, detail, zone)


def _headline(session: Session, device: Device) -> str:
    newest = [each for each in (device.network_report, device.application_report) if each]
    query = select(Report.headline).where(Report.position.in_(newest), Report.tone == "bad")
    return next(iter(session.scalars(query)), None) or ""
