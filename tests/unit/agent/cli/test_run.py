"""Tests of `run` when a file is not accessible, or when the terminal has closed."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final, NoReturn

import pytest

from agent import daemon
from agent.cli.main import main
from agent.errors import AgentError, ConfigNotVisible, NotVisible

ON_A_CLOSING_TERMINAL: Final = """
import argparse, os, pty, sys
from agent import daemon
from agent.cli import run

master, slave = pty.openpty()
os.dup2(slave, 1)
os.dup2(slave, 2)

async def stop(*_, **__):
    sys.stdout.write("output that is never displayed")
    os.close(master)

daemon.run = stop
sys.exit(run.run(argparse.Namespace(config=None)))
"""
"""A program that runs a daemon on a pseudo-terminal, which closes before the output is flushed."""

CLOSED_CONFIG = ConfigNotVisible(("/etc/x is closed to this user",))
CLOSED_STATE = NotVisible("the state directory /var/x is closed to this user")


@pytest.mark.parametrize(
    ("error", "variables", "code"),
    [
        (CLOSED_CONFIG, {}, 3),
        (CLOSED_STATE, {}, 3),
        (CLOSED_CONFIG, {"SYSTEMD_EXEC_PID": str(os.getpid())}, 2),
        (CLOSED_STATE, {"SYSTEMD_EXEC_PID": str(os.getpid())}, 1),
        (CLOSED_CONFIG, {"SYSTEMD_EXEC_PID": "1"}, 3),
    ],
    ids=[
        "config-by-a-user",
        "state-by-a-user",
        "config-by-systemd",
        "state-by-systemd",
        "config-with-the-id-of-another-process",
    ],
)
def test_exit_code_for_an_inaccessible_file_depends_on_who_started_the_agent(
    error: AgentError,
    variables: dict[str, str],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def fail(path: Path | None, **_: object) -> NoReturn:
        raise error

    for name in ("SYSTEMD_EXEC_PID", "NOTIFY_SOCKET"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(daemon, "run", fail)
    assert main(["run"]) == code
    assert str(error) in capsys.readouterr().err


@pytest.mark.medium
def test_a_closed_terminal_does_not_change_the_exit_code() -> None:
    """Python flushes stdout at exit, and exits with code 120 if that fails."""
    command = (sys.executable, "-I", "-c", ON_A_CLOSING_TERMINAL)  # -I ignores PYTHONUNBUFFERED
    assert subprocess.run(command, timeout=60, check=False).returncode == 0
