"""Tests that each discovered port is returned once, and IPP ports only after queues are known."""

import socket

from collectors.network.discoveries import Discoveries, OpenPort, Queues


def test_each_port_is_returned_once() -> None:
    discoveries = Discoveries()
    discoveries.add_port("10.0.0.9", 80, 1.0)
    discoveries.add_port("10.0.0.9", 80, 2.0)
    assert discoveries.take_ports() == (OpenPort("10.0.0.9", 80, contacted_s=1.0),)
    discoveries.add_port("10.0.0.9", 80, 3.0)
    assert discoveries.take_ports() == ()


def test_ipp_ports_wait_for_their_queues() -> None:
    discoveries = Discoveries()
    discoveries.add_port("10.0.0.9", 631, 1.0)
    assert discoveries.take_ports() == ()
    discoveries.set_queues({("10.0.0.9", 631): Queues(("ipp/print",), ("printers/bar",))})
    expected = OpenPort("10.0.0.9", 631, Queues(("ipp/print",), ("printers/bar",)), 1.0)
    assert discoveries.take_ports() == (expected,)
    discoveries.add_port("10.0.0.10", 631, 2.0)
    assert discoveries.take_ports() == (OpenPort("10.0.0.10", 631, contacted_s=2.0),)
    assert discoveries.take_waiting() == ()


def test_this_machine_is_not_queried_for_its_name_or_its_queues() -> None:
    discoveries = Discoveries(own=frozenset({"10.0.0.20"}))
    for address in ("10.0.0.20", "10.0.0.9", "10.0.0.9"):
        discoveries.add_host(address)
        discoveries.add_port(address, 631, 1.0)
        discoveries.add_port(address, 80, 1.0)
    discoveries.set_queues({})
    assert discoveries.hosts() == ("10.0.0.9",)
    assert [(port.address, port.port) for port in discoveries.take_ports()] == [
        ("10.0.0.20", 80),
        ("10.0.0.9", 80),
        ("10.0.0.9", 631),
    ]


def test_connections_are_handed_to_the_queries_or_closed() -> None:
    discoveries = Discoveries(own=frozenset({"10.0.0.20"}))
    early, taken, duplicate, own, unqueried, late = (socket.socket() for _ in range(6))
    discoveries.set_queues({})
    discoveries.add_port("10.0.0.1", 631, 1.0, early)
    assert not discoveries.queries_ipp_at_once
    discoveries.begin_queries()
    assert discoveries.queries_ipp_at_once
    discoveries.add_port("10.0.0.2", 631, 1.0, taken)
    discoveries.add_port("10.0.0.2", 631, 2.0, duplicate)
    discoveries.add_port("10.0.0.20", 631, 1.0, own)
    assert [port.connection for port in discoveries.take_ports()] == [None, taken]
    discoveries.add_port("10.0.0.3", 631, 1.0, unqueried)
    discoveries.end_queries()
    assert not discoveries.queries_ipp_at_once
    discoveries.add_port("10.0.0.4", 631, 1.0, late)
    assert [port.connection for port in discoveries.take_ports()] == [None, None]
    with taken:
        assert taken.fileno() != -1
        assert {socket_.fileno() for socket_ in (early, duplicate, own, unqueried, late)} == {-1}


def test_ipp_is_not_queried_before_its_queues_are_known() -> None:
    discoveries = Discoveries()
    discoveries.begin_queries()
    assert not discoveries.queries_ipp_at_once
