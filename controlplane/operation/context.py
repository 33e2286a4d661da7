"""The context of an operation: its transaction, caller and time."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from agent.wire.vocabulary import Kind, Outcome
from controlplane.operation.audit_entries import Event, note_call
from controlplane.operation.caller import Caller
from controlplane.operation.cursors import Cursors
from controlplane.operation.errors import conflict, foreign_location, not_found
from controlplane.settings import Settings
from controlplane.storage.tables import Binding, Device


@dataclass(slots=True)
class RequestContext:
    """One call inside its transaction.

    Attributes:
        now: time of the call.
        cursor_key: signs cursors.
        preferred_page_size: page size that the caller requested.
        address: IP address of the caller.
        keys_to_notify: API keys whose command streams must be notified after the commit.
        changed: row keys (``Device.position``) of the devices that consoles must refresh.
        stored_reports: kind and outcome of each report that was stored, for the metrics.
        is_reordered: whether the order of the device list may have changed.
    """

    session: Session
    caller: Caller
    now: datetime
    settings: Settings
    cursor_key: bytes = b""
    preferred_page_size: int | None = None
    address: str = ""
    keys_to_notify: set[UUID] = field(default_factory=set)
    changed: set[int] = field(default_factory=set)
    stored_reports: list[tuple[Kind, Outcome]] = field(default_factory=list)
    is_reordered: bool = False

    @property
    def organization_id(self) -> str:
        return self.caller.organization_id

    @property
    def cursors(self) -> Cursors:
        if not self.cursor_key:
            raise LookupError("this context has no key to sign cursors with")
        return Cursors(self.cursor_key, self.now)

    @property
    def page_size(self) -> int:
        return self.preferred_page_size or self.settings.page_size

    def note(self, event: Event, organization_id: str | None = None) -> None:
        """Add an entry to the audit log, by default for the caller's organization."""
        note_call(
            self.session,
            self.caller,
            event,
            address=self.address,
            now=self.now,
            organization_id=organization_id,
        )

    def require_access(self, organization_id: str, location_id: str, kind: str) -> None:
        """Raise a refusal if the caller has no access to the location.

        For a location of a different organization, the refusal is ``not_found(kind)``, for example
        `there is no such device`.
        """
        if organization_id != self.caller.organization_id:
            raise not_found(kind)
        if not self.caller.has_access_to(location_id):
            raise foreign_location()

    def visible(self, table: Any) -> ColumnElement[bool]:
        """Return the condition for rows of ``table`` at locations that the caller has access to."""
        return self.caller.visible(table)

    def device(self, instance_id: UUID, *, lock: bool = False) -> Device:
        """Return a device.

        ``lock`` is for operations that change the device: its row is locked, and consoles refresh
        the device. Raises a refusal if the device does not exist, or the caller has no access to
        it.
        """
        query = select(Device).where(
            Device.organization_id == self.caller.organization_id,
            Device.instance_id == instance_id,
        )
        device = self.session.scalars(query.with_for_update() if lock else query).first()
        if device is None:
            raise not_found("device")
        self.require_access(device.organization_id, device.location_id, "device")
        if lock:
            self.changed.add(device.position)
        return device

    def lock_binding(self, binding_id: UUID) -> None:
        """Lock a binding until the transaction ends. Calls for one binding then run in sequence.

        PostgreSQL needs this lock. Without it, a repeated call could read before the first call has
        committed. SQLite has only one writer at a time.
        """
        self.session.execute(
            select(Device.position).where(Device.binding_id == binding_id).with_for_update()
        )

    def bound_device(self, binding_id: UUID) -> Device:
        """Return the device that has the binding, and lock its row.

        Raises a refusal if the binding was revoked or replaced.
        """
        query = select(Device).where(Device.binding_id == binding_id).with_for_update()
        device = self.session.scalars(query).first()
        if device is not None and device.revoked_at is None:
            self.require_access(device.organization_id, device.location_id, "binding")
            self.changed.add(device.position)
            return device
        binding = self.session.get(Binding, binding_id)
        if binding is None:
            raise not_found("binding")
        self.require_access(binding.organization_id, binding.location_id, "binding")
        raise conflict(
            "binding_revoked", "the binding was revoked or replaced by a newer one: enroll again"
        )
