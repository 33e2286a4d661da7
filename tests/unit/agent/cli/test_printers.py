"""Tests of `printers` and `check`: the state of the printers, and what the agent remembers."""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from agent.adapters.collector_process import CollectedFacts
from agent.adapters.storage.printer_memory import PrinterMemory
from agent.adapters.storage.state import StateDirectory
from agent.cli import check, collect, printers
from agent.errors import AgentError, ConfigError, StateError
from agent.rules.learned_printers import RememberedPrinters, Replacement
from collectors.contract import (
    PRINTER_STEP,
    Failure,
    Job,
    LearnedPrinter,
    NetworkFacts,
    NetworkJob,
    Printer,
)
from tests.fakes.collectors.fake_collectors import good_facts

KITCHEN = LearnedPrinter(
    "cups:kitchen", "192.168.1.50", "2026-11-20T19:00:00+00:00", "192.168.1.50",
    mac_address="00:1b:a9:00:00:01", model="EPSON TM-m30",
)  # fmt: skip
BAR = replace(KITCHEN, id="bar", mac_address=None, model=None)
REPLACEMENT = Replacement(
    replace(KITCHEN, mac_address="00:1b:a9:00:00:03"), "2026-11-21T08:00:00", 2
)


class FakeCollector:
    """A fake collector. It records its job, and returns the printers that the job requests."""

    jobs: ClassVar[list[Job]] = []

    async def collect(self, job: Job, *_: object) -> CollectedFacts:
        assert isinstance(job, NetworkJob)
        self.jobs.append(job)
        printers = tuple(state for state in STATES if job.printer in ("", state.name))
        failure = Failure(PRINTER_STEP, f"this machine has no printer {job.printer!r}")
        facts = good_facts("network")
        assert isinstance(facts, NetworkFacts)
        failures = () if printers else (failure,)
        return CollectedFacts(replace(facts, printers=printers, failures=failures))


STATES = (
    Printer(
        "cups:bar", "Bar", "network", "reachable", "192.168.1.61:631",
        "Reachable on port 631, matched by UUID", "192.168.1.61:631",
    ),
    Printer(
        "cups:office", "Office", "network", "reachable", "192.168.1.62:631",
        "Reachable on port 631, matched by UUID; the printer reports: out of paper;"
        " fix it at the printer: paper, cover, toner",
        "192.168.1.62:631",
    ),
    Printer(
        "cups:kitchen", "Kitchen", "network", "unreachable", "192.168.1.50:9100",
        "No answer from 192.168.1.50: is it switched on and connected?",
    ),
)  # fmt: skip


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PrinterMemory:
    monkeypatch.setattr(collect, "CollectorProcess", FakeCollector)
    monkeypatch.setattr(FakeCollector, "jobs", [])
    (tmp_path / "agent.toml").write_text(f'[device]\nstate_dir = "{tmp_path / "state"}"\n')
    state = StateDirectory(tmp_path / "state")
    state.prepare()
    return PrinterMemory(state)


def run(directory: Path, *words: str) -> int:
    parser = argparse.ArgumentParser()
    printers.add_arguments(parser)
    return printers.run(parser.parse_args(["--config", str(directory / "agent.toml"), *words]))


def test_list_shows_the_learned_printers_within_80_columns(
    memory: PrinterMemory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory.write(RememberedPrinters((KITCHEN, BAR), (REPLACEMENT,)))
    assert run(tmp_path) == 0
    output = capsys.readouterr().out
    assert "cups:kitchen  2026-11-20 19:00  192.168.1.50  00:1b:a9:00:00:01\n" in output
    assert "only its address" in output
    words = " ".join(output.split())
    assert "cups:kitchen: since 2026-11-21 08:00 another device answers at its address" in words
    assert "`venue-agent printers forget cups:kitchen`" in words
    assert all(len(line) <= 80 for line in output.splitlines())


def test_json_output_contains_all_learned_details(
    memory: PrinterMemory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory.write(RememberedPrinters((KITCHEN,), (REPLACEMENT,)))
    assert run(tmp_path, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["printers"][0]["mac_address"] == "00:1b:a9:00:00:01"
    assert document["replacements"][0]["reports"] == 2


def test_list_shows_the_present_state_with_the_broken_printers_first(
    memory: PrinterMemory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path) == 0
    output = capsys.readouterr().out
    assert output.startswith(
        "Kitchen: unreachable\n"
        "    No answer from 192.168.1.50: is it switched on and connected?\n"
        "    192.168.1.50:9100 (network)\n"
        "\n"
        "Office: needs attention\n"
    )
    assert output.index("Office: needs attention") < output.index("Bar: reachable")
    assert output.endswith("no printer is remembered from earlier reports\n")
    assert all(len(line) <= 80 for line in output.splitlines())
    (job,) = FakeCollector.jobs
    assert isinstance(job, NetworkJob)
    assert (job.printers_only, job.printer) == (True, "")


def test_json_output_contains_the_present_state(
    memory: PrinterMemory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--json") == 0
    states = json.loads(capsys.readouterr().out)["states"]
    assert [(state["id"], state["status"]) for state in states] == [
        ("cups:bar", "reachable"), ("cups:office", "reachable"), ("cups:kitchen", "unreachable"),
    ]  # fmt: skip


def run_check(directory: Path, *words: str) -> int:
    parser = argparse.ArgumentParser()
    check.add_arguments(parser)
    return check.run(parser.parse_args(["--config", str(directory / "agent.toml"), *words]))


@pytest.mark.parametrize(
    ("name", "code", "lines"),
    [
        (
            "Bar", 0,
            ["Bar: reachable", "    Reachable on port 631, matched by UUID",
             "    192.168.1.61:631 (network)"],
        ),
        (
            "Office", 1,
            ["Office: needs attention",
             "    Reachable on port 631, matched by UUID; the printer reports: out of paper;",
             "    fix it at the printer: paper, cover, toner",
             "    192.168.1.62:631 (network)"],
        ),
        (
            "Kitchen", 1,
            ["Kitchen: unreachable",
             "    No answer from 192.168.1.50: is it switched on and connected?",
             "    192.168.1.50:9100 (network)", "",
             "→ to search the network for the printer: `venue-agent collect network`"],
        ),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("memory")
def test_check_shows_verdict_cause_and_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, code: int, lines: list[str]
) -> None:
    assert run_check(tmp_path, name) == code
    assert capsys.readouterr().out.splitlines() == lines
    (job,) = FakeCollector.jobs
    assert isinstance(job, NetworkJob)
    assert (job.printers_only, job.printer) == (True, name)


@pytest.mark.usefixtures("memory")
def test_check_as_json_contains_the_printer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_check(tmp_path, "Kitchen", "--json") == 1
    (printer,) = json.loads(capsys.readouterr().out)["printers"]
    assert (printer["id"], printer["status"]) == ("cups:kitchen", "unreachable")


@pytest.mark.usefixtures("memory")
def test_check_of_an_unknown_printer_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="this machine has no printer 'cellar'"):
        run_check(tmp_path, "cellar")


@pytest.mark.usefixtures("memory")
def test_list_with_the_name_of_a_printer_refers_to_the_verb_check(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="`venue-agent check bar` shows one printer"):
        run(tmp_path, "list", "bar")


def test_no_printer_is_contacted_with_an_invalid_configuration(
    memory: PrinterMemory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "agent.toml").open("a") as config:
        config.write('[network]\nexclude = "192.168.1.50"\n')
    assert run(tmp_path) == 0
    captured = capsys.readouterr()
    assert "network.exclude must be a list" in captured.err
    assert captured.out == "no printer is remembered from earlier reports\n"
    assert FakeCollector.jobs == []


@pytest.mark.parametrize("word", ["cups:kitchen", "kitchen"])
def test_a_printer_can_be_forgotten_by_id_or_name(
    memory: PrinterMemory, tmp_path: Path, word: str
) -> None:
    memory.write(RememberedPrinters((KITCHEN, BAR), (REPLACEMENT,)))
    assert run(tmp_path, "forget", word) == 0
    assert memory.peek() == (RememberedPrinters((BAR,)), None)


@pytest.mark.parametrize("words", [("forget",), ("forget", "office")])
def test_forgetting_an_unknown_printer_raises_an_error(
    memory: PrinterMemory, tmp_path: Path, words: tuple[str, ...]
) -> None:
    memory.write(RememberedPrinters((KITCHEN, BAR)))
    with pytest.raises(AgentError, match="Known printers: cups:kitchen, bar"):
        run(tmp_path, *words)
    assert memory.peek() == (RememberedPrinters((KITCHEN, BAR)), None)


def test_damaged_memory_is_reported_and_not_changed(memory: PrinterMemory, tmp_path: Path) -> None:
    (tmp_path / "state/printers.json").write_text("garbage")
    with pytest.raises(StateError, match="is damaged"):
        run(tmp_path)
    assert (tmp_path / "state/printers.json").read_text() == "garbage"
