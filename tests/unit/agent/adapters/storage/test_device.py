"""Tests of the device record: reading, writing, and updates when the agent starts."""

import platform
import re
from pathlib import Path

import pytest

from agent import __version__
from agent.adapters import machine
from agent.adapters.identity import IdentityFile
from agent.adapters.storage.device_record import (
    Binding,
    DeviceRecord,
    DeviceRecordFile,
)
from agent.adapters.storage.state import StateDirectory
from agent.config.model import LocalConfig
from agent.device_setup import load_or_create_device
from agent.errors import StateError
from agent.reporting import describe_environment
from tests.unit.agent.samples import BASE_URL, config, record

THIS_MACHINE, OTHER_MACHINE = "fingerprint-here", "fingerprint-there"
BOUND_RECORD = DeviceRecord(
    legacy_install_id="install-1",
    fingerprint=THIS_MACHINE,
    binding=Binding(base_url=BASE_URL, location_id="loc-0001", record=record()),
)


@pytest.fixture
def file(state: StateDirectory) -> DeviceRecordFile:
    return DeviceRecordFile(state)


def start(
    state: StateDirectory, fingerprint: str = THIS_MACHINE, **changes: str
) -> tuple[DeviceRecord, bool, IdentityFile]:
    """Load the record as the agent does at its start.

    Return the record, whether the disk is a copy, and the identity. ``changes`` are keys of the
    configuration.
    """
    identity = IdentityFile(state)
    file = DeviceRecordFile(state)
    return *load_or_create_device(config(**changes), file, identity, fingerprint), identity


def test_a_saved_device_record_is_loaded_unchanged(
    file: DeviceRecordFile, state: StateDirectory
) -> None:
    assert file.load() is None
    assert file.peek() is None
    file.save(BOUND_RECORD)

    assert DeviceRecordFile(state).load() == BOUND_RECORD
    assert file.peek() == BOUND_RECORD
    assert (state.path / "device.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b'{"legacy_install_id": ""}', b"\x00" * 500]
)
def test_a_broken_record_is_set_aside(
    file: DeviceRecordFile, state: StateDirectory, content: bytes
) -> None:
    (state.path / "device.json").write_bytes(content)

    assert file.peek() is None
    assert not file.was_quarantined
    assert file.load() is None
    assert file.was_quarantined
    assert [p.read_bytes() for p in state.quarantine_path.iterdir()] == [content]
    assert file.load() is None


def test_unusable_record_file_raises_an_error(
    file: DeviceRecordFile, state: StateDirectory
) -> None:
    (state.path / "device.json").mkdir()

    with pytest.raises(StateError, match=r"device\.json is a directory, .*: remove it"):
        file.load()
    with pytest.raises(StateError, match="cannot be written"):
        file.save(BOUND_RECORD)


def set_host_name(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(platform, "node", lambda: name)


def test_the_install_id_keeps_the_host_name_of_the_first_start(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_host_name(monkeypatch, "till-3")
    assert start(state)[0].legacy_install_id == "till-3"
    set_host_name(monkeypatch, "till-4")
    assert start(state)[0].legacy_install_id == "till-3"


def test_an_earlier_installation_keeps_its_install_id(
    state: StateDirectory, file: DeviceRecordFile
) -> None:
    earlier = "install-6f9a2a34-6a2a-4a39-b9b0-1a0c4b6f2f77"
    file.save(DeviceRecord(legacy_install_id=earlier))

    assert start(state)[0].legacy_install_id == earlier


@pytest.mark.parametrize(
    ("host", "name"), [("till-9", "till-9"), ("install-1", r"install-1-\w{4}")]
)
def test_a_copied_disk_is_named_after_its_new_host(
    state: StateDirectory, file: DeviceRecordFile, monkeypatch: pytest.MonkeyPatch,
    host: str, name: str,
) -> None:  # fmt: skip
    """A suffix is added if the name of the host is the install id of the original."""
    file.save(BOUND_RECORD)
    set_host_name(monkeypatch, host)

    assert re.fullmatch(name, start(state, OTHER_MACHINE)[0].legacy_install_id)


def test_the_first_start_creates_a_record(state: StateDirectory) -> None:
    first, is_clone, _ = start(state)
    again, _, _ = start(state)

    assert first == again == DeviceRecordFile(state).load()
    assert first.fingerprint == THIS_MACHINE
    assert first.binding is None
    assert not is_clone


def test_a_bound_device_stays_bound(state: StateDirectory, file: DeviceRecordFile) -> None:
    file.save(BOUND_RECORD)

    assert start(state)[0] == BOUND_RECORD


def test_a_record_without_a_fingerprint_gets_a_fingerprint_and_is_not_a_clone(
    state: StateDirectory, file: DeviceRecordFile
) -> None:
    file.save(BOUND_RECORD.model_copy(update={"fingerprint": None}))

    device, is_clone, _ = start(state)

    assert device == BOUND_RECORD
    assert not is_clone


def test_a_copied_disk_is_a_new_device(state: StateDirectory, file: DeviceRecordFile) -> None:
    file.save(BOUND_RECORD)
    old = IdentityFile(state).load_or_create()

    device, is_clone, identity = start(state, OTHER_MACHINE)

    assert is_clone
    assert device.binding is None
    assert device.legacy_install_id != BOUND_RECORD.legacy_install_id
    assert identity.load_or_create().instance_id != old.instance_id
    assert not start(state, OTHER_MACHINE)[1]


def test_a_copied_disk_without_a_key_is_a_new_device_too(
    state: StateDirectory, file: DeviceRecordFile
) -> None:
    file.save(BOUND_RECORD)

    assert start(state, OTHER_MACHINE)[1]


def test_a_damaged_record_does_not_change_the_key(state: StateDirectory) -> None:
    key = IdentityFile(state).load_or_create()
    (state.path / "device.json").write_bytes(b"garbage")

    _, is_clone, identity = start(state)

    assert identity.load_or_create().instance_id == key.instance_id
    assert not is_clone


@pytest.mark.parametrize("change", [{"base_url": "http://127.0.0.1:10"}, {"location_id": "loc-2"}])
def test_a_changed_service_or_location_in_the_configuration_ends_the_binding(
    state: StateDirectory, file: DeviceRecordFile, change: dict[str, str]
) -> None:
    file.save(BOUND_RECORD.model_copy(update={"is_revoked": True}))

    device, _, _ = start(state, **change)

    assert device.binding is None
    assert not device.is_revoked
    assert device.legacy_install_id == BOUND_RECORD.legacy_install_id
    assert file.load() == device


def test_the_configured_install_id_takes_precedence(
    state: StateDirectory, file: DeviceRecordFile
) -> None:
    file.save(BOUND_RECORD)
    configured = config(device={"legacy_install_id": "till-3"})

    device, _ = load_or_create_device(configured, file, IdentityFile(state), THIS_MACHINE)

    assert device.legacy_install_id == "till-3"
    assert device.binding == BOUND_RECORD.binding


def test_a_machine_id_is_hashed(tmp_path: Path) -> None:
    path = tmp_path / "machine-id"
    assert machine.fingerprint(path) is None
    path.write_text("\n")
    assert machine.fingerprint(path) is None
    path.write_bytes(b"\xff\xff")
    assert machine.fingerprint(path) is None
    path.write_text("0123456789abcdef0123456789abcdef\n")

    hashed = machine.fingerprint(path)

    assert hashed is not None
    assert len(hashed) == 64
    assert "0123456789abcdef" not in hashed
    path.write_text("0123456789abcdef0123456789abcdee\n")
    assert machine.fingerprint(path) != hashed


def test_platform_and_user_agent_have_the_form_of_the_contract() -> None:
    assert machine.service_platform() in {"linux", "macos", "windows"}
    environment = describe_environment(LocalConfig())
    start = re.escape(f"venue-agent/{__version__} ({platform.system()} ")
    assert re.fullmatch(rf"{start}\S.*; \S.*\)", environment.user_agent)


@pytest.mark.parametrize(
    ("fingerprint", "change", "call_count"),
    [
        (THIS_MACHINE, {}, 0),
        (THIS_MACHINE, {"location_id": "loc-2"}, 0),
        (THIS_MACHINE, {"base_url": "http://127.0.0.1:10"}, 1),
        (OTHER_MACHINE, {}, 1),
    ],
)
def test_the_journal_is_set_aside_if_the_device_or_the_service_has_changed(
    state: StateDirectory,
    file: DeviceRecordFile,
    fingerprint: str,
    change: dict[str, str],
    call_count: int,
) -> None:
    file.save(BOUND_RECORD)
    calls: list[int] = []

    load_or_create_device(
        config(**change),
        file,
        IdentityFile(state),
        fingerprint,
        quarantine_journal=lambda: calls.append(1),
    )

    assert len(calls) == call_count
