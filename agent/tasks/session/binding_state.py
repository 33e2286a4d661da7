"""The device's binding at the service, in memory and on disk."""

import asyncio
from dataclasses import dataclass, field
from uuid import UUID

from agent.adapters.storage.device_record import Binding, DeviceRecord, DeviceRecordFile
from agent.wire.device_operations import EnrollmentRecord


@dataclass(slots=True, eq=False)
class BindingState:
    """The device record and its file. Without a confirmed binding, tasks wait in
    `wait_until_bound`.
    """

    file: DeviceRecordFile
    record: DeviceRecord
    base_url: str
    _is_bound: asyncio.Event = field(default_factory=asyncio.Event)
    _lost: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def binding(self) -> EnrollmentRecord | None:
        """The last binding. It can be unconfirmed or revoked."""
        return None if self.record.binding is None else self.record.binding.record

    @property
    def binding_id(self) -> UUID | None:
        return None if self.binding is None else self.binding.binding_id

    @property
    def is_revoked(self) -> bool:
        return self.record.is_revoked

    @property
    def is_bound(self) -> bool:
        """Whether the binding is confirmed.

        A binding is confirmed if the service has confirmed it since the daemon started, and has not
        revoked it after that.
        """
        return self._is_bound.is_set()

    async def wait_until_bound(self) -> None:
        """Return when the binding is confirmed."""
        await self._is_bound.wait()

    async def wait_for_loss(self) -> None:
        """Return when the current binding is lost or replaced."""
        await self._lost.wait()

    def adopt(self, record: EnrollmentRecord, location_id: str) -> None:
        """Store ``record`` durably as the binding. Raises StateError."""
        self._lose()
        binding = Binding(base_url=self.base_url, location_id=location_id, record=record)
        self._save(self.record.model_copy(update={"binding": binding, "is_revoked": False}))
        self._is_bound.set()

    def confirm(self) -> None:
        """Note that the service still accepts the binding.

        Raises RuntimeError if the device has no binding.
        """
        if self.binding is None:
            raise RuntimeError("this device has no binding")
        if self.is_revoked:
            self._save(self.record.model_copy(update={"is_revoked": False}))
        self._is_bound.set()

    def revoke(self) -> None:
        """Note that the service has revoked the binding. Tasks wait for a confirmed binding."""
        self._lose()
        if not self.is_revoked:
            self._save(self.record.model_copy(update={"is_revoked": True}))

    def _lose(self) -> None:
        """Make every pending `wait_for_loss` return."""
        self._is_bound.clear()
        self._lost.set()
        self._lost = asyncio.Event()

    def _save(self, record: DeviceRecord) -> None:
        self.file.save(record)
        self.record = record
