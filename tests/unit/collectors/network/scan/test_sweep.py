"""Tests the sweep over a simulated LAN: its results, its duration and its limits."""

import socket
from collections.abc import Iterable, Sequence
from typing import Literal

import pytest

from collectors.network.discoveries import Discoveries
from collectors.network.scan.host_probes import PRINT_GAP_S, WAIT_MIN_S
from collectors.network.scan.scan import scan_result_of
from collectors.network.scan.sweep import PRINT_PORTS_WAIT_S, Sweep, SweepResult
from collectors.network.scan.targets import Target
from collectors.shared.addresses import PRINT_PORTS
from collectors.shared.arp.priming import SETTLE_S
from collectors.shared.arp.table_room import UNRESOLVED_DEFAULT
from collectors.shared.linux.rtnetlink import LinkNeighbour
from tests.unit.collectors.network.scan.simulated_lan import (
    SimulatedHost,
    SimulatedLan,
    SimulatedRun,
)

PORTS = (22, 80, 443, 515, 9100, 9101)


def subnet(count: int, way: Literal["arp", "routed"] = "arp") -> list[Target]:
    return [Target(f"10.0.{i // 250}.{i % 250 + 1}", way, "eth0") for i in range(count)]


def sweep(
    lan: SimulatedLan,
    targets: Sequence[Target],
    *,
    ports: Sequence[int] = PORTS,
    deadline_s: float = 60.0,
    cancel_after_s: float = 1000.0,
    discoveries: Discoveries | None = None,
) -> tuple[SweepResult, float]:
    """Return the result of the sweep, and its duration in seconds on the clock of ``lan``."""
    began = lan.now()
    run = SimulatedRun(is_cancelled=lambda: lan.now() - began >= cancel_after_s)
    result = Sweep(lan, targets, ports, discoveries=discoveries or Discoveries()).run(
        began + deadline_s, run
    )
    return result, lan.now() - began


class RecordingDiscoveries(Discoveries):
    """Records in ``times`` when each port was reported, and when the sweep connected to it."""

    def __init__(self, lan: SimulatedLan) -> None:
        super().__init__()
        self.lan = lan
        self.times: dict[tuple[str, int], tuple[float, float]] = {}

    def add_port(
        self,
        address: str,
        port: int,
        contacted_s: float,
        connection: socket.socket | None = None,
    ) -> None:
        super().add_port(address, port, contacted_s, connection)
        self.times.setdefault((address, port), (self.lan.now(), contacted_s))


def close(connections: Iterable[socket.socket | None]) -> None:
    for connection in connections:
        if connection is not None:
            connection.close()


def mac(number: int) -> str:
    return f"02:00:00:00:00:{number:02x}"


def test_hosts_are_reported_with_ports_macs_and_latency() -> None:
    lan = SimulatedLan(
        {
            "10.0.0.5": SimulatedHost(mac(5), frozenset({80, 9100}), round_trip_s=0.02),
            "10.0.0.7": SimulatedHost(mac(7), is_mute=True),
        }
    )
    result, took_s = sweep(lan, subnet(250))
    printer, firewalled = sorted(scan_result_of(result, 250).hosts, key=lambda host: host.address)
    assert (printer.open_ports, printer.mac_address, printer.latency_ms) == (
        (80, 9100),
        mac(5),
        20.0,
    )
    assert printer.refused_ports == (22, 443, 515, 9101)
    assert (firewalled.open_ports, firewalled.mac_address) == ((), mac(7))
    assert firewalled.is_confirmed
    assert firewalled.silent_ports == tuple(sorted(PORTS))
    assert lan.open_sockets == 0
    assert took_s < 2.6


@pytest.mark.parametrize("lost", [1, 2])
def test_hosts_are_discovered_in_time_despite_lost_arp_requests(lost: int) -> None:
    lan = SimulatedLan({"10.0.0.5": SimulatedHost(mac(5), frozenset({80}), lost_arp=lost)})
    result, took_s = sweep(lan, subnet(10))
    scanned = scan_result_of(result, 10)
    assert [host.open_ports for host in scanned.hosts] == [(80,)]
    assert "10.0.0.5" not in {target.address for target in scanned.unanswered}
    assert took_s < 2.3


def test_a_sweep_ends_as_soon_as_all_hosts_have_answered() -> None:
    lan = SimulatedLan({"10.0.0.1": SimulatedHost(mac(1), frozenset({80}))})
    _, took_s = sweep(lan, subnet(1))
    assert took_s < 0.2


def test_hosts_and_ports_are_reported_when_discovered() -> None:
    lan = SimulatedLan(
        {
            "10.0.0.5": SimulatedHost(
                mac(5), frozenset({80, 631}), filtered=frozenset({9100}), round_trip_s=0.02
            ),
            "10.0.0.7": SimulatedHost(mac(7), frozenset({80}), lost_arp=2),
            "10.0.0.8": SimulatedHost(mac(8), is_mute=True),
        }
    )
    began = lan.now()
    discoveries = RecordingDiscoveries(lan)
    sweep(lan, subnet(10), ports=(80, 631, 9100), discoveries=discoveries)
    assert discoveries.hosts() == ("10.0.0.8", "10.0.0.5", "10.0.0.7")
    times = {
        key: (reported_s - began, contacted_s - began)
        for key, (reported_s, contacted_s) in discoveries.times.items()
    }
    assert max(times["10.0.0.5", 80]) < 0.1
    assert max(times["10.0.0.7", 80]) < 2.2
    # The scan reports an IPP port for queries only after it has finished the other print ports of
    # the host.
    reported_s, contacted_s = times["10.0.0.5", 631]
    assert contacted_s < 0.1
    assert PRINT_GAP_S < reported_s < PRINT_GAP_S + 1.0
    assert lan.last_connect["10.0.0.5", 9100] - began < reported_s


def test_a_scan_gives_up_second_tries_at_print_ports_that_would_start_late() -> None:
    """The scan waits 1 s before it connects to the same print port again. It omits this second try
    if the try would start more than `PRINT_PORTS_WAIT_S` after the end of address resolution.
    """
    lan = SimulatedLan(
        {
            "10.0.0.5": SimulatedHost(mac(5), frozenset({80}), filtered=frozenset({9100})),
            "10.0.0.7": SimulatedHost(
                mac(7), frozenset({80}), filtered=frozenset({9100}), lost_arp=2
            ),
        }
    )
    result, took_s = sweep(lan, subnet(10), ports=(80, 9100))
    silent = {h.address: h.silent_ports for h in scan_result_of(result, 10).hosts}
    assert silent == {"10.0.0.5": (9100,), "10.0.0.7": (9100,)}
    assert took_s < SETTLE_S + 0.8


def test_a_lost_packet_to_a_printer_that_is_discovered_late_is_sent_again() -> None:
    """The printer is discovered after one second, and its print ports are tried one after the
    other. The first try of port 9100 ends after all other tries. Its second try is possible only
    one second later, and the scan waits for it.
    """
    printer = SimulatedHost(
        mac(1), frozenset({80, 631, 9100}), lost_arp=1, lost_syns=1, round_trip_s=0.1
    )
    lan = SimulatedLan({"10.0.0.1": printer})
    result, took_s = sweep(lan, subnet(10), ports=(80, 631, 9100))
    assert [host.open_ports for host in scan_result_of(result, 10).hosts] == [(80, 631, 9100)]
    assert took_s < SETTLE_S + PRINT_PORTS_WAIT_S + 0.2


@pytest.mark.parametrize("filtered", [frozenset[int](), frozenset({9101})])
def test_a_printer_discovered_late_is_queried_over_the_connection_of_the_scan(
    filtered: frozenset[int],
) -> None:
    printer = SimulatedHost(
        mac(1), frozenset({80, 631, 9100}), filtered=filtered, lost_arp=2, round_trip_s=0.1
    )
    lan = SimulatedLan({"10.0.0.1": printer})
    began, discoveries = lan.now(), RecordingDiscoveries(lan)
    discoveries.begin_queries()
    discoveries.set_queues({})
    result, took_s = sweep(lan, subnet(10), ports=(80, 631, 9100, 9101), discoveries=discoveries)
    (host,) = scan_result_of(result, 10).hosts
    assert (host.open_ports, host.silent_ports) == ((80, 631, 9100), tuple(filtered))
    reported_s, contacted_s = discoveries.times["10.0.0.1", 631]
    assert reported_s == contacted_s < began + SETTLE_S + PRINT_PORTS_WAIT_S + 0.2
    assert took_s < SETTLE_S + PRINT_PORTS_WAIT_S + 0.2
    connections = {port.port: port.connection for port in discoveries.take_ports()}
    assert [port for port, connection in connections.items() if connection is not None] == [631]
    assert lan.taken_connections == [("10.0.0.1", 631)]
    assert (lan.connects["10.0.0.1", 631], lan.most_printing["10.0.0.1"]) == (1, 1)
    close(connections.values())


def test_a_printer_whose_first_packet_was_lost_is_queried_over_the_second_connection() -> None:
    """The printer's queues are not known when it is discovered, but they are known at the second
    try.
    """
    printer = SimulatedHost(mac(1), frozenset({631}), lost_arp=1, lost_syns=1, round_trip_s=0.1)
    lan = SimulatedLan({"10.0.0.1": printer})
    began, discoveries = lan.now(), RecordingDiscoveries(lan)
    discoveries.begin_queries()

    def set_queues(_done: int, _all: int) -> None:
        if lan.now() > began + 1.9:
            discoveries.set_queues({})

    Sweep(lan, subnet(10), (80, 631), discoveries=discoveries).run(
        began + 60, SimulatedRun(on_progress=set_queues)
    )
    reported_s, contacted_s = discoveries.times["10.0.0.1", 631]
    assert reported_s == contacted_s < began + SETTLE_S + PRINT_PORTS_WAIT_S + 0.2
    assert (lan.connects["10.0.0.1", 631], lan.most_printing["10.0.0.1"]) == (2, 1)
    connections = {port.port: port.connection for port in discoveries.take_ports()}
    assert lan.taken_connections == [("10.0.0.1", 631)]
    close(connections.values())


@pytest.mark.parametrize(("is_querying", "has_queues"), [(False, True), (True, False)])
def test_connections_are_not_kept_if_the_port_is_not_queried_immediately(
    is_querying: bool, has_queues: bool
) -> None:
    lan = SimulatedLan({"10.0.0.1": SimulatedHost(mac(1), frozenset({631}), lost_arp=2)})
    discoveries = Discoveries()
    if is_querying:
        discoveries.begin_queries()
    if has_queues:
        discoveries.set_queues({})
    sweep(lan, subnet(10), ports=(631, 9100), discoveries=discoveries)
    assert lan.taken_connections == []
    (port,) = (*discoveries.take_ports(), *discoveries.take_waiting())
    assert port.connection is None


ALL_PORTS = (22, 53, 80, 139, 443, 445, 515, 554, 631, 8008, 8043, 8080, 8443, 9100, 9101)


def test_a_scan_does_not_wait_long_for_a_late_host_that_drops_packets() -> None:
    """The host is discovered after one second. Its four print ports are silent. They are tried one
    after the other. Each is tried again after a pause of one second. Meanwhile its other ports get
    their last try.
    """
    dropped = frozenset({*ALL_PORTS} - {53, 80})
    host = SimulatedHost(
        mac(1), frozenset({53, 80}), filtered=dropped, lost_arp=1, round_trip_s=0.06
    )
    lan = SimulatedLan({"10.0.0.1": host})
    began = lan.now()
    result, took_s = sweep(lan, subnet(250), ports=ALL_PORTS)
    assert [host.silent_ports for host in scan_result_of(result, 250).hosts] == [
        tuple(sorted(dropped))
    ]
    assert took_s < SETTLE_S + 0.125 + PRINT_PORTS_WAIT_S + WAIT_MIN_S
    tries = {port: lan.connects["10.0.0.1", port] for port in dropped}
    assert {port: n for port, n in tries.items() if port in PRINT_PORTS} == dict.fromkeys(
        (515, 631, 9100, 9101), 2
    )
    assert {n for port, n in tries.items() if port not in PRINT_PORTS} == {3}
    assert lan.most_printing["10.0.0.1"] == 1
    last_s = {port: lan.last_connect["10.0.0.1", port] - began for port in dropped}
    assert min(last_s[port] for port in PRINT_PORTS if port in last_s) > 1.0 + PRINT_GAP_S


def test_a_printer_behind_a_firewall_is_discovered_despite_lost_packets() -> None:
    printer = SimulatedHost(
        mac(1),
        frozenset({9100}),
        filtered=frozenset({*ALL_PORTS} - {9100, 22}),
        lost_arp=1,
        lost_syns=1,
        syns={22: 1},  # no packet to port 22 is lost
        round_trip_s=0.1,
    )
    lan = SimulatedLan({"10.0.0.1": printer})
    result, _ = sweep(lan, subnet(250), ports=ALL_PORTS)
    assert [host.open_ports for host in scan_result_of(result, 250).hosts] == [(9100,)]
    assert (lan.connects["10.0.0.1", 9100], lan.most_printing["10.0.0.1"]) == (2, 1)


def test_a_lost_syn_is_tried_again() -> None:
    lan = SimulatedLan({"10.0.0.5": SimulatedHost(mac(5), frozenset({80, 9100}), lost_syns=1)})
    scanned = scan_result_of(sweep(lan, subnet(10))[0], 10)
    assert [host.open_ports for host in scanned.hosts] == [(80, 9100)]


def test_unresolved_addresses_never_exceed_the_window() -> None:
    lan = SimulatedLan({})
    _, took_s = sweep(lan, subnet(1500))
    assert lan.most_unresolved == UNRESOLVED_DEFAULT
    assert len(lan.primed) == 1500
    # Four windows are needed. Each of the first three ends when the kernel gives up, after 3.07 s.
    assert took_s < 3 * 3.3 + 2.5


def test_a_host_has_at_most_eight_connections_at_once() -> None:
    ports = tuple(range(1000, 1040))
    lan = SimulatedLan({"10.0.0.5": SimulatedHost(mac(5), filtered=frozenset(ports[:20]))})
    sweep(lan, subnet(5), ports=ports)
    assert lan.most_sockets["10.0.0.5"] == 8


@pytest.mark.medium
def test_addresses_without_a_host_behind_proxy_arp_are_left_out_and_reported() -> None:
    hosts = {f"10.0.0.{n}": SimulatedHost(mac(99), is_mute=True) for n in range(20, 220)}
    hosts["10.0.0.33"] = SimulatedHost(mac(99), frozenset({80}))
    hosts["10.0.0.1"] = SimulatedHost(mac(1), frozenset({80}))
    result, took_s = sweep(SimulatedLan(hosts), subnet(250))
    scanned = scan_result_of(result, 250)
    assert {(host.address, host.mac_address) for host in scanned.hosts} == {
        ("10.0.0.1", mac(1)),
        ("10.0.0.33", None),
    }
    assert "200 addresses (proxy ARP)" in scanned.limitations[0]
    assert took_s < 5.0


def test_hosts_with_multicast_macs_are_ignored() -> None:
    lan = SimulatedLan({"10.0.0.5": SimulatedHost("01:00:5e:00:00:05", frozenset({80}))})
    assert scan_result_of(sweep(lan, subnet(10))[0], 10).hosts == ()


def test_a_stale_neighbour_is_confirmed_only_if_it_answers() -> None:
    known = (
        LinkNeighbour(2, "10.0.0.5", mac(5), "stale"),
        LinkNeighbour(2, "10.0.0.6", mac(6), "stale"),
    )
    lan = SimulatedLan({"10.0.0.5": SimulatedHost(mac(5), frozenset({80}))}, known)
    hosts = {host.address: host for host in scan_result_of(sweep(lan, subnet(10))[0], 10).hosts}
    assert hosts["10.0.0.5"].is_confirmed
    assert not hosts["10.0.0.6"].is_confirmed


def test_routed_addresses_are_connected_to_without_arp() -> None:
    lan = SimulatedLan({"10.0.0.5": SimulatedHost(mac(5), frozenset({80}))})
    result, took_s = sweep(lan, subnet(200, way="routed"))
    scanned = scan_result_of(result, 200)
    assert [(host.address, host.mac_address) for host in scanned.hosts] == [("10.0.0.5", None)]
    assert lan.primed == []
    assert took_s < 5.0


def test_a_cancelled_sweep_ends_at_once_with_a_partial_result() -> None:
    lan = SimulatedLan({"10.0.0.1": SimulatedHost(mac(1), frozenset({80}))})
    result, took_s = sweep(lan, subnet(2000), cancel_after_s=0.5)
    scanned = scan_result_of(result, 2000)
    assert took_s < 0.6
    assert scanned.state.state == "failed"
    assert scanned.state.reason == "ended early: 481 of 2000 addresses were tried"
    assert [host.address for host in scanned.hosts] == ["10.0.0.1"]


def test_a_sweep_ends_at_its_deadline() -> None:
    result, took_s = sweep(SimulatedLan({}), subnet(2000), deadline_s=1.0)
    assert result.has_ended_early
    assert took_s < 1.1


def test_progress_ends_with_all_addresses() -> None:
    reports: list[tuple[int, int]] = []
    lan = SimulatedLan({"10.0.0.1": SimulatedHost(mac(1))})
    Sweep(lan, subnet(20), PORTS, discoveries=Discoveries()).run(
        lan.now() + 60, SimulatedRun(on_progress=lambda *report: reports.append(report))
    )
    assert reports[-1] == (20, 20)
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
