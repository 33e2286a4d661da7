"""Tests of the status file, and of the messages to the service manager."""

import socket
from pathlib import Path

import pytest

from agent.adapters.storage.state import StateDirectory
from agent.adapters.storage.status_file import (
    BindingStatus,
    DaemonStatus,
    StatusFile,
)
from agent.rules.health import Problem
from agent.wire.codec import encode
from agent.wire.sd_notify import Notifier

STATUS = DaemonStatus(
    version="0.1.0",
    pid=7,
    phase="running",
    started_at="2026-11-20T19:00:00+00:00",
    written_at="2026-11-20T19:00:01+00:00",
    config_path=None,
    binding=BindingStatus(
        instance_id="i", binding_id="b", organization_id="o", location_id="l", base_url="u"
    ),
    counters={"commands_received": 2},
    problems=(
        Problem(
            code="timeout", severity="error", title="t", detail="d", fix="f", since="s"
        ),
    ),
)  # fmt: skip


def test_a_written_status_is_read_unchanged(state: StateDirectory) -> None:
    file = StatusFile(state)
    assert file.read() is None

    file.write(STATUS)

    assert file.read() == STATUS
    assert (state.path / "status.json").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b"[1]"])
def test_a_damaged_status_file_is_read_as_none(state: StateDirectory, content: bytes) -> None:
    (state.path / "status.json").write_bytes(content)

    assert StatusFile(state).read() is None


def test_keys_of_a_newer_agent_are_ignored(state: StateDirectory) -> None:
    text = encode(STATUS).decode().replace('"pid":7', '"pid":7,"mood":"good"')
    (state.path / "status.json").write_text(text)

    assert StatusFile(state).read() == STATUS


def test_notifier_sends_status_to_the_service_manager(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "3000000"})

        notifier.ready()
        notifier.alive()
        notifier.status("one line\nand no other=1")
        notifier.status("")
        notifier.reloading(12)
        notifier.stopping()

        assert [manager.recv(999) for _ in range(6)] == [
            b"READY=1", b"WATCHDOG=1", b"STATUS=one line", b"STATUS=",
            b"RELOADING=1\nMONOTONIC_USEC=12", b"STOPPING=1",
        ]  # fmt: skip
    assert notifier.watchdog_s == 3.0
    notifier.alive()  # must not raise an error although the service manager has ended


@pytest.mark.parametrize(
    "environment", [{}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "5", "WATCHDOG_PID": "1"}]
)
def test_the_notifier_does_nothing_without_a_service_manager(environment: dict[str, str]) -> None:
    notifier = Notifier(environment)

    notifier.ready()

    assert notifier.watchdog_s == 0
