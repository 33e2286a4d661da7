"""Tests of the messages that the service sends to the socket of systemd."""

import os
import socket
import sys
from pathlib import Path

import pytest

from agent.wire.sd_notify import Notifier

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the test uses a Unix socket")


def test_systemd_receives_ready_and_watchdog_messages(tmp_path: Path) -> None:
    address = os.path.relpath(tmp_path / "notify")  # the length of the path is limited (unix(7))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        notifier = Notifier({"NOTIFY_SOCKET": address})
        notifier.ready("listening on http://127.0.0.1:1")
        notifier.alive()
        assert manager.recv(99) == b"READY=1\nSTATUS=listening on http://127.0.0.1:1"
        assert manager.recv(99) == b"WATCHDOG=1"
    notifier.alive()  # the socket is closed: this raises no error


@pytest.mark.parametrize(
    ("environment", "expected_s"),
    [
        ({}, 0),
        ({"WATCHDOG_USEC": "60000000"}, 60),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": str(os.getpid())}, 60),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}, 0),
        ({"WATCHDOG_USEC": "soon"}, 0),
    ],
)
def test_only_the_watched_process_has_a_watchdog_interval(
    environment: dict[str, str], expected_s: float
) -> None:
    assert Notifier(environment).watchdog_s == expected_s
    Notifier(environment).ready("")  # without NOTIFY_SOCKET, this raises no error
