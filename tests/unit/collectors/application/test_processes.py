"""The facts about the programs that the configuration lists in ``watch_processes``."""

import os
from collections.abc import Callable
from types import SimpleNamespace

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.application.deadline import Deadline
from collectors.application.readers import processes, resources
from collectors.application.readers.processes import Restarts, Sample
from tests.unit.collectors.application.fixtures import by_key, values

DEADLINE = Deadline.after(3600)


def sample(pid: int, cpu_s: float, created: float = 1_795_000_000.0) -> Sample:
    return Sample(pid, "Pos.exe", created, cpu_s, 1000)


def test_facts_of_a_running_program_are_read() -> None:
    tables = iter([(sample(1, 5.0),), (sample(1, 5.25), sample(2, 0.5, 1_795_000_100.0))])
    reading = processes.read_processes(
        DEADLINE,
        ("pos",),
        lambda pid, _: Restarts(pid),  # a count equal to the PID shows which process was selected
        table=lambda _: next(tables),
        wait=lambda _: None,
    )
    assert values(reading.fields) == {
        "process.watched": ("pos",),
        "process.pos.running": True,
        "process.pos.count": 2,
        "process.pos.startedAt": "2026-11-18T11:06:40+00:00",
        "process.pos.cpuFraction": 0.75,
        "process.pos.memoryBytes": 2000,
        "process.pos.restartsSinceBoot": 1,
    }


def test_a_watched_program_that_is_not_running_is_reported() -> None:
    fields = by_key(
        processes.read_processes(DEADLINE, ("pos",), table=lambda _: (), wait=lambda _: None)
    )
    assert fields["process.pos.running"].value is False
    assert fields["process.pos.count"].value == 0
    assert fields["process.pos.memoryBytes"].status == "not-applicable"


def test_empty_watch_list_reads_no_process_table() -> None:
    def table(_: frozenset[str]) -> tuple[Sample, ...]:
        raise AssertionError("no process must be read without watched programs")

    assert values(processes.read_processes(DEADLINE, (), table=table).fields) == {
        "process.watched": ()
    }


def test_the_process_of_the_test_is_in_the_process_table() -> None:
    name = psutil.Process().name()
    result = processes.read_table(frozenset({processes.program_name(name)}))
    own = next(entry for entry in result if entry.pid == os.getpid())
    assert own.memory_bytes > 0


def test_watched_programs_beyond_the_limit_are_counted() -> None:
    names = tuple(f"p{n}" for n in range(40))
    reading = processes.read_processes(DEADLINE, names, table=lambda _: (), wait=lambda _: None)
    assert reading.truncated
    assert reading.limitations == ("watched programs beyond the limit of 32, not listed: 8",)


@given(st.lists(st.text(), max_size=5))
def test_any_watched_names_have_distinct_keys(names: list[str]) -> None:
    reading = processes.read_processes(DEADLINE, names, table=lambda _: (), wait=lambda _: None)
    keys = [field.key for field in reading.fields]
    assert len(set(keys)) == len(keys)


def test_use_of_each_core_is_measured_between_two_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    times = type(psutil.cpu_times())
    zeros = dict.fromkeys(times._fields, 0.0)
    before = times(**zeros)
    after = times(**{**zeros, "user": 1.0, "idle": 2.0, "iowait": 1.0})
    readings = iter([[before, before], [after, before]])
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: next(readings))
    monkeypatch.setattr(resources, "WINDOW_S", 0.001)
    facts = {field.key: field.value for field in resources.read_cpu(DEADLINE).fields}
    uses = [facts[f"cpu.core.{number}.useFraction"] for number in (0, 1)]
    assert uses == [0.25, 0.0]
    assert facts["cpu.useFraction"] == 0.125
    assert facts["cpu.busiestCoreUseFraction"] == 0.25


def frequency(error: Exception | None = None, *, megahertz: float = 0.0) -> Callable[[], object]:
    """Return a replacement of `psutil.cpu_freq`. It raises ``error``, or returns ``megahertz``."""

    def cpu_freq() -> object:
        if error is not None:
            raise error
        return SimpleNamespace(current=megahertz)

    return cpu_freq


@pytest.mark.parametrize(
    ("cpu_freq", "expected"),
    [
        (frequency(megahertz=3504.0), 3504),
        (frequency(megahertz=4.5), None),  # psutil on an Apple M4
        (frequency(SystemError("returned a result with an exception set")), None),  # on an M5
        (frequency(NotImplementedError()), None),
    ],
    ids=["m2", "m4", "m5", "arm-board"],
)
def test_an_impossible_frequency_is_left_out_and_the_use_is_still_measured(
    cpu_freq: Callable[[], object], expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil, "cpu_freq", cpu_freq)
    monkeypatch.setattr(resources, "WINDOW_S", 0.001)
    fields = by_key(resources.read_cpu(DEADLINE))
    assert fields["cpu.frequencyMegahertz"].value == expected
    assert fields["cpu.useFraction"].status == "available"
