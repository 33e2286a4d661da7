"""A test that leaves a task, thread or socket behind fails (tests/conftest.py)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

LEAKING_TESTS = """
import asyncio, socket, threading

kept = []
stop = threading.Event()

async def test_task():
    kept.append(asyncio.create_task(asyncio.sleep(3600)))

def test_thread():
    threading.Thread(target=stop.wait, daemon=True).start()

def test_socket():
    kept.append(socket.socket())
    kept.clear()

async def test_task_that_is_cancelled():
    asyncio.create_task(asyncio.sleep(3600)).cancel()
"""


@pytest.mark.medium
def test_a_test_that_leaks_a_task_thread_or_socket_fails(tmp_path: Path) -> None:
    file = tmp_path / "test_leaking.py"
    file.write_text(LEAKING_TESTS)
    options = ("-c", ROOT / "pyproject.toml", "--rootdir", tmp_path, "-p", "tests.conftest", "-n0")
    result = subprocess.run(
        (sys.executable, "-m", "pytest", *options, "-q", "-rEfp", "-p", "no:cacheprovider", file),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = re.findall(r"^(ERROR|FAILED|PASSED) .*::test_(\w+)", result.stdout, re.MULTILINE)
    outcomes = {f"{outcome} {name}" for outcome, name in lines}
    failures = {outcome for outcome in outcomes if not outcome.startswith("PASSED")}
    assert failures == {"ERROR task", "ERROR thread", "FAILED socket"}, result.stdout
    assert "PASSED task_that_is_cancelled" in outcomes
