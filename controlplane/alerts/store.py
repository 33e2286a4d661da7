"""What is remembered of conditions, and the notices: in one transaction with their outbox."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.alerts.messages import Told, body_of
from controlplane.alerts.rules import Change, Condition, Key, Watch
from controlplane.devices.locations.locations import At
from controlplane.storage.watch_tables import Notice, NoticeDelivery, WatchedCondition

Memory = dict[At, dict[Key, Watch]]


def remembered(session: Session) -> Memory:
    found: Memory = {}
    for row in session.scalars(select(WatchedCondition)):
        watches = found.setdefault((row.organization_id, row.location_id), {})
        watches[_key(row)] = Watch(
            holds=row.holds,
            began_at=row.began_at,
            gone_at=row.gone_at,
            is_told=row.is_told,
            is_flapping=row.is_flapping,
            changes=tuple(datetime.fromisoformat(each) for each in row.changes),
        )
    return found


def remember(
    session: Session, at: At, before: Mapping[Key, Watch], after: Mapping[Key, Watch]
) -> None:
    """Write down what is another than before."""
    for key in before.keys() - after.keys():
        row = session.get(WatchedCondition, _identity(at, key))
        if row is not None:
            session.delete(row)
    for key, watch in after.items():
        if before.get(key) == watch:
            continue
        row = session.get(WatchedCondition, _identity(at, key))
        if row is None:
            organization_id, location_id, instance, condition = _identity(at, key)
            row = WatchedCondition(
                organization_id=organization_id,
                location_id=location_id,
                instance=instance,
                condition=condition,
            )
            session.add(row)
        row.holds, row.began_at, row.gone_at = watch.holds, watch.began_at, watch.gone_at
        row.is_told, row.is_flapping = watch.is_told, watch.is_flapping
        row.changes = [each.isoformat() for each in watch.changes]


@dataclass(frozen=True, slots=True)
class About:
    """What a notice says beside its condition."""

    name: str
    detail: str
    zone: str | None


def tell(
    session: Session, at: At, change: Change, about: About, now: datetime, *, has_webhook: bool
) -> None:
    """Open or end a notice, and lay what the webhook has to be sent beside it."""
    notice = _end(session, at, change, now) if change.is_end else _open(at, change, about, now)
    session.add(notice)
    if not has_webhook:
        return
    session.add(
        NoticeDelivery(
            id=f"msg_{uuid.uuid4().hex}",
            notice_id=notice.id,
            is_end=change.is_end,
            body=json.dumps(body_of(_told(notice, about, is_end=change.is_end))),
            status="pending",
            attempts=0,
            due_at=now,
            created_at=now,
            updated_at=now,
        )
    )


def open_notice(session: Session, at: At, key: Key, *, is_flapping: bool) -> Notice | None:
    return session.scalars(
        select(Notice).where(
            Notice.organization_id == at[0],
            Notice.location_id == at[1],
            Notice.instance == _instance(key),
            Notice.condition == key.condition,
            Notice.is_flapping == is_flapping,
            Notice.end_told_at.is_(None),
        )
    ).first()


def _open(at: At, change: Change, about: About, now: datetime) -> Notice:
    return Notice(
        id=uuid.uuid4(),
        organization_id=at[0],
        location_id=at[1],
        instance=_instance(change.key),
        condition=change.key.condition,
        is_flapping=change.is_flapping,
        opened_at=change.at,
        told_at=now,
        detail=about.detail,
    )


def _end(session: Session, at: At, change: Change, now: datetime) -> Notice:
    notice = open_notice(session, at, change.key, is_flapping=change.is_flapping)
    if notice is None:
        raise LookupError(f"nothing was told of {change.key} at {at}")
    notice.ended_at, notice.end_told_at = change.at, now
    return notice


def _told(notice: Notice, about: About, *, is_end: bool) -> Told:
    return Told(
        notice_id=notice.id,
        organization_id=notice.organization_id,
        location_id=notice.location_id,
        instance_id=notice.instance or None,
        name=about.name,
        condition=notice.condition,
        is_flapping=notice.is_flapping,
        is_end=is_end,
        since=notice.opened_at,
        until=notice.ended_at,
        detail=notice.detail,
        zone=about.zone,
    )


def _identity(at: At, key: Key) -> tuple[str, str, str, str]:
    return *at, _instance(key), key.condition


def _instance(key: Key) -> str:
    return "" if key.instance_id is None else str(key.instance_id)


def _key(row: WatchedCondition) -> Key:
    condition: Condition = row.condition  # type: ignore[assignment]
    return Key(UUID(row.instance) if row.instance else None, condition)
