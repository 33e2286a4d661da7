"""Doctor's check of the running daemon."""

import os
from pathlib import Path

from agent.adapters.storage.state import StateDirectory
from agent.adapters.storage.status_file import NAME
from agent.doctor.checks.daemon import daemon
from agent.doctor.context import Context


def test_a_daemon_with_an_unreadable_status_is_not_another_agent(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "state")
    state.prepare()
    (state.path / NAME).mkdir()
    with state.hold():
        outcome = daemon(Context(state=state))
    assert outcome.status == "fail"
    assert outcome.facts["daemon_pid"] == os.getpid()
