"""`run` where something is closed to it: a person is sent to root, a manager is told as ever."""

import os
from pathlib import Path
from typing import NoReturn

import pytest

from agent import daemon
from agent.cli.main import main
from agent.errors import AgentError, ConfigNotVisible, NotVisible

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
)
def test_who_is_told_what(
    error: AgentError,
    variables: dict[str, str],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def closed(path: Path | None, **_: object) -> NoReturn:
        raise error

    for name in ("SYSTEMD_EXEC_PID", "NOTIFY_SOCKET"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(daemon, "run", closed)
    assert main(["run"]) == code
    assert str(error) in capsys.readouterr().err
