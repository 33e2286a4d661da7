"""One look for all consoles of a process: cheap at all they show, close at what changed."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from agent.wire.codec import encode
from controlplane.devices.overview.console_feeds import Seen, ToldRow, Viewer
from controlplane.devices.overview.listing import rows_at
from controlplane.devices.requests import lifecycle
from controlplane.operation.permissions import callers
from controlplane.settings import Settings
from controlplane.storage.statements import in_steps
from controlplane.storage.tables import Device, Request

Stamp = tuple[Any, ...]
"""What a row is made of, in short: a row is another only where its stamp is."""


class ConsolePoller:
    """Remembers the stamps of what is shown. Used by one look at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stamps: dict[int, Stamp] = {}

    def look(
        self,
        session: Session,
        now: datetime,
        changed: Collection[int],
        shown: Collection[int],
        key_ids: Collection[UUID],
    ) -> Seen:
        """Return the rows of what ``changed``, and of what is ``shown`` and not what it was."""
        fresh = dict(self._stamped(session, now, changed))
        others = dict(self._stamped(session, now, shown)) if shown else {}
        stale = [at for at, stamp in others.items() if self._stamps.get(at) != stamp]
        if shown:
            # All that is shown: what is not any more is forgotten.
            self._stamps = others
        self._stamps |= fresh
        return Seen(self._rows(session, now, [*fresh, *stale]), seers(session, key_ids, now))

    def _rows(self, session: Session, now: datetime, positions: list[int]) -> dict[int, ToldRow]:
        found: dict[int, ToldRow] = {}
        for part in in_steps(positions):
            for at, row in rows_at(session, part, now, self._settings).items():
                place = row.device.organization_id, row.device.location_id
                found[at] = ToldRow(*place, encode(row))
        return found

    def _stamped(
        self, session: Session, now: datetime, positions: Collection[int]
    ) -> Iterator[tuple[int, Stamp]]:
        for part in in_steps(positions):
            query = select(
                Device.position,
                Device.binding_id,
                Device.last_seen_at,
                Device.revoked_at,
                Device.priority,
                Device.severity,
                Device.network_report,
                Device.application_report,
            ).where(Device.position.in_(part))
            devices = session.execute(query).all()
            work = _open_requests(session, now, [row.binding_id for row in devices])
            for row in devices:
                is_recent = now - row.last_seen_at <= self._settings.online_window
                yield row.position, (*row, is_recent, work.get(row.binding_id))


def seers(session: Session, key_ids: Collection[UUID], now: datetime) -> dict[UUID, Viewer]:
    """Return what these credentials may see, but for those that are no longer good."""
    return {
        key_id: Viewer(caller.organization_id, caller.locations)
        for key_id, caller in callers(session, key_ids, now).items()
    }


def _open_requests(
    session: Session, now: datetime, bindings: list[UUID]
) -> dict[UUID, list[tuple[UUID, str]]]:
    query = (
        select(Request.binding_id, Request.id, Request.status)
        .where(
            Request.binding_id.in_(bindings),
            Request.status.in_(lifecycle.OPEN),
            Request.expires_at > now,
        )
        .order_by(Request.position)
    )
    found: dict[UUID, list[tuple[UUID, str]]] = defaultdict(list)
    for row in session.execute(query):
        found[row.binding_id].append((row.id, row.status))
    return found
