"""Tests that the connectivity record survives a kill of the agent at each of its writes."""

import signal
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from agent.adapters.storage.record import read_record
from agent.adapters.storage.state import StateDirectory
from agent.wire.payloads.history import History, Incident
from tests import sizes
from tests.fakes.fake_clock import START, FakeClock
from tests.scenario.agent_process import environment
from tests.scenario.crash.recording import FAULTS, UNTIL_S, record
from tests.scenario.forked_process import start_forked

WITHIN_S = 120.0
WRITES = 13
"""How often the record is written while the faults are played."""
PLANS = [f"{side}:{number}" for number in range(1, WRITES + 1) for side in ("before", "after")]
IN_MEDIUM = {"before:1", "before:3", "after:4", "after:8", "before:13"}


def record_until_exit(home: Path, plan: str) -> tuple[History, list[tuple[str, float]], int]:
    """Record until the process ends. Return the record, the trace of its writes (side and number,
    time in seconds), and the exit code.
    """
    trace = home / "trace"
    process = start_forked(
        "tests.scenario.crash.recording", plan, str(trace), str(home / "state"),
        environment=environment(), output=home / "log",
    )  # fmt: skip
    code = process.join(WITHIN_S)
    lines = [line.split() for line in trace.read_text().splitlines()]
    return stored_history(home), [(name, float(at_s)) for name, at_s in lines], code


def stored_history(home: Path) -> History:
    return read_record(StateDirectory(home / "state"), START, START + timedelta(days=1))


@pytest.fixture(scope="module")
def uninterrupted_incidents(tmp_path_factory: pytest.TempPathFactory) -> tuple[Incident, ...]:
    """The incidents of a process that is not killed."""
    history, trace, code = record_until_exit(tmp_path_factory.mktemp("whole"), "never")
    assert code == 0
    assert trace[-1][0] == f"after:{WRITES}"
    assert len(history.incidents) == len(FAULTS)
    assert len(history.hours) == 1
    return history.incidents


@pytest.mark.parametrize("plan", sizes.large_except(IN_MEDIUM, PLANS))
async def test_a_kill_at_a_write_loses_no_incident_that_was_written(
    plan: str, uninterrupted_incidents: tuple[Incident, ...], tmp_path: Path
) -> None:
    history, trace, code = record_until_exit(tmp_path, plan)
    assert code == -signal.SIGKILL
    died_at = START + timedelta(seconds=trace[-1][1])
    commit_times = [at_s for name, at_s in trace if name.startswith("after")]
    last_write_at = START + timedelta(seconds=commit_times[-1]) if commit_times else START
    ended_incidents = [
        incident
        for incident in uninterrupted_incidents
        if (incident.ended_at or died_at) <= last_write_at
    ]
    assert all(incident in history.incidents for incident in ended_incidents)

    clock = FakeClock()
    clock.advance(trace[-1][1] + 5)
    await record(tmp_path / "state", clock, UNTIL_S + 600)
    second_history = stored_history(tmp_path)
    assert all(incident in second_history.incidents for incident in ended_incidents)
    assert all(incident.ended_at is not None for incident in second_history.incidents)
    later_incidents = [
        incident
        for incident in uninterrupted_incidents
        if incident.began_at > died_at + timedelta(minutes=2)
    ]
    causes = [incident.cause for incident in second_history.incidents]
    later_causes = [incident.cause for incident in later_incidents]
    assert causes[len(causes) - len(later_causes) :] == later_causes
    assert [event.kind for event in second_history.events] == (
        ["agent-killed"] if commit_times else []
    )
    with sqlite3.connect(tmp_path / "state" / "agent.db") as connection:
        assert connection.execute("PRAGMA quick_check").fetchone() == ("ok",)
    connection.close()
