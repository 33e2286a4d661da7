"""Where this device stands with the service: bound, revoked, or neither yet."""

import asyncio
import logging
from uuid import UUID

from agent.adapters.storage.device_record import Binding, DeviceRecord, DeviceRecordFile
from agent.wire.device_operations import EnrollmentRecord

log = logging.getLogger(__name__)


class BindingState:
    """The device record in memory and on disk; other tasks wait here until they may work."""

    def __init__(self, file: DeviceRecordFile, record: DeviceRecord, *, base_url: str) -> None:
        self._file = file
        self._record = record
        self._base_url = base_url
        self._is_bound = asyncio.Event()
        self._lost = asyncio.Event()

    @property
    def record(self) -> DeviceRecord:
        return self._record

    @property
    def binding(self) -> EnrollmentRecord | None:
        """The last binding, even if it is not confirmed or was revoked."""
        return None if self._record.binding is None else self._record.binding.record

    @property
    def binding_id(self) -> UUID | None:
        return None if self.binding is None else self.binding.binding_id

    @property
    def is_revoked(self) -> bool:
        return self._record.is_revoked

    @property
    def is_bound(self) -> bool:
        """True while a binding is held that the service has confirmed since the start."""
        return self._is_bound.is_set()

    async def wait_until_bound(self) -> EnrollmentRecord:
        """Return the confirmed binding, once there is one."""
        while True:
            await self._is_bound.wait()
            if self.binding is not None:
                return self.binding

    async def wait_for_loss(self) -> None:
        """Return when the binding is no longer held, or is another one."""
        await self._lost.wait()

    def adopt(self, record: EnrollmentRecord, location_id: str) -> None:
        """Hold ``record`` as the binding, durably. Raises StateError."""
        self._lose()
        binding = Binding(base_url=self._base_url, location_id=location_id, record=record)
        self._save(self._record.model_copy(update={"binding": binding, "is_revoked": False}))
        self._is_bound.set()

    def confirm(self) -> None:
        """The service still knows the binding."""
        if self.is_revoked:
            self._save(self._record.model_copy(update={"is_revoked": False}))
        self._is_bound.set()

    def revoke(self) -> None:
        """The service has taken the binding away: nothing may work until there is another."""
        self._lose()
        if not self.is_revoked:
            self._save(self._record.model_copy(update={"is_revoked": True}))

    def _lose(self) -> None:
        """Wake who waits for the loss of the present binding."""
        self._is_bound.clear()
        self._lost.set()
        self._lost = asyncio.Event()

    def _save(self, record: DeviceRecord) -> None:
        self._file.save(record)
        self._record = record
