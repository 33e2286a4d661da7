"""Tests of `collect`: it uses the printers that the daemon has learned, and writes no state. Its
output has a title and advice.
"""

import argparse
import json
import platform
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agent.adapters.collector_process import CollectedFacts
from agent.adapters.storage.printer_memory import PrinterMemory
from agent.adapters.storage.state import StateDirectory
from agent.cli import collect
from agent.cli.main import main
from agent.rules.learned_printers import RememberedPrinters
from collectors.contract import Job, LearnedPrinter, NetworkFacts, NetworkJob, SourceState
from tests.fakes.collectors.fake_collectors import good_facts

UNLIMITED_AGE = timedelta(days=36_500)
KITCHEN = LearnedPrinter(
    "cups:kitchen", "192.168.1.50", "2026-11-20T19:00:00+00:00", mac_address="00:1b:a9:00:00:01"
)


class FakeCollector:
    """A fake collector. It records its job, and returns facts without a failure."""

    jobs: ClassVar[list[Job]] = []

    async def collect(self, job: Job, *_: object) -> CollectedFacts:
        self.jobs.append(job)
        facts = good_facts(job.kind)
        assert isinstance(facts, NetworkFacts)
        return CollectedFacts(facts)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a configuration and an empty state directory."""
    monkeypatch.setattr(collect, "CollectorProcess", FakeCollector)
    monkeypatch.setattr(FakeCollector, "jobs", [])
    (tmp_path / "agent.toml").write_text(f'[device]\nstate_dir = "{tmp_path / "state"}"\n')
    StateDirectory(tmp_path / "state").prepare()
    return tmp_path


def collect_report(directory: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    options = argparse.Namespace(
        kind="network", config=directory / "agent.toml", ndjson=False, html=None, json=True
    )
    assert collect.run(options) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


def test_collect_passes_the_learned_printers_to_its_child_and_writes_no_state(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    PrinterMemory(StateDirectory(directory / "state")).write(RememberedPrinters((KITCHEN,)))
    monkeypatch.setattr("agent.rules.learned_printers.DETAILS_AGE_MAX", UNLIMITED_AGE)
    before = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in (directory / "state").iterdir()}
    report = collect_report(directory, capsys)
    (job,) = FakeCollector.jobs
    assert isinstance(job, NetworkJob)
    assert job.learned == (KITCHEN,)
    assert report["limitations"] == []
    assert before == {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in before}
    assert set(before) == set((directory / "state").iterdir())


@pytest.mark.parametrize(
    ("host", "title"),
    [("till-7.local", "till-7: network report"), ("localhost", "Network report")],
)
def test_title_of_an_unenrolled_machine_is_its_host_name_unless_it_is_localhost(
    directory: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    title: str,
) -> None:
    monkeypatch.setattr(platform, "node", lambda: host)
    assert collect_report(directory, capsys)["identity"]["installId"] == "unenrolled"
    page = directory / "page.html"
    options = argparse.Namespace(
        kind="network", config=directory / "agent.toml", ndjson=False, html=page, json=False
    )
    assert collect.run(options) == 0
    assert capsys.readouterr().out.strip().startswith(title)
    assert f"<title>{title}" in page.read_text()


def test_advice_of_a_finding_contains_the_configuration_of_the_user(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = replace(good_facts("network"), mdns_source=SourceState("failed", "no socket"))
    monkeypatch.setattr("tests.unit.agent.cli.test_collect.good_facts", lambda _kind: failed)
    monkeypatch.chdir(directory)
    assert main(["collect", "network", "--config", "agent.toml"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "Run `venue-agent doctor --config agent.toml` for the reason." in output


def test_printer_memory_without_permission_is_a_limitation(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: StateDirectory, _name: str, _most: int) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(StateDirectory, "read", refuse)
    assert collect_report(directory, capsys)["limitations"] == [
        "the details of printers from earlier reports cannot be read: Permission denied"
    ]
    assert [job.learned for job in FakeCollector.jobs if isinstance(job, NetworkJob)] == [()]
