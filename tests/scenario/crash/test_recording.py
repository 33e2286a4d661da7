"""Tests that the connectivity record survives a kill of the agent at each of its writes."""

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
KILLED = -9
WRITES = 13
"""Writes of the record while the faults are played."""
PLANS = [f"{side}:{number}" for number in range(1, WRITES + 1) for side in ("before", "after")]
IN_MEDIUM = {"before:1", "before:3", "after:4", "after:8", "before:13"}


def recorded_until(home: Path, plan: str) -> tuple[History, list[tuple[str, float]], int]:
    """Record until the process dies. Return the record, the writes, and the exit code."""
    trace = home / "trace"
    process = start_forked(
        "tests.scenario.crash.recording", plan, str(trace), str(home / "state"),
        environment=environment(), output=home / "log",
    )  # fmt: skip
    code = process.join(WITHIN_S)
    lines = [line.split() for line in trace.read_text().splitlines()]
    return written(home), [(name, float(at_s)) for name, at_s in lines], code


def written(home: Path) -> History:
    return read_record(StateDirectory(home / "state"), START, START + timedelta(days=1))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Incident, ...]:
    """The incidents of a process that is not killed."""
    history, trace, code = recorded_until(tmp_path_factory.mktemp("whole"), "never")
    assert code == 0
    assert trace[-1][0] == f"after:{WRITES}"
    assert len(history.incidents) == len(FAULTS)
    assert len(history.hours) == 1
    return history.incidents


@pytest.mark.parametrize("plan", sizes.large_except(IN_MEDIUM.__contains__, PLANS))
async def test_a_kill_at_a_write_loses_no_incident_that_was_written(
    plan: str, whole: tuple[Incident, ...], tmp_path: Path
) -> None:
    history, trace, code = recorded_until(tmp_path, plan)
    assert code == KILLED
    died_at = START + timedelta(seconds=trace[-1][1])
    committed = [at_s for name, at_s in trace if name.startswith("after")]
    written_at = START + timedelta(seconds=committed[-1]) if committed else START
    ended = [incident for incident in whole if (incident.ended_at or died_at) <= written_at]
    assert all(incident in history.incidents for incident in ended)

    clock = FakeClock()
    clock.advance(trace[-1][1] + 5)
    await record(tmp_path / "state", clock, UNTIL_S + 600)
    again = written(tmp_path)
    assert all(incident in again.incidents for incident in ended)
    assert all(incident.ended_at is not None for incident in again.incidents)
    later = [incident for incident in whole if incident.began_at > died_at + timedelta(minutes=2)]
    assert [incident.cause for incident in again.incidents][
        len(again.incidents) - len(later) :
    ] == [incident.cause for incident in later]
    assert [event.kind for event in again.events] == (["agent-killed"] if committed else [])
    with sqlite3.connect(tmp_path / "state" / "agent.db") as connection:
        assert connection.execute("PRAGMA quick_check").fetchone() == ("ok",)
    connection.close()
