"""Tests the scan's real sockets on loopback: they send no bytes, and reset every connection except
those that a query takes over.
"""

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import closing
from time import monotonic
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.contract import Facts, SourceState
from collectors.network.discoveries import Discoveries
from collectors.network.scan import sockets
from collectors.network.scan.scan import (
    ScannedHost,
    ScanResult,
    merge,
    scan,
    with_neighbour_table,
)
from collectors.network.scan.sockets import SocketNetwork, parse_rtt_ms
from collectors.network.scan.targets import Target
from collectors.shared.background import in_background
from collectors.shared.linux.rtnetlink import LinkNeighbour


class NullRun:
    """A run that ignores progress. It is cancelled only when the test calls ``cancel``."""

    def __init__(self) -> None:
        self.cancelled = False
        self.wakers: list[Callable[[], None]] = []

    def progress(self, step: str, done: int, total: int | None = None) -> None: ...

    def checkpoint(self, facts: Facts) -> None: ...

    def on_cancel(self, wake: Callable[[], None]) -> None:
        self.wakers.append(wake)

    def cancel(self) -> None:
        self.cancelled = True
        for wake in self.wakers:
            wake()


class Listener:
    """Accepts connections. Records the bytes that each connection receives, or its error."""

    ENDED_BY_RESET: ClassVar[str] = "reset"

    def __init__(self) -> None:
        self.endings: list[bytes | str] = []
        self.ended = threading.Semaphore(0)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._socket.accept()
            except OSError:
                return
            with accepted:
                accepted.settimeout(60)
                try:
                    self.endings.append(accepted.recv(100))
                except ConnectionResetError:
                    self.endings.append(self.ENDED_BY_RESET)
            self.ended.release()


@pytest.fixture
def listener() -> Iterator[Listener]:
    new_listener = Listener()
    yield new_listener
    new_listener.close()


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_open_and_refused_ports_of_this_machine_are_reported(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = unused_port()
    contacts: list[int] = []
    datagrams: list[str] = []
    connect = SocketNetwork.connect

    def count_and_connect(network: SocketNetwork, address: str, port: int) -> bool:
        contacts.append(port)
        return connect(network, address, port)

    monkeypatch.setattr(SocketNetwork, "connect", count_and_connect)
    monkeypatch.setattr(SocketNetwork, "prime", lambda _, address: datagrams.append(address))
    result = scan(
        [Target("127.0.0.1", "local")],
        (listener.port, closed),
        deadline_s=monotonic() + 60,
        run=NullRun(),
        discoveries=Discoveries(),
    )
    (host,) = result.hosts
    assert host.open_ports == (listener.port,)
    assert host.refused_ports == (closed,)
    assert result.state.state == "succeeded"
    assert datagrams == []
    assert sorted(contacts) == sorted((listener.port, closed))


def test_a_connection_is_reset_without_sending_a_byte(listener: Listener) -> None:
    scan(
        [Target("127.0.0.1", "local")],
        (listener.port,),
        deadline_s=monotonic() + 60,
        run=NullRun(),
        discoveries=Discoveries(),
    )
    assert listener.ended.acquire(timeout=60)
    assert listener.endings == [Listener.ENDED_BY_RESET]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can disconnect a TCP socket")
def test_a_connection_is_reset_although_a_new_program_holds_a_copy_of_its_descriptor(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: list[int] = []
    connect_result = sockets._connect_result

    def copy_descriptor(connection: socket.socket, *arguments: Any) -> sockets.ConnectResult:
        copies.append(os.dup(connection.fileno()))
        return connect_result(connection, *arguments)

    monkeypatch.setattr(sockets, "_connect_result", copy_descriptor)
    with closing(SocketNetwork(watch_neighbours=False)) as network:
        network.connect("127.0.0.1", listener.port)
        while not network.wait(5.0).contacts:
            pass
        network.drop("127.0.0.1", listener.port)
        try:
            assert listener.ended.acquire(timeout=60)
        finally:
            for descriptor in copies:
                os.close(descriptor)
    assert listener.endings == [Listener.ENDED_BY_RESET]


def test_a_taken_connection_stays_open_and_others_are_reset(
    listener: Listener,
) -> None:
    with closing(SocketNetwork(watch_neighbours=False)) as network:
        for _ in range(2):
            network.connect("127.0.0.1", listener.port)
        ended = 0
        while ended < 2:
            ended += len(network.wait(5.0).contacts)
        taken = network.take("127.0.0.1", listener.port)
        assert network.take("127.0.0.1", listener.port) is None
        network.drop("127.0.0.1", listener.port)
    assert taken is not None
    with taken:
        taken.sendall(b"still open")
        for _ in range(2):
            assert listener.ended.acquire(timeout=60)
    assert sorted(listener.endings, key=str) == [b"still open", Listener.ENDED_BY_RESET]


def test_an_unused_connection_of_the_scan_is_reset(listener: Listener) -> None:
    with closing(SocketNetwork(watch_neighbours=False)) as network:
        network.connect("127.0.0.1", listener.port)
        while not network.wait(5.0).contacts:
            pass
    assert listener.ended.acquire(timeout=60)
    assert listener.endings == [Listener.ENDED_BY_RESET]


def test_a_cancelled_scan_returns_and_closes_its_sockets(listener: Listener) -> None:
    run = NullRun()
    run.cancel()
    result = scan(
        [Target("127.0.0.1", "local")],
        (listener.port,),
        deadline_s=monotonic() + 60,
        run=run,
        discoveries=Discoveries(),
    )
    assert result.state.state == "failed"
    run.cancel()  # the waker of a finished scan has no effect


def test_the_waker_ends_a_wait() -> None:
    with closing(SocketNetwork(watch_neighbours=False)) as network:
        network.wake()
        waiting = in_background(lambda: network.wait(3600.0))
        assert wait([waiting], timeout=60).done


@pytest.mark.skipif(not hasattr(socket, "AF_NETLINK"), reason="only Linux has rtnetlink")
def test_neighbour_events_need_no_privilege() -> None:
    with closing(SocketNetwork(watch_neighbours=True)) as network:
        assert network.wait(0.0).neighbours == ()
        assert all(entry.address for entry in network.known_neighbours())


@given(info=st.binary(max_size=120))
def test_any_tcp_info_gives_a_positive_latency_or_none(info: bytes) -> None:
    latency_ms = parse_rtt_ms(info)
    assert latency_ms is None or latency_ms > 0


def test_the_latency_of_the_kernel_is_converted_to_milliseconds() -> None:
    # tcpi_rtt is at offset 68 of struct tcp_info, in microseconds.
    assert parse_rtt_ms(bytes(68) + (1500).to_bytes(4, "little") + bytes(32)) == 1.5
    assert parse_rtt_ms(bytes(104)) is None


def test_scan_results_are_joined_by_address() -> None:
    first = ScanResult(
        (ScannedHost("10.0.0.1", latency_ms=9.0, open_ports=(80,), silent_ports=(22, 443)),),
        unanswered=(Target("10.0.0.2", "arp"), Target("10.0.0.3", "arp")),
    )
    second = ScanResult(
        (
            ScannedHost("10.0.0.1", latency_ms=4.0, open_ports=(22,), silent_ports=(443,)),
            ScannedHost("10.0.0.2", open_ports=(80,)),
        ),
    )
    joined = merge(first, second)
    assert joined.hosts[0] == ScannedHost(
        "10.0.0.1", latency_ms=4.0, open_ports=(22, 80), silent_ports=(443,)
    )
    assert [target.address for target in joined.unanswered] == ["10.0.0.3"]


def test_ports_tried_by_a_second_scan_without_an_answer_count_as_tried() -> None:
    """A second scan that gets no answer returns no host. The ports that it tried still count as
    tried.
    """
    mac = "02:00:00:00:00:01"
    first = ScanResult((ScannedHost("10.0.0.1", mac_address=mac, silent_ports=(9100,)),))
    tried = (Target("10.0.0.1", "local", None, (4000,)), Target("10.0.0.2", "local", None, (1,)))
    joined = merge(first, ScanResult(), tried)
    assert [host.silent_ports for host in joined.hosts] == [(4000, 9100)]
    failed_scan = ScanResult(state=SourceState("failed", "ended early"))
    assert merge(first, failed_scan, tried).hosts == first.hosts


def test_the_neighbour_table_completes_a_scan_without_arp_events() -> None:
    targets = [Target(f"10.0.0.{n}", "routed", "en0") for n in range(1, 30)]
    targets.append(Target("10.9.0.1", "routed", None))
    table = [
        LinkNeighbour(0, "10.0.0.1", "02:00:00:00:00:01", "stale"),
        LinkNeighbour(0, "10.0.0.2", "02:00:00:00:00:02", "reachable"),
        LinkNeighbour(0, "10.0.0.3", None, "resolving"),
        LinkNeighbour(0, "10.0.0.4", "01:00:5e:00:00:04", "stale"),  # a multicast MAC
        LinkNeighbour(0, "10.9.0.1", "02:00:00:00:00:09", "stale"),  # not on a link of this machine
        # So many addresses of one MAC are proxy ARP.
        *(LinkNeighbour(0, f"10.0.0.{n}", "02:00:00:00:00:99", "stale") for n in range(10, 25)),
    ]
    first = ScanResult((ScannedHost("10.0.0.1", "en0", open_ports=(80,)),))
    hosts = {host.address: host for host in with_neighbour_table(first, targets, table).hosts}
    assert set(hosts) == {"10.0.0.1", "10.0.0.2"}
    assert hosts["10.0.0.1"].mac_address == "02:00:00:00:00:01"
    assert hosts["10.0.0.1"].open_ports == (80,)
    assert hosts["10.0.0.2"].is_confirmed
