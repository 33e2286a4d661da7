"""Programs of the system are run with limits for their duration, output and environment."""

import time

import pytest

from collectors.application.source import status_of
from collectors.shared.run_command import NotInstalled, run_command


def test_a_program_that_writes_for_ever_is_ended() -> None:
    with pytest.raises(ValueError, match="more than"):
        run_command(("yes",), time.monotonic() + 60, max_bytes=1000)


def test_a_program_that_is_not_installed_raises_an_error() -> None:
    with pytest.raises(NotInstalled) as refused:
        run_command(("no-such-program-here",), time.monotonic() + 60)
    assert status_of(refused.value) == ("unsupported", "no-such-program-here is not installed")


def test_a_program_that_never_ends_is_ended() -> None:
    with pytest.raises(TimeoutError, match="sleep did not answer before the deadline"):
        run_command(("sleep", "infinity"), time.monotonic() + 0.2)


def test_a_program_gets_no_more_of_the_environment_than_it_needs() -> None:
    environ = {"HOME": "/home/till", "LD_PRELOAD": "/tmp/evil.so", "CUPS_SERVER": "elsewhere"}
    output = run_command(("env",), time.monotonic() + 60, environ=environ)
    assert output.exit_code == 0
    names = {line.partition("=")[0] for line in output.data.decode().splitlines()}
    assert names == {"HOME", "LC_ALL", "PATH"}
    output = run_command(("env",), time.monotonic() + 60, environ={})
    assert b"HOME" not in output.data
