"""Loads the device record when the daemon starts, or creates it."""

import logging
import platform
from collections.abc import Callable
from uuid import uuid4

from agent.adapters import machine
from agent.adapters.identity import IdentityFile
from agent.adapters.storage.device_record import DeviceRecord, DeviceRecordFile
from agent.config.model import Config
from agent.rules.install_id import install_id_for

log = logging.getLogger(__name__)


def load_or_create_device(
    config: Config,
    file: DeviceRecordFile,
    identity: IdentityFile,
    fingerprint: str | None = None,
    *,
    quarantine_journal: Callable[[], None] = lambda: None,
) -> tuple[DeviceRecord, bool]:
    """Return the device record, and whether the disk is a clone of another machine's disk.

    The record is created if it is missing. On a clone, the record and the identity key are
    replaced. In all other cases the key is kept, because the instance id depends on it.

    Args:
        fingerprint: identifies this machine; by default `machine.fingerprint`.
        quarantine_journal: called if the requests and reports on this disk belong to another device
            or service. It is called before the record is written. If the daemon crashes between
            these two steps, the next start calls it again.

    Raises:
        StateError: the record cannot be read or written.
    """
    fingerprint = fingerprint or machine.fingerprint()
    stored_record = file.load()
    stored_fingerprint = stored_record.fingerprint if stored_record else None
    is_clone = None not in (fingerprint, stored_fingerprint) and fingerprint != stored_fingerprint
    copied_install_id = None
    if stored_record is not None and is_clone:
        copied_install_id = stored_record.legacy_install_id
        log.warning("this disk was copied from another machine: creating a new identity")
        quarantine_journal()
        if identity.exists():
            identity.quarantine_file()
        stored_record = None
    elif stored_record is not None and _belongs_to_another_service(stored_record, config):
        quarantine_journal()
    record = stored_record or DeviceRecord(
        legacy_install_id=install_id_for(platform.node(), uuid4(), taken_id=copied_install_id)
    )
    record = _apply_config(record, config).model_copy(
        update={"fingerprint": fingerprint or record.fingerprint}
    )
    if record != stored_record:
        file.save(record)
    return record, is_clone


def _belongs_to_another_service(record: DeviceRecord, config: Config) -> bool:
    """Return whether the record's binding belongs to another service."""
    return record.binding is not None and record.binding.base_url != config.service.base_url


def _apply_config(record: DeviceRecord, config: Config) -> DeviceRecord:
    """Apply the configuration to the record.

    Uses the configured install id. Removes a binding of another service or location.
    """
    install_id = config.device.legacy_install_id or record.legacy_install_id
    record = record.model_copy(update={"legacy_install_id": install_id})
    binding = record.binding
    if binding is None:
        return record
    configured = (config.service.base_url, config.service.location_id)
    if (binding.base_url, binding.location_id) == configured:
        return record
    log.warning(
        "the configuration differs from the enrollment (%s at %s): enrolling again",
        binding.location_id,
        binding.base_url,
    )
    return record.model_copy(update={"binding": None, "is_revoked": False})
