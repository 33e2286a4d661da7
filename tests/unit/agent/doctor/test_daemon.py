"""Tests of doctor's checks of the running daemon and of its connectivity record."""

import os
from pathlib import Path

import pytest

from agent.adapters.storage.state import LOCK_NAME, StateDirectory
from agent.adapters.storage.status_file import NAME, StatusFile
from agent.doctor.checks.daemon import daemon, interruptions
from agent.doctor.context import Context
from agent.wire.payloads.history import History
from tests.unit.agent.cli.running_state import running_daemon
from tests.unit.agent.histories import (
    NOW,
    SINCE,
    bad_venue,
    good_venue,
    incident,
    store,
    unfinished,
)


def test_a_daemon_with_an_unreadable_status_is_identified_by_its_process_id(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "state")
    state.prepare()
    (state.path / NAME).mkdir()
    with state.lock():
        outcome = daemon(Context(state=state))
    assert outcome.status == "fail"
    assert outcome.facts["daemon_pid"] == os.getpid()


@pytest.mark.parametrize("is_known", [True, False])
def test_a_process_that_writes_no_status_is_named_if_it_is_known(
    tmp_path: Path, *, is_known: bool
) -> None:
    state = StateDirectory(tmp_path / "state")
    state.prepare()
    with state.lock():
        if not is_known:
            os.truncate(state.path / LOCK_NAME, 0)
        outcome = daemon(Context(state=state))
    name = f"process {os.getpid()}" if is_known else "an unknown process"
    assert outcome.detail == f"{name} uses the state directory and writes no status"


@pytest.mark.parametrize(
    ("history", "status", "beginning"),
    [
        (None, "skipped", "nothing is recorded yet"),
        (good_venue(), "ok", "no interruption since "),
        (bad_venue(), "ok", "last interruption 1 h ago, for 31 s: the network cable or Wi-Fi had"),
        (
            History(SINCE, (unfinished(incident("provider-down", NOW, 0)),)),
            "warn",
            "no connection since ",
        ),
    ],
    ids=["no-record", "good", "bad", "interrupted"],
)
def test_doctor_reports_the_last_interruption(
    tmp_path: Path, history: History | None, status: str, beginning: str
) -> None:
    with running_daemon(tmp_path) as state:
        if history is not None:
            store(state, history)
        outcome = interruptions(Context(state=state, daemon=StatusFile(state).read()))
    assert outcome.status == status
    assert outcome.detail.startswith(beginning)
