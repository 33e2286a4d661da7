"""Tests power failures after which only a part of the write-ahead log is on the disk.

A whole run is recorded. After each transaction, the recording stores the length of the log and what
the service has received so far. Then the log is cut at every frame (sqlite.org/fileformat2.html,
"The WAL-Index and the WAL File Format"), and the agent is started again with the part before the
cut.
"""

import asyncio
import copy
import shutil
import sqlite3
import struct
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from agent.adapters import failpoints
from agent.adapters.failpoints import Failpoint
from agent.adapters.storage.database import NAME
from tests import sizes
from tests.fakes.hostile_service import HostileService
from tests.fakes.virtual_clock import VirtualClock, run_in_virtual_time
from tests.scenario.simulated_agent import config_for, simulated_agent

WAL_HEADER, FRAME_HEADER = 32, 24
REQUESTS = ("network", "application", "network")


@dataclass(frozen=True, slots=True)
class Mark:
    """The state after a committed transaction, when the log was ``wal_bytes`` long.

    Args:
        rows: The agent's requests and outbox.
        waiting: The requests that the service keeps until the agent acknowledges them, by id.
        reports: The reports that the service has received.
    """

    wal_bytes: int
    rows: dict[str, list[tuple[object, ...]]]
    waiting: dict[str, object]
    reports: list[dict[str, object]]


@dataclass
class Recording:
    """A recorded run.

    Args:
        home: The directory with copies of the agent's identity and device record.
        port: The port of the service.
        device: The service's record of the device.
        marks: The states after each transaction.
        wal: The write-ahead log at the end of the run.
        database: The main file of the database at the beginning.
    """

    home: Path
    port: int = 0
    device: dict[str, object] = field(default_factory=dict)
    binding_id: str = ""
    marks: list[Mark] = field(default_factory=list)
    wal: bytes = b""
    database: bytes = b""

    @property
    def frame_bytes(self) -> int:
        page_size: int = struct.unpack(">I", self.wal[8:12])[0]
        return FRAME_HEADER + page_size

    def boundaries(self) -> list[int]:
        """Return the lengths to which the log can be cut between frames: 0, the length of the
        header, and each length at which the log ends with a whole frame.
        """
        return [0, *range(WAL_HEADER, len(self.wal) + 1, self.frame_bytes)]

    def last_mark_within(self, length: int) -> Mark | None:
        return next((m for m in reversed(self.marks) if m.wal_bytes <= length), None)


async def _record(home: Path) -> Recording:
    recording = Recording(home)
    clock = VirtualClock()
    async with HostileService(clock.true_time) as service:  # noqa: SIM117 - the url is needed
        async with simulated_agent(config_for(home, service.base_url), home, clock) as app:
            state = home / "state"
            # The log is cut later. The main file, which has all rows up to here, stays whole.
            app._database._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            recording.database = (state / NAME).read_bytes()

            def listener(failpoint: Failpoint, is_over: bool) -> None:
                wal = state / f"{NAME}-wal"
                if not is_over or not wal.exists():
                    return
                size = wal.stat().st_size
                if recording.marks and recording.marks[-1].wal_bytes == size:
                    return
                recording.marks.append(
                    Mark(
                        size,
                        _rows(app._database._connection),
                        copy.deepcopy(service._waiting),
                        copy.deepcopy(service.reports),
                    )
                )

            failpoints.set_listener(listener)
            try:
                for kind in REQUESTS:
                    request_id = await service.request_report(kind)
                    await service.until(lambda r=request_id: service.report_for(r) is not None)
                await asyncio.sleep(5)
            finally:
                failpoints.set_listener(lambda failpoint, is_over: None)
            recording.wal = (state / f"{NAME}-wal").read_bytes()
            recording.binding_id = service.binding_id
            recording.device = dict(service.device or {})
            recording.port = service._port
            for name in ("device.json", "identity.pem"):
                shutil.copy(state / name, home / name)
    return recording


def _rows(connection: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    return {
        table: [tuple(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY 1")]
        for table in ("requests", "outbox")
    }


def _restore(recording: Recording, home: Path, wal: bytes) -> None:
    state = home / "state"
    state.mkdir(parents=True)
    for name in ("device.json", "identity.pem"):
        shutil.copy(recording.home / name, state / name)
    (state / NAME).write_bytes(recording.database)
    if wal:
        (state / f"{NAME}-wal").write_bytes(wal)


def _rows_on_disk(home: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of a copy, because reading a write-ahead log in place changes its index."""
    copy_path = home / "copy"
    shutil.copytree(home / "state", copy_path)
    connection = sqlite3.connect(copy_path / NAME)
    try:
        return _rows(connection)
    finally:
        connection.close()
        shutil.rmtree(copy_path)


async def _continue_after_power_cut(recording: Recording, home: Path, length: int) -> None:
    """Start the agent after a power cut that left ``length`` bytes of the log.

    The service has the state that it had when the power was cut. Check that each request ends
    exactly once.
    """
    mark = recording.last_mark_within(length)
    clock = VirtualClock()
    service = HostileService(clock.true_time)
    service._port = recording.port
    service.binding_id, service.device = recording.binding_id, dict(recording.device)
    # The service may have received calls after the last transaction that is on the disk.
    service_mark = next((m for m in recording.marks if m.wal_bytes > length), mark)
    assert service_mark is not None
    service.reports = copy.deepcopy(service_mark.reports)
    service._waiting = copy.deepcopy(service_mark.waiting)
    request_ids = {str(r["requestId"]) for r in service.reports} | set(service._waiting)
    if mark is not None:
        request_ids |= {str(row[0]) for row in mark.rows["requests"]}
    async with service, simulated_agent(config_for(home, service.base_url), home, clock) as app:
        await app.until_ended(request_ids, 1200)
        await asyncio.sleep(30)
        assert not app.health.is_set("state-quarantined")
        collections = app.collectors.runs
    assert service.violations == []
    ended_ids = [str(report["requestId"]) for report in service.reports]
    assert sorted(ended_ids) == sorted(request_ids)
    assert len({str(report["reportId"]) for report in service.reports}) == len(ended_ids)
    assert collections <= len(request_ids)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return run_in_virtual_time(_record(tmp_path_factory.mktemp("recorded")))


def test_the_recorded_run_has_enough_frames_and_transactions(recording: Recording) -> None:
    assert len(recording.boundaries()) >= 40
    assert (len(recording.wal) - WAL_HEADER) % recording.frame_bytes == 0
    assert recording.marks[-1].wal_bytes == len(recording.wal)
    # A request has at least five transactions: it is received, acknowledged, started, handed over
    # and settled.
    assert len(recording.marks) >= 5 * len(REQUESTS)


def test_power_cut_keeps_committed_transactions_only(
    recording: Recording, memory_home: Path
) -> None:
    for length in recording.boundaries():
        home = memory_home / str(length)
        _restore(recording, home, recording.wal[:length])
        mark = recording.last_mark_within(length)
        assert _rows_on_disk(home) == (mark.rows if mark else {"requests": [], "outbox": []})


def test_every_request_ends_once_after_a_power_cut_at_any_frame(
    recording: Recording, memory_home: Path
) -> None:
    for length in recording.boundaries()[:: sizes.amount(medium=3, large=1)]:
        home = memory_home / str(length)
        _restore(recording, home, recording.wal[:length])
        run_in_virtual_time(_continue_after_power_cut(recording, home, length))


@pytest.mark.parametrize("seed", range(sizes.amount(medium=4, large=12)))
def test_torn_frame_is_ignored(recording: Recording, memory_home: Path, seed: int) -> None:
    rng = Random(seed)
    # Two boundaries do not follow a frame: 0, and the end of the header.
    intact_frames = rng.randrange(len(recording.boundaries()) - 2)
    intact_bytes = WAL_HEADER + intact_frames * recording.frame_bytes
    torn_log = bytearray(recording.wal[: intact_bytes + rng.randrange(1, recording.frame_bytes)])
    for _ in range(rng.randrange(3)):
        torn_log[rng.randrange(intact_bytes, len(torn_log))] ^= 0xFF
    _restore(recording, memory_home, bytes(torn_log))
    run_in_virtual_time(_continue_after_power_cut(recording, memory_home, intact_bytes))
