"""Tests that a process of root drops its privileges and continues as the owner of a directory.
Also tests the files that such a process writes.

`step_down` runs in a forked process if it changes the user, because a process cannot become root
again.
"""

import json
import os
import stat
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.adapters.accounts import privileges
from agent.adapters.accounts.privileges import replace_file, step_down, writer_of
from agent.errors import StateError

OWNER = 4711
"""The id of a user without an account, who owns the state directory."""
needs_root = pytest.mark.needs("other-user")


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that the service's user can enter. Other users cannot enter pytest's temporary
    directories.
    """
    with tempfile.TemporaryDirectory() as parent:
        Path(parent).chmod(0o755)
        state = Path(parent) / "state"
        state.mkdir(mode=0o700)
        yield state


def run_in_fork(act: Callable[[], Any]) -> Any:
    """Run ``act`` in a forked process. Return its result, or a description of its error."""
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        # Python warns about a fork in a process with threads, which pytest's workers have. It is
        # safe here, because the forked process only runs the action and exits.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.close(read_end)
            try:
                output = json.dumps(act())
            except StateError as error:
                output = json.dumps({"StateError": str(error)})
            except Exception:  # noqa: BLE001 - returned to the test
                output = json.dumps(traceback.format_exc())
            os.write(write_end, output.encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as answer:
        output = answer.read()
    os.waitpid(child, 0)
    return json.loads(output)


def skip_the_program_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the check that the new user can read this program. Python may be in root's home
    directory, where other users cannot read it.
    """
    monkeypatch.setattr(privileges, "_require_readable_program", lambda directory, uid: None)


@needs_root
def test_no_root_privilege_remains_after_step_down(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_the_program_check(monkeypatch)
    os.chown(directory, OWNER, OWNER)
    (directory.parent / "of-root").write_text("")
    (directory.parent / "of-root").chmod(0o600)

    def act() -> dict[str, Any]:
        has_stepped_down = step_down(directory)
        (directory / "file").write_text("x")
        try:
            os.setuid(0)
            can_become_root = True
        except PermissionError:
            can_become_root = False
        return {
            "has stepped down": has_stepped_down,
            "ids": [os.getresuid(), os.getresgid(), os.getgroups()],
            "owner of a new file": (directory / "file").stat().st_uid,
            "can read a file of root": os.access(directory.parent / "of-root", os.R_OK),
            "can become root": can_become_root,
            "home": os.environ["HOME"],
            "state": os.environ["STATE_DIRECTORY"],
        }

    result = run_in_fork(act)
    assert result == {
        "has stepped down": True,
        "ids": [[OWNER] * 3, [OWNER] * 3, [OWNER]],
        "owner of a new file": OWNER,
        "can read a file of root": False,
        "can become root": False,
        "home": "/",
        "state": str(directory),
    }


def test_step_down_does_nothing_for_a_missing_directory_or_a_directory_of_the_current_user(
    directory: Path,
) -> None:
    before = os.getuid(), os.environ.get("STATE_DIRECTORY")
    assert not step_down(directory)
    assert not step_down(directory / "none")
    assert (os.getuid(), os.environ.get("STATE_DIRECTORY")) == before


@needs_root
def test_step_down_to_a_user_who_cannot_read_the_program_raises_an_error(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(directory, OWNER, OWNER)
    closed = directory.parent / "closed"
    closed.mkdir(mode=0o700)
    (closed / "os.py").write_text("")
    monkeypatch.setattr(os, "__file__", str(closed / "os.py"))
    result = run_in_fork(lambda: step_down(directory))
    assert "who cannot read this program in" in result["StateError"]


@needs_root
def test_a_writer_opened_before_step_down_writes_as_root(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_the_program_check(monkeypatch)
    os.chown(directory, OWNER, OWNER)
    bundle = directory.parent / "bundle.zip"

    def act() -> list[Any]:
        with writer_of(bundle) as write:
            step_down(directory)
            write(b"content" * 100_000)
        return [bundle.stat().st_uid, bundle.stat().st_mode & 0o777]

    assert run_in_fork(act) == [0, 0o600]
    assert bundle.read_bytes() == b"content" * 100_000
    assert sorted(path.name for path in directory.parent.iterdir()) == ["bundle.zip", "state"]


@needs_root
def test_a_writer_that_is_never_called_creates_no_file(directory: Path) -> None:
    def act() -> list[Any]:
        with writer_of(directory / "bundle.zip"):
            step_down(directory)
        return []

    assert run_in_fork(act) == []
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize("kind", ["link", "directory", "fifo"])
def test_replacing_a_path_that_is_not_a_regular_file_raises_an_error(
    directory: Path, kind: str
) -> None:
    target = directory / "bundle.zip"
    if kind == "link":
        target.symlink_to("/dev/stdout")
    elif kind == "directory":
        target.mkdir()
    else:
        os.mkfifo(target)
    with pytest.raises(OSError, match="not a file"):
        replace_file(target, b"content")
    assert not stat.S_ISREG(target.lstat().st_mode)


def test_writing_to_a_missing_directory_raises_an_error(directory: Path) -> None:
    with pytest.raises(OSError, match="No such file or directory"):
        replace_file(directory / "none" / "bundle.zip", b"content")


@needs_root
def test_step_down_checks_the_executable_of_a_packaged_program(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a packaged program, the check reads the executable, because its modules have no files."""
    os.chown(directory, OWNER, OWNER)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", "/usr/bin/true")
    monkeypatch.setattr(os, "__file__", "/usr/bin/true/base_library.zip/os.pyc")
    assert run_in_fork(lambda: step_down(directory)) is True
