import json

import pytest

from agent.adapters.storage.printer_memory import PrinterMemory
from agent.adapters.storage.state import StateDirectory
from collectors.contract import LearnedPrinter

KITCHEN = LearnedPrinter("cups:kitchen", "192.168.1.50", mac_address="00:1b:a9:00:00:01")


def test_what_is_known_is_read_as_it_was_written(state: StateDirectory) -> None:
    memory = PrinterMemory(state)
    assert memory.read() == ((), None)
    memory.write((KITCHEN,))
    assert memory.read() == ((KITCHEN,), None)
    assert (state.path / "printers.json").stat().st_mode & 0o777 == 0o600


def test_what_another_version_wrote_is_read(state: StateDirectory) -> None:
    content = {"version": 9, "printers": [{"id": "cups:bar", "colour": "red"}]}
    (state.path / "printers.json").write_text(json.dumps(content))
    assert PrinterMemory(state).read() == ((LearnedPrinter("cups:bar"),), None)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"printers": [{"id": 7}]}'])
def test_a_damaged_file_is_said(state: StateDirectory, content: bytes) -> None:
    (state.path / "printers.json").write_bytes(content)
    known, reason = PrinterMemory(state).read()
    assert known == ()
    assert reason is not None
    assert "is damaged" in reason


def test_a_file_that_is_not_the_agents_is_said_and_never_followed(state: StateDirectory) -> None:
    (state.path / "secret").write_text('{"printers": []}')
    (state.path / "printers.json").symlink_to(state.path / "secret")
    known, reason = PrinterMemory(state).read()
    assert known == ()
    assert reason is not None
    assert "symbolic link" in reason


def test_a_file_that_cannot_be_written_stops_nothing(
    state: StateDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    (state.path / "printers.json").mkdir()
    PrinterMemory(state).write((KITCHEN,))
    assert "cannot be written" in caplog.text
