"""Plays interruptions to a recorder in virtual time, and kills itself at a write of the record.

    python -m tests.scenario.crash.recording PLAN TRACE STATE

PLAN is ``before|after:n``: the process dies before or after the n-th write of the record. With
another PLAN it does not die. Before and after each write, the process appends a line to TRACE: the
side and number as in PLAN, and the virtual time in seconds.
"""

import asyncio
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

from agent.adapters import failpoints
from agent.adapters.failpoints import Failpoint
from agent.adapters.storage.database import Database
from agent.adapters.storage.record import Record
from agent.adapters.storage.state import StateDirectory
from agent.tasks.record import Recorder
from tests.fakes.fake_clock import FakeClock
from tests.fakes.fake_path import FakePath, Fault

FAULTS = (
    Fault("cable", 300.0, 10.0),
    Fault("gateway", 600.0, 200.0),
    Fault("provider", 1200.0, 90.0),
    Fault("cable", 1290.0, 40.0),
)
UNTIL_S = 3700.0
"""The figures of the first hour are written before this time."""


async def record(state: Path, clock: FakeClock, until_s: float = UNTIL_S) -> None:
    """Record the faults, from the clock's present time on. Ends without a clean stop."""
    directory = StateDirectory(state)
    directory.prepare()
    database = Database(directory)
    path = FakePath(clock, [fault for fault in FAULTS if fault.at_s > clock.elapsed_s])
    recorder = Recorder(
        sensors=path, record=Record(database), clock=clock, keep=timedelta(days=30), boot_id="one"
    )
    task = asyncio.create_task(recorder.run())
    await path.play(recorder, until_s)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    database.close()


def main(plan: str, trace_path: str, state: str) -> None:
    clock = FakeClock()
    trace = os.open(trace_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    write_count = 0

    def listener(failpoint: Failpoint, is_over: bool) -> None:
        nonlocal write_count
        if failpoint is not Failpoint.RECORD_WRITTEN:
            return
        write_count += not is_over
        side = "after" if is_over else "before"
        os.write(trace, f"{side}:{write_count} {clock.elapsed_s}\n".encode())
        if plan == f"{side}:{write_count}":
            os.kill(os.getpid(), signal.SIGKILL)

    failpoints.set_listener(listener)
    asyncio.run(record(Path(state), clock))


if __name__ == "__main__":
    main(*sys.argv[1:])
