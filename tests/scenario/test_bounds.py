"""Memory, disk space, requests and the quarantine have limits. Reaching a limit is reported."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from agent.adapters.collector_process import CollectorProcess
from agent.adapters.storage.state import QUARANTINE_MAX_BYTES, QUARANTINE_MAX_FILES, StateDirectory
from agent.rules.connectivity.events import DISK_FLOOR_BYTES
from agent.rules.lifecycle import State
from agent.tasks import receive
from agent.tasks.disk_floor import DiskFloor
from agent.tasks.health_board import HealthBoard
from agent.wire.vocabulary import Kind
from collectors.bounds import MEMORY_MAX_BYTES, NICENESS
from collectors.contract import ApplicationFacts, ApplicationJob
from tests.fakes.collectors.command import command_of
from tests.fakes.hostile_service import HostileService
from tests.fakes.virtual_clock import VirtualClock, run_in_virtual_time
from tests.scenario.simulated_agent import SimulatedApp, config_for, simulated_agent

ON_LINUX = sys.platform == "linux"


# ------------------------------------------------------------------ the collector process


@pytest.mark.skipif(not ON_LINUX, reason="macOS does not enforce RLIMIT_DATA, Windows has none")
async def test_child_over_its_memory_limit_ends_and_its_facts_are_kept() -> None:
    collected = await CollectorProcess(command_of("hungry")).collect(
        ApplicationJob(max_duration_s=60.0), lambda progress: None
    )
    assert isinstance(collected.facts, ApplicationFacts)
    assert collected.facts.fields, "the facts that the child sent before must not be lost"
    assert collected.error is not None
    assert collected.error.startswith("MemoryError after ")
    assert collected.facts.failures[-1].reason == collected.error
    assert int(collected.error.split()[2]) < MEMORY_MAX_BYTES / 2**20


PRINT_LIMITS = """
import os, resource
from collectors.bounds import limit_this_process
limit_this_process()
print(os.nice(0), resource.getrlimit(resource.RLIMIT_DATA)[0])
"""


@pytest.mark.skipif(os.name != "posix", reason="the test reads resource limits of POSIX")
def test_child_has_low_priority_and_a_memory_limit() -> None:
    words = subprocess.run(
        [sys.executable, "-c", PRINT_LIMITS], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    assert [int(word) for word in words] == [min(os.nice(0) + NICENESS, 19), MEMORY_MAX_BYTES]


# ------------------------------------------------------------------ the disk


async def _fill_and_free_the_disk(home: Path) -> None:
    clock = VirtualClock()
    async with HostileService(clock.true_time) as service:
        async with simulated_agent(config_for(home, service.base_url), home, clock) as app:
            await service.until(lambda: service.heartbeats > 0)
            app.collectors.may_end.clear()
            first = await service.request_report("network", expires_in_s=1e5)
            await service.until(lambda: len(service.acknowledged) == 2)
            # Each write now raises sqlite3.OperationalError, as on a full disk.
            _set_writable(app, False)
            app.collectors.may_end.set()
            second = await service.request_report("application", expires_in_s=1e5)
            await asyncio.sleep(1)
            assert app.health.is_set("state-failing")
            await asyncio.sleep(600)
            assert service.report_for(first) is None
            assert service.heartbeats > 5, "heartbeats must continue"
            assert service.most_calls_a_minute() <= 30
            _set_writable(app, True)
            await app.until_ended({first, second}, 600)
            assert app.collectors.runs == 2, (
                "the collected report must be kept until there is space"
            )
            await asyncio.sleep(120)
            assert not app.health.problems()
        assert sorted(r["requestId"] for r in service.reports) == sorted((first, second))
        assert service.violations == []


def _set_writable(app: SimulatedApp, is_writable: bool) -> None:
    app._database._connection.execute(f"PRAGMA query_only = {'OFF' if is_writable else 'ON'}")


def test_agent_reports_a_full_disk_and_recovers_when_there_is_space(memory_home: Path) -> None:
    run_in_virtual_time(_fill_and_free_the_disk(memory_home))


class _DiskWithFreeBytes(StateDirectory):
    """A state directory on a disk that has ``free`` free bytes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.free = 0

    def free_bytes(self) -> int:
        return self.free


async def test_scheduled_reports_are_skipped_if_disk_space_is_scarce(tmp_path: Path) -> None:
    kinds: list[Kind] = []
    disk, health = _DiskWithFreeBytes(tmp_path), HealthBoard(VirtualClock(), lambda: None)
    floor = DiskFloor(disk, health, kinds.append)
    for free in (DISK_FLOOR_BYTES - 1, 0):
        disk.free = free
        floor.start_or_skip("network")
    assert kinds == []
    (problem,) = health.problems()
    assert problem.code == "disk-scarce"
    assert problem.detail == "0 MiB are free, scheduled reports skipped: 2"
    disk.free = DISK_FLOOR_BYTES
    floor.start_or_skip("application")
    assert kinds == ["application"]
    assert health.problems() == ()
    assert StateDirectory(tmp_path).free_bytes() > 0


def test_the_quarantine_is_bounded_by_files_and_bytes(memory_home: Path) -> None:
    state = StateDirectory(memory_home)
    for number in range(QUARANTINE_MAX_FILES + 10):
        state.quarantine(f"{number}.json", b"x")
    names = sorted(path.name.split("-")[1] for path in state.quarantine_path.iterdir())
    assert len(names) == QUARANTINE_MAX_FILES
    assert "0.json" not in names
    half = b"x" * (QUARANTINE_MAX_BYTES // 2 - 100)
    for name in ("large-1", "large-2", "large-3"):
        state.quarantine(name, half)
    names = [path.name for path in state.quarantine_path.iterdir()]
    assert [n for n in sorted(names) if "large" in n][-1].endswith("large-3")
    assert sum(p.stat().st_size for p in state.quarantine_path.iterdir()) <= QUARANTINE_MAX_BYTES


# ------------------------------------------------------------------ requests


async def _flood(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receive, "UNFINISHED_MAX", 20)
    clock = VirtualClock()
    async with HostileService(clock.true_time) as service:
        async with simulated_agent(config_for(home, service.base_url), home, clock) as app:
            await service.until(lambda: service.heartbeats > 0)
            app.collectors.may_end.clear()
            request_ids = [
                await service.request_report("network", expires_in_s=1e6) for _ in range(50)
            ]
            await asyncio.sleep(60)
            assert app._ledger.journal.count_unfinished() == 20
            assert app.health.is_set("requests-flooding")
            app.collectors.may_end.set()
            # The dropped requests were not acknowledged: the service delivers them again.
            await app.until_ended(request_ids, 4 * 3600)
            assert not app.health.is_set("requests-flooding")
        assert len(service.reports) == 50
        assert service.violations == []


def test_requests_beyond_the_limit_are_answered_after_earlier_ones_end(
    memory_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_in_virtual_time(_flood(memory_home, monkeypatch))


async def _start_with_an_unreadable_report(home: Path) -> None:
    clock = VirtualClock()
    async with HostileService(clock.true_time) as service:
        config = config_for(home, service.base_url)
        async with simulated_agent(config, home, clock):
            await service.until(lambda: service.heartbeats > 0)
        connection = sqlite3.connect(home / "state" / "agent.db")
        connection.execute(
            "INSERT INTO outbox"
            " VALUES ('no uuid', NULL, 'x', 'network', 'completed', 0, 'x', x'00')"
        )
        connection.commit()
        connection.close()
        async with simulated_agent(config, home, clock) as app:
            request_id = await service.request_report("network", expires_in_s=1e5)
            await app.until_ended({request_id}, 300)
            entry = app.entry(request_id)
            assert entry is not None
            assert entry.state is State.SUBMITTED
            assert app.health.is_set("state-quarantined")
            assert not app.health.is_set("internal-error")
        (file,) = (home / "state" / "quarantine").iterdir()
        assert file.name.endswith("-outbox-row.json")


def test_an_unreadable_report_does_not_block_other_reports(memory_home: Path) -> None:
    run_in_virtual_time(_start_with_an_unreadable_report(memory_home))


def test_leftovers_of_a_killed_agent_are_removed_at_the_next_start(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    leftovers = (
        ".status.json.x1y2z3ab", ".device.json.00000000", ".identity.pem._a_b_c_d",
        ".printers.json.q7w8e9r0", ".probe.17",
    )  # fmt: skip
    other_files = ("device.json", "agent.db", "printers.json", ".somebody-elses")
    for name in (*leftovers, *other_files):
        (tmp_path / name).write_bytes(b"x")
    with state.lock():
        assert {path.name for path in tmp_path.iterdir()} == {*other_files, "agent.lock"}
