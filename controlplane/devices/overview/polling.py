"""The poll for all consoles of a process.

It reads the full rows of changed devices, and only fingerprints of the other displayed devices.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from agent.wire.codec import encode
from controlplane.devices.overview.console_feeds import EncodedRow, Snapshot
from controlplane.devices.overview.listing import rows_at
from controlplane.devices.requests.requests import is_open
from controlplane.operation.permissions import callers
from controlplane.settings import Settings
from controlplane.storage.monitoring_tables import MaintenanceWindow, PendingRequest
from controlplane.storage.statements import in_steps
from controlplane.storage.tables import Device, Request

Fingerprint = tuple[Any, ...]
"""The values of a device by which the poll detects that its row has changed."""


class ConsolePoller:
    """Detects changed devices by their fingerprints. Do not run two polls at the same time."""

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
        """Return the rows of all devices in ``changed``, and of changed devices in ``displayed``.

        A device in ``displayed`` has changed if its fingerprint differs from that of its last poll.
        """
        all_changed = set(changed)
        fingerprints = dict(self._fingerprints_of(session, now, all_changed.union(displayed)))
        due = [
            position
            for position, fingerprint in fingerprints.items()
            if position in all_changed or self._fingerprints.get(position) != fingerprint
        ]
        # A poll with displayed devices drops the fingerprints of devices that no console displays
        # any more.
        self._fingerprints = fingerprints if displayed else self._fingerprints | fingerprints
        return Snapshot(
            self._read_rows(session, now, due),
            callers(session, key_ids, now),
        )

    def _read_rows(
        self, session: Session, now: datetime, positions: list[int]
    ) -> dict[int, EncodedRow]:
        rows: dict[int, EncodedRow] = {}
        for part in in_steps(positions):
            for position, row in rows_at(session, part, now, self._settings).items():
                device = row.device
                rows[position] = EncodedRow(device.organization_id, device.location_id, encode(row))
        return rows

    def _fingerprints_of(
        self, session: Session, now: datetime, positions: Collection[int]
    ) -> Iterator[tuple[int, Fingerprint]]:
        maintenance = _maintenance(session, now) if positions else {}
        for part in in_steps(positions):
            query = select(
                Device.position,
                Device.binding_id,
                Device.organization_id,
                Device.location_id,
                Device.instance_id,
                Device.last_seen_at,
                Device.revoked_at,
                Device.priority,
                Device.severity,
                Device.network_report,
                Device.application_report,
            ).where(Device.position.in_(part))
            devices = session.execute(query).all()
            requests = _open_requests(session, now, [row.binding_id for row in devices])
            pending = _pending_requests(session, [row.instance_id for row in devices])
            for row in devices:
                is_recent = now - row.last_seen_at <= self._settings.online_window
                location = row.organization_id, row.location_id
                fingerprint = (
                    *row,
                    is_recent,
                    requests.get(row.binding_id),
                    pending.get((row.organization_id, row.instance_id)),
                    maintenance.get((*location, None)),
                    maintenance.get((*location, row.instance_id)),
                )
                yield row.position, fingerprint


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


def _pending_requests(
    session: Session, instance_ids: list[UUID]
) -> dict[tuple[str, UUID], list[tuple[UUID, datetime]]]:
    """Return the waiting pending requests with their ends, by organization and instance."""
    query = (
        select(
            PendingRequest.organization_id,
            PendingRequest.instance_id,
            PendingRequest.id,
            PendingRequest.until,
        )
        .where(PendingRequest.instance_id.in_(instance_ids), PendingRequest.state == "waiting")
        .order_by(PendingRequest.position)
    )
    results: dict[tuple[str, UUID], list[tuple[UUID, datetime]]] = defaultdict(list)
    for row in session.execute(query):
        results[row.organization_id, row.instance_id].append((row.id, row.until))
    return results


def _maintenance(session: Session, now: datetime) -> dict[tuple[str, str, UUID | None], datetime]:
    """Return the ends of the current maintenance windows, by organization, location and instance.

    Windows of whole locations have the instance None.
    """
    window = MaintenanceWindow
    query = (
        select(
            window.organization_id,
            window.location_id,
            window.instance_id,
            func.max(window.until),
        )
        .where(window.since <= now, window.until > now)
        .group_by(window.organization_id, window.location_id, window.instance_id)
    )
    return {(row[0], row[1], row[2]): row[3] for row in session.execute(query)}
