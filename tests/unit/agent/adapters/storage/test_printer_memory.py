"""Tests of the details of printers that the agent remembers between reports."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.adapters.storage.printer_memory import PrinterMemory
from agent.adapters.storage.state import StateDirectory
from agent.rules.learned_printers import NOTHING_LEARNED, RememberedPrinters, Replacement
from collectors.contract import LearnedPrinter
from tests.sizes import examples

KITCHEN = LearnedPrinter("cups:kitchen", "192.168.1.50", mac_address="00:1b:a9:00:00:01")
MEMORY = RememberedPrinters((KITCHEN,), (Replacement(KITCHEN, "2026-11-20T12:00:00+00:00", 2),))


def files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def test_stored_printer_memory_is_loaded_unchanged(state: StateDirectory) -> None:
    memory = PrinterMemory(state)
    assert memory.load() == (NOTHING_LEARNED, None)
    memory.write(MEMORY)
    assert memory.load() == memory.peek() == (MEMORY, None)
    assert (state.path / "printers.json").stat().st_mode & 0o777 == 0o600


def test_printer_memory_of_another_version_is_read(state: StateDirectory) -> None:
    content = {"version": 9, "printers": [{"id": "cups:bar", "colour": "red"}]}
    (state.path / "printers.json").write_text(json.dumps(content))
    assert PrinterMemory(state).load() == (RememberedPrinters((LearnedPrinter("cups:bar"),)), None)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"printers": [{"id": 7}]}'])
def test_damaged_file_is_set_aside_and_reported(state: StateDirectory, content: bytes) -> None:
    (state.path / "printers.json").write_bytes(content)
    memory, before = PrinterMemory(state), files(state.path)
    loaded, reason = memory.peek()
    assert (loaded, files(state.path)) == (NOTHING_LEARNED, before)
    assert "is damaged" in (reason or "")

    loaded, reason = memory.load()
    assert loaded == NOTHING_LEARNED
    (quarantined,) = state.quarantine_path.iterdir()
    assert quarantined.read_bytes() == content
    assert f"is damaged and was moved to {quarantined}" in (reason or "")
    assert memory.load() == (NOTHING_LEARNED, None)


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60) | st.builds(lambda text: b'{"printers": ' + text, st.binary()))
def test_any_content_is_read_or_reported(state: StateDirectory, content: bytes) -> None:
    (state.path / "printers.json").write_bytes(content)
    loaded, reason = PrinterMemory(state).peek()
    if reason is None:
        assert isinstance(json.loads(content), dict)
    else:
        assert loaded == NOTHING_LEARNED
        assert "is damaged" in reason


def test_a_damaged_file_that_cannot_be_set_aside_is_reported(state: StateDirectory) -> None:
    (state.path / "printers.json").write_bytes(b"")
    state.quarantine_path.write_bytes(b"no directory")
    loaded, reason = PrinterMemory(state).load()
    assert loaded == NOTHING_LEARNED
    assert "is damaged, and cannot be quarantined" in (reason or "")


def test_symbolic_link_is_reported_and_never_followed(state: StateDirectory) -> None:
    (state.path / "secret").write_text('{"printers": []}')
    (state.path / "printers.json").symlink_to(state.path / "secret")
    for read in (PrinterMemory(state).load, PrinterMemory(state).peek):
        loaded, reason = read()
        assert loaded == NOTHING_LEARNED
        assert "symbolic link" in (reason or "")


def test_a_write_error_is_logged(state: StateDirectory, caplog: pytest.LogCaptureFixture) -> None:
    (state.path / "printers.json").mkdir()
    PrinterMemory(state).write(MEMORY)
    assert "cannot be written" in caplog.text
