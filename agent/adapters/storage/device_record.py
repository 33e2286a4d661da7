"""The device's identity and binding: `device.json` in the state directory."""

import logging

from agent.adapters.failpoints import Failpoint, passing
from agent.adapters.storage.atomic_file import write_atomically
from agent.adapters.storage.state import StateDirectory
from agent.errors import StateError, as_state_error
from agent.wire.base import Model
from agent.wire.codec import decode, encode_indented
from agent.wire.device_operations import EnrollmentRecord
from agent.wire.text import LegacyInstallId
from agent.wire.validation import ValidationError

log = logging.getLogger(__name__)

NAME = "device.json"
MAX_BYTES = 1_000_000


class Binding(Model):
    """The enrollment at one service for one location."""

    base_url: str
    location_id: str
    record: EnrollmentRecord


class DeviceRecord(Model):
    """The content of `device.json`.

    ``legacy_install_id`` is the device's name in the service, from the configuration or from
    `rules.install_id`. ``fingerprint`` identifies the machine that wrote the record
    (adapters.machine). ``is_revoked`` is True if the service has revoked the device.
    """

    legacy_install_id: LegacyInstallId
    fingerprint: str | None = None
    is_revoked: bool = False
    binding: Binding | None = None


class DeviceRecordFile:
    """Reads and writes the device record."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state
        self._path = state.path / NAME
        self.was_quarantined = False

    def load(self) -> DeviceRecord | None:
        """Return the record; None if the file is missing or its content is invalid.

        An invalid file is quarantined. Raises StateError if the file is unsafe or too large
        (`adapters.storage.safe_file`), or cannot be read.
        """
        try:
            content = self._state.read(NAME, MAX_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateError(f"{self._path} cannot be read: {error.strerror}") from None
        try:
            return decode(content, DeviceRecord)
        except ValidationError:
            log.error("%s cannot be read and is quarantined", self._path)
            self._state.quarantine_file(self._path)
            self.was_quarantined = True
            return None

    def peek(self) -> DeviceRecord | None:
        """Return the record, or None if it cannot be read. Change nothing.

        Raises StateError if the file is unsafe or too large (`adapters.storage.safe_file`).
        """
        try:
            return decode(self._state.read(NAME, MAX_BYTES), DeviceRecord)
        except (OSError, ValidationError):
            return None

    def save(self, record: DeviceRecord) -> None:
        """Write the record durably. Raises StateError."""
        with (
            as_state_error(f"{self._path} cannot be written"),
            passing(Failpoint.DEVICE_RECORD_WRITTEN),
        ):
            write_atomically(self._path, encode_indented(record).encode() + b"\n")
