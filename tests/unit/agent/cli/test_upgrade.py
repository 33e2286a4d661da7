"""Tests of `venue-agent upgrade check`, and of a failed upgrade in `status` and `doctor`."""

import json
from pathlib import Path

import pytest

from agent.adapters.upgrade import record
from agent.adapters.upgrade.package_manager import Package
from agent.cli.main import main
from agent.cli.upgrade import check
from agent.doctor.checks.daemon import version
from agent.doctor.context import Context
from tests.unit.agent.adapters.upgrade.test_record import FAILED_RECORD
from tests.unit.agent.cli.running_state import running_daemon, status_of, write_config


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(record, "RECORD", tmp_path / "upgrade")
    monkeypatch.setattr(record, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(check, "read_package", lambda: Package("apt", "1.0.0", "1.1.0", False))
    return write_config(tmp_path)


def test_upgrade_check_shows_what_an_upgrade_interrupts_and_keeps(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_daemon(config.parent, activity="collecting network", outbox_reports=2):
        assert main(["upgrade", "check", "--config", str(config)]) == 0
    output = capsys.readouterr().out
    assert all(len(line) <= 80 for line in output.splitlines()), output
    assert "installed    1.0.0\n" in output
    assert "available    1.1.0 from apt\n" in output
    assert "interrupts the running work, and repeats it: collecting network" in output
    assert "keeps 2 reports that wait" in output
    assert "apt-get install --only-upgrade venue-agent" in output


def test_upgrade_check_of_a_held_package_advises_to_release_it(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "read_package", lambda: Package("apt", "1.0.0", "1.1.0", True))
    assert main(["upgrade", "check", "--config", str(config)]) == 0
    output = capsys.readouterr().out
    assert "held         yes\n" in output
    assert "interrupts nothing: the agent does not run" in output
    assert "apt-mark unhold venue-agent" in output
    assert "--only-upgrade" not in output


def test_upgrade_check_as_json_has_the_documented_keys(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (config.parent / "upgrade").write_text(FAILED_RECORD)
    assert main(["upgrade", "check", "--json", "--config", str(config)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {
        "installed", "daemon", "running", "kept", "available", "package_manager", "is_held",
        "activity", "outbox_reports", "upgrade",
    }  # fmt: skip
    assert set(document["upgrade"]) == {
        "state", "old_version", "new_version", "at", "reason", "log",
    }  # fmt: skip


def test_status_and_doctor_report_a_failed_upgrade(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (config.parent / "upgrade").write_text(FAILED_RECORD)
    sentence = "version 1.1.0 did not reach the service; 1.0.0 runs again since"
    with running_daemon(config.parent):
        assert main(["status", "--config", str(config)]) == 0
        assert sentence in capsys.readouterr().out
        main(["status", "--json", "--config", str(config)])
    assert json.loads(capsys.readouterr().out)["upgrade"]["state"] == "failed"
    outcome = version(Context(daemon=status_of(config.parent)))
    assert (outcome.status, outcome.detail.startswith(sentence)) == ("warn", True)
