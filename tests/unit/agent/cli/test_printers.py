"""The command `printers` lists the printers that the agent remembers, and makes it forget one."""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest

from agent.adapters.storage.printer_memory import PrinterMemory
from agent.adapters.storage.state import StateDirectory
from agent.cli import printers
from agent.errors import AgentError, StateError
from agent.rules.learned_printers import Memory, Replacement
from collectors.contract import LearnedPrinter

KITCHEN = LearnedPrinter(
    "cups:kitchen", "192.168.1.50", "2026-11-20T19:00:00+00:00", "192.168.1.50",
    mac_address="00:1b:a9:00:00:01", model="EPSON TM-m30",
)  # fmt: skip
BAR = replace(KITCHEN, id="bar", mac_address=None, model=None)
REPLACEMENT = Replacement(
    replace(KITCHEN, mac_address="00:1b:a9:00:00:03"), "2026-11-21T08:00:00", 2
)


@pytest.fixture
def memory(tmp_path: Path) -> PrinterMemory:
    (tmp_path / "agent.toml").write_text(f'[device]\nstate_dir = "{tmp_path / "state"}"\n')
    state = StateDirectory(tmp_path / "state")
    state.prepare()
    return PrinterMemory(state)


def run(home: Path, *words: str) -> int:
    parser = argparse.ArgumentParser()
    printers.add_arguments(parser)
    return printers.run(parser.parse_args(["--config", str(home / "agent.toml"), *words]))


def test_list_fits_80_columns(
    memory: PrinterMemory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory.write(Memory((KITCHEN, BAR), (REPLACEMENT,)))
    assert run(tmp_path) == 0
    output = capsys.readouterr().out
    assert "cups:kitchen  2026-11-20 19:00  192.168.1.50  00:1b:a9:00:00:01\n" in output
    assert "only its address" in output
    words = " ".join(output.split())
    assert "cups:kitchen: since 2026-11-21 08:00 another device answers there" in words
    assert "`venue-agent printers forget cups:kitchen`" in words
    assert all(len(line) <= 80 for line in output.splitlines())


def test_json_output_contains_all_learned_details(
    memory: PrinterMemory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory.write(Memory((KITCHEN,), (REPLACEMENT,)))
    assert run(tmp_path, "--json") == 0
    message = json.loads(capsys.readouterr().out)
    assert message["printers"][0]["mac_address"] == "00:1b:a9:00:00:01"
    assert message["replacements"][0]["reports"] == 2


@pytest.mark.parametrize("word", ["cups:kitchen", "kitchen"])
def test_a_printer_can_be_forgotten_by_id_or_name(
    memory: PrinterMemory, tmp_path: Path, word: str
) -> None:
    memory.write(Memory((KITCHEN, BAR), (REPLACEMENT,)))
    assert run(tmp_path, "forget", word) == 0
    assert memory.peek() == (Memory((BAR,)), None)


@pytest.mark.parametrize("words", [("forget",), ("forget", "office")])
def test_forgetting_an_unknown_printer_raises_an_error(
    memory: PrinterMemory, tmp_path: Path, words: tuple[str, ...]
) -> None:
    memory.write(Memory((KITCHEN, BAR)))
    with pytest.raises(AgentError, match="Known printers: cups:kitchen, bar"):
        run(tmp_path, *words)
    assert memory.peek() == (Memory((KITCHEN, BAR)), None)


def test_damaged_memory_is_reported_and_left(memory: PrinterMemory, tmp_path: Path) -> None:
    (tmp_path / "state/printers.json").write_text("garbage")
    with pytest.raises(StateError, match="is damaged"):
        run(tmp_path)
    assert (tmp_path / "state/printers.json").read_text() == "garbage"
