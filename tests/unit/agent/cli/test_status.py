"""Tests of `status` and `history`: exit codes, the documented JSON, and output of at most 80
columns.
"""

import json
import re
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.adapters.storage.database import Database
from agent.adapters.storage.device_record import DeviceRecord, DeviceRecordFile
from agent.adapters.storage.state import StateDirectory
from agent.adapters.storage.status_file import StatusFile
from agent.cli.main import main
from agent.wire.payloads.history import History
from tests.unit.agent.cli.running_state import PROBLEM, running_daemon, status_of, write_config
from tests.unit.agent.histories import NOW, SINCE, bad_venue, incident, store, unfinished


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path)


def fits_80_columns(text: str) -> bool:
    return all(len(line) <= 80 for line in text.splitlines())


def test_status_of_a_healthy_daemon_exits_with_0(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_daemon(config.parent):
        assert main(["status", "--config", str(config)]) == 0
    output = capsys.readouterr().out
    assert output.startswith("healthy  venue-agent ")
    for words in ("loc-0001 of org-0001", "12 s ago", "by stream; 14 received since", "empty"):
        assert words in output
    assert fits_80_columns(output)
    assert "\x1b" not in output, "colours must appear only on terminals"


def test_status_shows_the_current_or_the_last_interruption(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_daemon(config.parent) as state:
        store(state, bad_venue())
        main(["status", "--config", str(config)])
        output = capsys.readouterr().out
        assert "connection   last interruption 1 h ago, for 31 s: the network" in output
        open_incident = unfinished(
            incident("provider-down", NOW, 0, "the gateway 192.168.1.1 answers")
        )
        store(state, History(SINCE, (open_incident,)))
        main(["status", "--config", str(config)])
        main(["status", "--json", "--config", str(config)])
        output += capsys.readouterr().out
        assert '"connection": "no connection since ' in output
        main(["status", "--config", str(config)])
        assert re.search(
            r"connection   no connection since \d\d:\d\d: the gateway 192\.168\.1\.1 answers",
            capsys.readouterr().out,
        )
    assert fits_80_columns(output.partition("{")[0])


def test_status_begins_with_the_name_of_the_machine(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_daemon(config.parent) as state:
        DeviceRecordFile(state).save(DeviceRecord(legacy_install_id="till-3"))
        main(["status", "--config", str(config)])
        output = capsys.readouterr().out
        main(["status", "--json", "--config", str(config)])
    assert output.startswith("till-3\nhealthy  venue-agent ")
    assert json.loads(capsys.readouterr().out)["machine"] == "till-3"


def test_status_lists_the_problems_of_a_daemon(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_daemon(config.parent, problems=(PROBLEM,), outbox_reports=2, outbox_bytes=5000):
        assert main(["status", "--config", str(config)]) == 1
    output = capsys.readouterr().out
    assert output.startswith("1 problem")
    assert "error: the service's address refuses connections" in output
    assert "(since 3 h ago)" in output
    assert "→ check service.base_url" in output
    assert "2 reports waiting, 4 KiB" in output
    assert fits_80_columns(output)


def test_a_revoked_device_is_not_healthy(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running_daemon(config.parent, is_revoked=True):
        assert main(["status", "--config", str(config)]) == 1
    output = capsys.readouterr().out
    assert "(revoked)" in output
    assert "commands     refused" in output


@pytest.mark.parametrize("code", ["credential-refused", "not-enrolled", "commands-rejected"])
def test_status_reports_refused_commands(
    config: Path, capsys: pytest.CaptureFixture[str], code: str
) -> None:
    with running_daemon(config.parent, problems=(PROBLEM.model_copy(update={"code": code}),)):
        main(["status", "--config", str(config)])
    output = capsys.readouterr().out
    assert "commands     refused; 14 received since the start" in output
    assert "by stream" not in output


def test_status_reports_not_running_without_a_daemon(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--config", str(config)]) == 2
    assert capsys.readouterr().out.startswith("not running\n")


def test_status_of_a_stopped_daemon_shows_when_it_last_wrote_its_status(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = StateDirectory(config.parent / "state")
    state.prepare()
    timestamp = (datetime.now(UTC) - timedelta(days=2)).isoformat()
    StatusFile(state).write(status_of(config.parent, written_at=timestamp))
    assert main(["status", "--config", str(config)]) == 2
    assert "last status  2 d ago" in capsys.readouterr().out


def test_status_reports_a_daemon_without_a_status_file_as_starting(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = StateDirectory(config.parent / "state")
    state.prepare()
    with state.lock():
        assert main(["status", "--config", str(config)]) == 1
    assert capsys.readouterr().out.startswith("starting")


def test_status_as_json_has_the_documented_keys(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_daemon(config.parent, problems=(PROBLEM,)):
        assert main(["status", "--json", "--config", str(config)]) == 1
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {
        "verdict", "running", "pid", "state_dir", "machine", "connection", "daemon", "upgrade",
    }  # fmt: skip
    assert document["verdict"] == "unhealthy"
    assert set(document["daemon"]["problems"][0]) == {
        "code", "severity", "title", "detail", "fix", "since",
    }  # fmt: skip
    assert main(["status", "--json", "--config", str(config)]) == 2
    document = json.loads(capsys.readouterr().out)
    assert (document["verdict"], document["running"], document["pid"]) == (
        "not running",
        False,
        None,
    )


def test_status_is_printed_despite_a_wrong_configuration(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(config.read_text().replace("location_id", "locaton_id"))
    with running_daemon(config.parent):
        assert main(["status", "--config", str(config)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("healthy")
    assert "did you mean 'location_id'?" in captured.err


def test_status_with_a_missing_configuration_file_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--config", str(tmp_path / "none.toml")]) == 2
    assert "the file does not exist" in capsys.readouterr().err


def test_untrusted_text_in_the_status_is_printable(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = PROBLEM.model_copy(update={"detail": "\x1b[2J\x07gone\u202e"})
    with running_daemon(config.parent, problems=(hostile,), activity="\x1b]0;x\x07"):
        main(["status", "--config", str(config)])
    output = capsys.readouterr().out
    assert "gone" in output, "the untrusted text must be printed"
    assert all(c.isprintable() or c == "\n" for c in output)


# ---------------------------------------------------------------------------- history


def _add_requests(config: Path, count: int) -> None:
    state = StateDirectory(config.parent / "state")
    state.prepare()
    Database(state).close()
    with sqlite3.connect(state.path / "agent.db") as database:
        for number in range(count):
            database.execute(
                "INSERT INTO requests (request_id, binding_id, kind, expires_at, state,"
                " received_at, updated_at, report_id, outcome, detail)"
                " VALUES (?, 'b', 'application', '2026-01-01', ?, ?, '2026-01-01', ?, ?, ?)",
                (
                    f"r-{number}",
                    ("submitted", "expired")[number % 2],
                    f"2026-01-01T00:{number:02d}:00+00:00",
                    "63a3b2c1-0000-4000-8000-000000000000",
                    ("completed", None)[number % 2],
                    (None, "it ran out before the machine came back from a long sleep")[number % 2],
                ),
            )
    database.close()


def test_history_lists_the_newest_requests_within_80_columns(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _add_requests(config, 30)
    assert main(["history", "--config", str(config)]) == 0
    output = capsys.readouterr().out
    assert fits_80_columns(output)
    lines = output.splitlines()
    assert lines[1].startswith("2026-01-01 00:29  application  expired    it ran out")
    assert lines[3].endswith("63a3b2c1-0000-4000-8000-000000000000")
    assert lines[-1].startswith("there are older rows")


def test_history_as_json_has_the_documented_keys(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _add_requests(config, 3)
    assert main(["history", "--json", "--limit", "2", "--config", str(config)]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 2
    assert set(rows[0]) == {
        "at", "kind", "request_id", "state", "attempt", "report_id", "outcome", "detail",
    }  # fmt: skip


def test_history_reports_that_there_are_no_requests(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", "--config", str(config)]) == 0
    assert capsys.readouterr().out == "no requests yet\n"
    assert main(["history", "--json", "--config", str(config)]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    "words",
    [
        ["history", "--limit", "0"],
        ["history", "--limit", "1000000000"],
        ["status", "--nonsense"],
        [],
    ],
)
def test_invalid_usage_exits_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(words)
    assert error.value.code == 2
    assert capsys.readouterr().err.startswith("usage: ")
