"""Tests the sensors of print queues with a real CUPS."""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.adapters.connectivity.local import SystemLocalSensors
from agent.rules.connectivity.local_faults import LocalReading
from tests.lab.namespaces import entering
from tests.lab.spooler import Spooler, queue_command
from tests.unit.agent.samples import config

pytestmark = [pytest.mark.lab, pytest.mark.needs("peers")]


@pytest.fixture(scope="module")
def spooler() -> Iterator[Spooler]:
    with tempfile.TemporaryDirectory() as path:
        Path(path).chmod(0o711)
        cups = Spooler(Path(path) / "cups")
        with subprocess.Popen([*entering(), *cups.set_up()]) as running:
            try:
                cups.wait()
                for name in ("receipts", "kitchen"):
                    run(cups, *queue_command(name, "socket://192.0.2.9:9100"))
                yield cups
            finally:
                running.terminate()


def run(spooler: Spooler, *command: str) -> None:
    subprocess.run(command, env=spooler.environment, check=True, capture_output=True)


async def read(spooler: Spooler) -> LocalReading:
    state = spooler.directory / "state"
    # The sensors expect the socket in the state directory of CUPS.
    if not (state / "cups.sock").is_symlink():
        (state / "cups.sock").symlink_to(spooler.socket)
    return await SystemLocalSensors(config(), tuple, state).read()


async def test_stopped_and_rejecting_queues_are_read_from_cups_with_their_faults(
    spooler: Spooler,
) -> None:
    first_reading = await read(spooler)
    assert first_reading.complete_causes == {"queue-stopped"}
    assert {key[1]: state.fault for key, state in first_reading.states.items()} == {
        "receipts": None, "kitchen": None,
    }  # fmt: skip
    run(spooler, "cupsdisable", "-r", "no paper", "receipts")
    run(spooler, "cupsreject", "kitchen")
    states = (await read(spooler)).states
    receipts = states["queue-stopped", "receipts"]
    assert receipts.fault == "stopped (paused)"
    assert receipts.changed_at is not None
    earlier = first_reading.states["queue-stopped", "receipts"].changed_at
    assert earlier is not None
    assert receipts.changed_at >= earlier
    assert states["queue-stopped", "kitchen"].fault == "it accepts no jobs"
