"""Tests of the state directory: its mode, its lock, and the quarantine for damaged files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.adapters.storage.state import (
    QUARANTINE_MAX_BYTES,
    QUARANTINE_MAX_FILES,
    StateDirectory,
    read_pid,
)
from agent.errors import StateError

HOLDER = """
import sys
from pathlib import Path
from agent.adapters.storage.state import StateDirectory
with StateDirectory(Path(sys.argv[1])).lock():
    print("held", flush=True)
    sys.stdin.read()
"""
"""A program that locks a state directory until its standard input is closed."""


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    state = StateDirectory(tmp_path / "deep" / "state")
    state.prepare()
    return state


def test_the_directory_is_private(state: StateDirectory) -> None:
    state.prepare()

    assert state.path.stat().st_mode & 0o777 == 0o700
    assert list(state.path.iterdir()) == []


def test_state_directory_that_cannot_be_created_raises_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StateError, match="file/state cannot be written: Not a directory"):
        StateDirectory(tmp_path / "file" / "state").prepare()


def test_a_second_holder_is_refused_with_the_pid_of_the_first(state: StateDirectory) -> None:
    with (
        state.lock(),
        pytest.raises(StateError, match=rf"another agent \(process {os.getpid()}\)"),
        state.lock(),
    ):
        pytest.fail("held twice")


def test_a_state_directory_is_locked_until_its_process_ends(state: StateDirectory) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(state.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert state.holder() == other.pid
        with pytest.raises(StateError, match=f"process {other.pid}"), state.lock():
            pytest.fail("held twice")
        other.stdin.close()
        other.wait(10)

    assert state.holder() is None
    assert read_pid(state.path) == other.pid
    with state.lock():
        assert state.holder() == os.getpid()


def test_a_killed_holder_leaves_no_lock(state: StateDirectory) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(state.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        other.kill()
        other.wait(10)

    with state.lock():
        assert read_pid(state.path) == os.getpid()


def test_a_state_directory_that_was_never_locked_has_no_holder(tmp_path: Path) -> None:
    assert StateDirectory(tmp_path).holder() is None
    assert StateDirectory(tmp_path / "none").holder() is None


@pytest.mark.parametrize("content", ["", "not a number", "\x00\x00"])
def test_an_invalid_pid_in_the_lock_file_is_ignored(state: StateDirectory, content: str) -> None:
    (state.path / "agent.lock").write_text(content)

    assert state.holder() is None
    with state.lock():
        assert state.holder() == os.getpid()


def test_lock_file_that_cannot_be_opened_raises_an_error(state: StateDirectory) -> None:
    (state.path / "agent.lock").mkdir()

    with (
        pytest.raises(StateError, match=r"agent\.lock is a directory, .*: remove it"),
        state.lock(),
    ):
        pytest.fail("held a directory")


def test_a_quarantined_database_is_kept_whole_until_newer_files_replace_it(
    state: StateDirectory,
) -> None:
    (state.path / "agent.db").write_text("main")
    (state.path / "agent.db-wal").write_text("wal")

    target = state.quarantine_file(*(state.path / f"agent.db{end}" for end in ("", "-wal", "-shm")))

    assert target.read_text() == "main"
    assert target.with_name(target.name + "-wal").read_text() == "wal"
    assert not (state.path / "agent.db").exists()
    for number in range(QUARANTINE_MAX_FILES + 5):
        quarantined = state.quarantine(f"{number}.json", b"x")
        assert quarantined.exists()
    assert len(list(state.quarantine_path.iterdir())) == QUARANTINE_MAX_FILES
    assert not target.exists()
    assert state.quarantine_path.stat().st_mode & 0o777 == 0o700


def test_the_quarantine_is_bounded_in_bytes_and_keeps_the_newest_file(
    state: StateDirectory,
) -> None:
    for name in ("a", "b", "c"):
        with (state.path / name).open("wb") as file:
            file.truncate(QUARANTINE_MAX_BYTES // 2 + 1)  # a sparse file, which needs no disk space
        state.quarantine_file(state.path / name)

    assert [path.name[-2:] for path in state.quarantine_path.iterdir()] == ["-c"]
    with (state.path / "d").open("wb") as file:
        file.truncate(QUARANTINE_MAX_BYTES + 1)
    state.quarantine_file(state.path / "d")

    assert [path.name[-2:] for path in state.quarantine_path.iterdir()] == ["-d"]
