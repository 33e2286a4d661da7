"""A wish becomes a request when its device is heard: one, in the transaction that says so.

```
waiting ──heard──▶ asked ──the request ended──▶ done
   │  ▲──it expired and the device never took it──┘
   └──▶ expired (its date) | cancelled | revoked (the device, or who asked)
```

A request that the device took may still be answered after it has expired, so it is not asked for
again: there is one report. A request of the same kind that is open already is waited for, and
answers the wish. The id of a request follows from the wish, so that no two are made of one turn.
"""

import uuid
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import Select, and_, exists, or_, select
from sqlalchemy.orm import Session

from controlplane.devices.overview.pending import OPEN
from controlplane.devices.requests import lifecycle
from controlplane.devices.requests.asking import ask
from controlplane.operation.audit_entries import Credential, Event, actor_of, device_subject, note
from controlplane.operation.caller import Caller
from controlplane.operation.errors import Refusal
from controlplane.operation.permissions import of_asker
from controlplane.settings import Settings
from controlplane.storage.account_tables import Membership
from controlplane.storage.tables import ApiKey, Device, Request
from controlplane.storage.watch_tables import Wish

WISHES_A_STEP: Final = 200


@dataclass(slots=True)
class Granted:
    """``woken`` are keys whose devices have something new, ``changed`` devices by organization."""

    woken: set[UUID] = field(default_factory=set)
    changed: dict[str, set[int]] = field(default_factory=dict)
    asked: int = 0


@dataclass(frozen=True, slots=True)
class Granting:
    """One transaction, and what comes of it."""

    session: Session
    now: datetime
    settings: Settings
    granted: Granted


def has_due(session: Session, now: datetime, settings: Settings) -> bool:
    """Tell whether there is anything to do: asked every few seconds, of an index that is small."""
    return session.execute(_due(now, settings).limit(1)).first() is not None


def grant_due(session: Session, now: datetime, settings: Settings) -> Granted:
    """Move on the wishes for which something has happened, some of them."""
    query = _due(now, settings).order_by(Wish.updated_at, Wish.position).limit(WISHES_A_STEP)
    granted = Granted()
    granting = Granting(session, now, settings, granted)
    for wish, position in session.execute(query.with_for_update(of=Wish, skip_locked=True)).all():
        device = session.get(Device, position, with_for_update=True)
        if device is not None:
            _move(granting, wish, device)
            granted.changed.setdefault(device.organization_id, set()).add(position)
        wish.updated_at = now
    return granted


def _due(now: datetime, settings: Settings) -> Select[Wish, int]:
    is_member = exists().where(
        Membership.user_id == Wish.key_id, Membership.organization_id == Wish.organization_id
    )
    is_over = or_(
        Wish.until <= now,
        Device.revoked_at.is_not(None),
        and_(or_(ApiKey.id.is_(None), ApiKey.revoked_at.is_not(None)), ~is_member),
    )
    is_heard = Device.last_seen_at >= now - settings.online_window
    under_way = exists().where(
        Request.binding_id == Device.binding_id,
        Request.kind == Wish.kind,
        Request.status.in_(lifecycle.OPEN),
        Request.expires_at > now,
    )
    its_own = exists().where(
        Request.id == Wish.request_id,
        Request.status.in_(lifecycle.OPEN),
        Request.expires_at > now,
    )
    return (
        select(Wish, Device.position)
        .join(
            Device,
            and_(
                Device.organization_id == Wish.organization_id,
                Device.instance_id == Wish.instance_id,
            ),
        )
        .outerjoin(ApiKey, ApiKey.id == Wish.key_id)
        .where(
            Wish.state.in_(OPEN),
            or_(
                and_(Wish.state == "waiting", or_(is_over, and_(is_heard, ~under_way))),
                and_(Wish.state == "asked", ~its_own),
            ),
        )
    )


def _move(granting: Granting, wish: Wish, device: Device) -> None:
    session, now = granting.session, granting.now
    if wish.state == "asked":
        _settle(session, wish, now)
        return
    asker = of_asker(session, wish.key_id, wish.organization_id, now)
    may_ask = asker is not None and asker.can_write and asker.may_visit(device.location_id)
    if device.revoked_at is not None or asker is None or not may_ask:
        wish.state = "revoked"
    elif wish.until <= now:
        wish.state = "expired"
    elif (answer := _answer(session, wish, device)) is not None:
        wish.state, wish.request_id = "done", answer
    else:
        _ask(granting, wish, device, asker)


def _settle(session: Session, wish: Wish, now: datetime) -> None:
    """Its request has ended."""
    query = select(Request).where(Request.id == wish.request_id)
    request = session.scalars(query).first()
    was_taken = request is None or request.received_at is not None
    if was_taken or (request is not None and request.status in lifecycle.FINISHED):
        wish.state = "done"
    elif wish.until <= now:
        wish.state = "expired"
    else:
        wish.state, wish.request_id = "waiting", None


def _answer(session: Session, wish: Wish, device: Device) -> UUID | None:
    """Return the request of another that was answered since the wish."""
    query = select(Request.id).where(
        Request.binding_id == device.binding_id,
        Request.kind == wish.kind,
        Request.status.in_(lifecycle.FINISHED),
        Request.finished_at > wish.created_at,
    )
    return session.scalars(query.limit(1)).first()


def _ask(granting: Granting, wish: Wish, device: Device, asker: Caller) -> None:
    request_id = uuid.uuid5(wish.id, str(wish.tries))
    try:
        ask(
            granting.session,
            device,
            wish.kind,
            request_id=request_id,
            asked_by=asker.user_id,
            now=granting.now,
            settings=granting.settings,
        )
    except Refusal:
        return  # too much is open: it is looked at again
    note(
        granting.session,
        replace(actor_of(granting.session, asker), credential=Credential("wish", wish.id)),
        Event("request.create", device_subject(device), wish.kind),
        organization_id=device.organization_id,
        now=granting.now,
    )
    wish.state, wish.request_id, wish.tries = "asked", request_id, wish.tries + 1
    granting.granted.woken.add(device.key_id)
    granting.granted.asked += 1
