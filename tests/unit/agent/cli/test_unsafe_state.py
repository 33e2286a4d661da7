"""Tests that commands refuse a state directory that other users may write to, and print the fix."""

from pathlib import Path

import pytest

from agent.adapters.service_manager.last_exit import read_last_exit
from agent.adapters.storage.state import StateDirectory
from agent.doctor.checks import storage
from agent.doctor.context import Context
from agent.errors import StateError
from tests.scenario.agent_process import run_forked_agent, write_config
from tests.sizes import large_except


@pytest.fixture
def config(tmp_path: Path) -> Path:
    config = write_config(tmp_path, "http://127.0.0.1:9", application="max_duration_seconds = 2")
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o770)
    return config


@pytest.mark.medium
@pytest.mark.parametrize(
    "words",
    large_except(
        {"status", "run"},
        ("status", "history", "printers", "enroll", "run", "collect application"),
    ),
)
async def test_an_unsafe_state_directory_is_refused_in_two_lines(config: Path, words: str) -> None:
    code, output, errors = await run_forked_agent(config, *words.split())
    state = config.parent / "state"
    assert (code, output) == (1, "")
    problem, fix = errors.splitlines()
    assert problem.endswith(f"{state} is not safe: {state} is writable for its group (mode 0770)")
    assert fix == f"venue-agent: to use it: `chmod go-w {state}`"
    assert list(state.iterdir()) == []
    state.chmod(0o700)
    code, _, errors = await run_forked_agent(config, "history")
    assert (code, errors) == (0, "")


def test_doctor_reports_an_unsafe_state_directory_with_the_fix(config: Path) -> None:
    state = config.parent / "state"
    result = storage.state_directory(Context(state=StateDirectory(state)))
    assert (result.status, result.fix) == ("fail", f"`chmod go-w {state}`")


def test_the_last_exit_is_not_read_from_an_unsafe_directory(config: Path) -> None:
    (config.parent / "state/last-exit").write_text("success exited 0\n")
    with pytest.raises(StateError, match="is not safe"):
        read_last_exit(config.parent / "state")
