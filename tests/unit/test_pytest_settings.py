"""The checks of tests/conftest.py apply to every test, in parallel runs too."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

pytestmark = pytest.mark.medium

BAD_TESTS = """
import asyncio, socket, threading, time, warnings
import pytest

def test_good():
    pass

def test_warns():
    warnings.warn("a warning")

def test_leaves_a_thread():
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()

def test_leaves_a_file_open():
    open(__file__)

async def test_forgets_to_await():
    async def nothing(): pass
    nothing()

def test_contacts_another_host():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s, pytest.raises(PermissionError):
        s.connect(("192.0.2.1", 9))
"""
LAST_BAD_TEST = """
def test_leaves_a_file_to_the_garbage_collector():
    class Node: pass
    node = Node()
    node.itself, node.file = node, open(__file__)
"""


def run_tests(folder: Path, *options: str) -> tuple[int, str]:
    """Run the tests of ``folder`` with the configuration and the rules of this project. Return the
    exit code and the output.
    """
    configuration = (
        "-c",
        str(ROOT / "pyproject.toml"),
        f"--rootdir={folder}",
        "-p",
        "tests.conftest",
    )
    flags = ("-p", "no:cacheprovider", "--tb=no")
    result = subprocess.run(
        (sys.executable, "-m", "pytest", *configuration, *flags, *options, str(folder)),
        capture_output=True, text=True, check=False, timeout=120, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return result.returncode, result.stdout


def test_a_test_that_warns_leaks_or_contacts_another_host_fails(tmp_path: Path) -> None:
    (tmp_path / "test_first.py").write_text(BAD_TESTS)
    (tmp_path / "test_last.py").write_text(LAST_BAD_TEST)
    code, text = run_tests(tmp_path, "-n1")
    assert code == 1, text
    assert set(re.findall(r"^(?:FAILED|ERROR) \S+::(\w+)", text, re.MULTILINE)) == {
        "test_warns", "test_leaves_a_thread", "test_leaves_a_file_open", "test_forgets_to_await",
        "test_contacts_another_host", "test_leaves_a_file_to_the_garbage_collector",
    }  # fmt: skip
    # If a check after a test fails, pytest counts the test as passed and adds an error.
    assert re.fullmatch(r"3 failed, 4 passed, 3 errors in .*s", text.splitlines()[-1]), text


FREEZING_TEST = """
import gc
from hypothesis import given, strategies

objects = []

def test_freezes():
    objects.append([])
    gc.freeze()

def test_after_freezing():
    assert gc.is_tracked(objects[0])
    assert any(each is objects[0] for each in gc.get_objects())

# hypothesis works although the objects of the collected tests are frozen
@given(strategies.integers())
def test_generates(_):
    pass
"""


def test_a_test_that_freezes_objects_does_not_affect_the_next_test(tmp_path: Path) -> None:
    (tmp_path / "test_freezes.py").write_text(FREEZING_TEST)
    code, message = run_tests(tmp_path)
    assert code == 0, message
