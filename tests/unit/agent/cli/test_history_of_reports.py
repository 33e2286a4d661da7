"""Tests that `history ID` prints a stored report as it was sent, and that `history` and `status`
show the headlines of reports.
"""

import json
from pathlib import Path
from uuid import UUID

import pytest

from agent.adapters.storage.database import Database
from agent.adapters.storage.ledger import Ledger
from agent.adapters.storage.state import StateDirectory
from agent.cli.main import main
from agent.presentation.headline import headline_of
from agent.rules.lifecycle import Event
from agent.rules.reports.sealing import seal
from agent.wire.codec import to_plain
from agent.wire.device_operations import SubmitResultRequest
from tests.fixtures import payloads
from tests.unit.agent.cli.running_state import running_daemon, write_config
from tests.unit.agent.samples import BINDING, NOW, command

REPORT_ID = payloads.REPORT_ID
REQUEST_ID = str(UUID(int=1))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path)


def test_history_shows_the_headline_of_each_stored_report(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_report(config, is_sent=True)
    assert main(["history", "--config", str(config)]) == 0
    output = capsys.readouterr().out
    headline = headline_of(payloads.small_venue()).verdict
    assert headline in " ".join(output.split())
    assert output.splitlines()[-1].strip() == REPORT_ID
    assert all(len(line) <= 80 for line in output.splitlines())


def test_status_shows_the_headline_of_the_last_reports(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_report(config, is_sent=False)
    with running_daemon(config.parent):
        main(["status", "--config", str(config)])
    headline = headline_of(payloads.small_venue()).verdict
    assert f"ago: {headline}" in " ".join(capsys.readouterr().out.split())


def test_failed_report_without_payload_is_listed_by_its_id(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_report(config, is_sent=True, has_payload=False)
    assert main(["history", "--config", str(config)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(REPORT_ID)


def store_report(config: Path, *, is_sent: bool, has_payload: bool = True) -> None:
    """Store a report in the state directory."""
    state = StateDirectory(config.parent / "state")
    state.prepare()
    database = Database(state)
    ledger = Ledger(database)
    journal, outbox = ledger.journal, ledger.outbox
    journal.add(command(1), NOW)
    entry = journal.get(UUID(int=1))
    assert entry is not None
    entry = journal.move(journal.move(entry, Event.ACCEPTED, NOW), Event.STARTED, NOW)
    payload = payloads.small_venue() if has_payload else None
    outcome = "completed" if has_payload else "failed"
    submission = SubmitResultRequest(
        report_id=UUID(REPORT_ID),
        binding_id=BINDING,
        kind="network",
        outcome=outcome,
        report=payload,
        request_id=entry.request_id,
    )
    ledger.hand_over(entry, seal(submission, 10**6), NOW)
    item = outbox.oldest()
    assert item is not None
    if is_sent:
        ledger.settle(item, NOW)
    database.close()


@pytest.mark.parametrize("is_sent", [False, True])
@pytest.mark.parametrize("report_or_request_id", [REPORT_ID, REPORT_ID[:4].upper(), REQUEST_ID])
def test_history_prints_a_report_by_its_id_a_prefix_or_its_request_id(
    config: Path, capsys: pytest.CaptureFixture[str], report_or_request_id: str, is_sent: bool
) -> None:
    store_report(config, is_sent=is_sent)
    assert main(["history", report_or_request_id, "--config", str(config)]) == 0
    output = capsys.readouterr().out
    assert "Kitchen printer has moved" in output
    last = " ".join(output[output.rindex("report ") :].split())
    assert last.startswith(f"report {REPORT_ID}, {'sent' if is_sent else 'waits to be sent'}")
    assert all(len(line) <= 80 for line in output.splitlines())


def test_history_as_json_prints_the_payload_that_was_sent(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_report(config, is_sent=True)
    assert main(["history", REPORT_ID, "--json", "--config", str(config)]) == 0
    assert json.loads(capsys.readouterr().out) == to_plain(payloads.small_venue())


def test_history_writes_the_page_of_a_report(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_report(config, is_sent=True)
    page = config.parent / "page.html"
    assert main(["history", REPORT_ID, "--html", str(page), "--config", str(config)]) == 0
    assert "<html" in page.read_text()
    captured = capsys.readouterr()
    assert "Kitchen printer" in captured.out
    assert captured.err == f"written to {page}\n"


def test_failed_report_without_payload_is_printed(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_report(config, is_sent=True, has_payload=False)
    assert main(["history", REPORT_ID, "--config", str(config)]) == 0
    output = capsys.readouterr().out
    assert output.startswith("network report without content: collection-failed\n")
    page = config.parent / "page.html"
    assert main(["history", REPORT_ID, "--html", str(page), "--config", str(config)]) == 1
    assert "has no content" in capsys.readouterr().err
    assert main(["history", REPORT_ID, "--json", "--config", str(config)]) == 0
    assert capsys.readouterr().out == "null\n"


def test_the_history_of_a_deleted_or_unknown_report_is_an_error(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_report(config, is_sent=True)
    database = Database(StateDirectory(config.parent / "state"))
    with database._connection as connection:
        connection.execute("DELETE FROM sent")
    database.close()
    for given_id, text in (
        (REPORT_ID, f"report {REPORT_ID} is no longer stored: the newest 10 sent reports are kept"),
        (REQUEST_ID, "is no longer stored"),
        ("ffffffff", "no id of a request or report begins with ffffffff"),
    ):
        assert main(["history", given_id, "--config", str(config)]) == 1
        assert text in capsys.readouterr().err


@pytest.mark.parametrize("words", [["till"], ["1"], ["%%%%"]])
def test_history_refuses_an_invalid_id(
    words: list[str], config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as error:
        main(["history", *words, "--config", str(config)])
    assert error.value.code == 2
    assert "is neither the id of a request or report" in capsys.readouterr().err


def test_history_as_html_requires_an_id(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--html", "page.html", "--config", str(config)]) == 2
    assert "--html requires the ID of a report" in capsys.readouterr().err
