"""Tests that a refused TCP connection is also recognised on Windows, which reports it late."""

import ctypes
import socket
from typing import Any

import pytest

from collectors.network.scan import sockets
from collectors.shared.tcp_refusal import refusal_wait_s, report_refusal_at_once


class FakeWinsock:
    """Records the calls of WSAIoctl (winsock2.h)."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int, bytes]] = []

    def WSAIoctl(  # noqa: N802 - the name of the API
        self, handle: ctypes.c_size_t, code: ctypes.c_uint32, value: bytes, size: int, *_: Any
    ) -> int:
        self.calls.append((handle.value, code.value, value[:size]))
        return 0


def test_only_windows_is_set_to_report_a_refusal_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    winsock = FakeWinsock()
    with socket.socket() as connection:
        report_refusal_at_once(connection, winsock)
        assert winsock.calls == []
        monkeypatch.setattr("sys.platform", "win32")
        report_refusal_at_once(connection, winsock)
        # SIO_TCP_INITIAL_RTO with the round-trip time -1 and the number of SYN repetitions -2
        assert winsock.calls == [(connection.fileno(), 0x98000011, b"\xff\xff\xfe\0")]


def test_only_windows_needs_a_longer_wait_for_a_refusal() -> None:
    assert [refusal_wait_s(1.5, platform) for platform in ("linux", "darwin", "win32")] == [
        1.5,
        1.5,
        2.5,
    ]
    assert refusal_wait_s(3.0, "win32") == 3.0


def test_each_connection_of_the_scan_reports_a_refusal_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepared: list[socket.socket] = []
    monkeypatch.setattr(sockets, "report_refusal_at_once", prepared.append)
    network = sockets.SocketNetwork(watch_neighbours=False)
    try:
        assert network.connect("127.0.0.1", 9)
    finally:
        network.close()
    assert len(prepared) == 1
