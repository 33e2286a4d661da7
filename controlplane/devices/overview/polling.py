"""The poll for all consoles of a process.

It reads the full rows of changed devices, and only fingerprints of the other displayed devices.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from agent.wire.codec import encode
from controlplane.devices.overview.console_feeds import EncodedRow, Snapshot
from controlplane.devices.overview.listing import rows_at
from controlplane.devices.requests.expiry import is_open
from controlplane.operation.permissions import callers
from controlplane.settings import Settings
from controlplane.storage.statements import in_steps
from controlplane.storage.tables import Device, Request

Fingerprint = tuple[Any, ...]
"""The values of a device by which the poll detects that its row has changed."""


class ConsolePoller:
    """Stores the fingerprints of the displayed devices. Do not run two polls at the same time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._fingerprints: dict[int, Fingerprint] = {}

    def poll(
        self,
        session: Session,
        now: datetime,
        changed: Collection[int],
        displayed: Collection[int],
        key_ids: Collection[UUID],
    ) -> Snapshot:
        """Return the rows of the devices ``changed``, and of changed devices in ``displayed``.

        A device in ``displayed`` has changed if its fingerprint is different from the last one.
        """
        changed_fingerprints = dict(self._fingerprints_of(session, now, changed))
        displayed_fingerprints = (
            dict(self._fingerprints_of(session, now, displayed)) if displayed else {}
        )
        stale = [
            position
            for position, fingerprint in displayed_fingerprints.items()
            if self._fingerprints.get(position) != fingerprint
        ]
        if displayed:
            # Drops devices that no console displays any more.
            self._fingerprints = displayed_fingerprints
        self._fingerprints |= changed_fingerprints
        return Snapshot(
            self._rows(session, now, [*changed_fingerprints, *stale]),
            callers(session, key_ids, now),
        )

    def _rows(self, session: Session, now: datetime, positions: list[int]) -> dict[int, EncodedRow]:
        rows: dict[int, EncodedRow] = {}
        for part in in_steps(positions):
            for position, row in rows_at(session, part, now, self._settings).items():
                device = row.device
                rows[position] = EncodedRow(device.organization_id, device.location_id, encode(row))
        return rows

    def _fingerprints_of(
        self, session: Session, now: datetime, positions: Collection[int]
    ) -> Iterator[tuple[int, Fingerprint]]:
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
            requests = _open_requests(session, now, [row.binding_id for row in devices])
            for row in devices:
                is_recent = now - row.last_seen_at <= self._settings.online_window
                yield row.position, (*row, is_recent, requests.get(row.binding_id))


def _open_requests(
    session: Session, now: datetime, bindings: list[UUID]
) -> dict[UUID, list[tuple[UUID, str]]]:
    query = (
        select(Request.binding_id, Request.id, Request.status)
        .where(Request.binding_id.in_(bindings), is_open(now))
        .order_by(Request.position)
    )
    results: dict[UUID, list[tuple[UUID, str]]] = defaultdict(list)
    for row in session.execute(query):
        results[row.binding_id].append((row.id, row.status))
    return results
