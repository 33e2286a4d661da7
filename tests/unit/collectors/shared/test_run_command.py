"""Tests that programs are run with limits for their duration, output and environment."""

import errno
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from collectors.application.source import status_of
from collectors.shared.run_command import (
    ERROR_MAX_BYTES,
    NotInstalled,
    output_of,
    run_command,
    start_command,
)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer for the end of a killed program, because the machine may be busy."""
    monkeypatch.setattr("collectors.shared.run_command.REAPED_WITHIN_S", 60)


def test_a_program_that_writes_for_ever_is_ended() -> None:
    with pytest.raises(ValueError, match="more than"):
        run_command(("yes",), time.monotonic() + 60, max_bytes=1000)


def test_a_program_that_is_not_installed_raises_an_error() -> None:
    with pytest.raises(NotInstalled) as raised:
        run_command(("no-such-program-here",), time.monotonic() + 60)
    assert status_of(raised.value) == ("unsupported", "no-such-program-here is not installed")


def test_a_program_can_write_more_to_stderr_than_a_pipe_holds() -> None:
    script = "head -c 1000000 /dev/zero >&2; echo done"
    output = run_command(("sh", "-c", script), time.monotonic() + 60)
    assert (output.exit_code, output.data, len(output.error)) == (0, b"done\n", ERROR_MAX_BYTES)


def test_a_program_can_write_more_to_stderr_than_a_pipe_holds_on_windows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = start_command(("sh", "-c", "head -c 1000000 /dev/zero >&2; echo done"))
    monkeypatch.setattr("sys.platform", "win32")
    output = output_of(process, "sh", time.monotonic() + 5)
    assert (output.exit_code, output.data, len(output.error)) == (0, b"done\n", ERROR_MAX_BYTES)


def test_a_process_that_a_program_leaves_behind_is_awaited_only_until_the_deadline(
    tmp_path: Path,
) -> None:
    script = f"sleep infinity & echo $! >{tmp_path}/pid; exec >&-"
    with pytest.raises(TimeoutError, match="sh did not answer before the deadline"):
        run_command(("sh", "-c", script), time.monotonic() + 1)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_a_program_that_closes_its_output_and_never_ends_is_ended() -> None:
    script = "exec >&- 2>&-; exec sleep infinity"
    with pytest.raises(TimeoutError, match="sh did not answer before the deadline"):
        run_command(("sh", "-c", script), time.monotonic() + 1)


def test_a_program_that_never_ends_is_ended() -> None:
    with pytest.raises(TimeoutError, match="sleep did not answer before the deadline"):
        run_command(("sleep", "infinity"), time.monotonic() + 0.2)


def test_program_that_cannot_be_killed_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    process = start_command(("sleep", "infinity"))
    with monkeypatch.context() as patched:
        patched.setattr(subprocess.Popen, "kill", refuse)
        patched.setattr("collectors.shared.run_command.REAPED_WITHIN_S", 0.2)
        with pytest.raises(TimeoutError, match="sleep did not answer before the deadline"):
            output_of(process, "sleep", time.monotonic() + 0.2)
    process.kill()
    process.wait()


def test_a_program_gets_no_more_of_the_environment_than_it_needs() -> None:
    environ = {"HOME": "/home/till", "LD_PRELOAD": "/tmp/evil.so", "CUPS_SERVER": "elsewhere"}
    output = run_command(("env",), time.monotonic() + 60, environ=environ)
    assert output.exit_code == 0
    names = {line.partition("=")[0] for line in output.data.decode().splitlines()}
    assert names == {"HOME", "LC_ALL", "PATH"}
    output = run_command(("env",), time.monotonic() + 60, environ={})
    assert b"HOME" not in output.data
