"""Tests browsing for services, with a responder on loopback instead of the multicast group."""

import errno
import ipaddress
import socket
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pytest

from collectors.contract import Facts, Interface, InterfaceAddress, NetworkJob, WatchedDevice
from collectors.network.mdns.announcers import LinkRecords
from collectors.network.mdns.browse import INTERFACES_MAX, SERVICE_TYPES, OpenLink, browse
from collectors.network.mdns.records import Quota
from collectors.network.mdns.session import RESOLVE_PER_TURN, QuerySchedule, Watch, due_questions
from collectors.network.mdns.sockets import LinkSockets, open_link
from collectors.network.mdns.wire import PointerRecord, question_packets, type_question
from collectors.network.observations import MdnsResult, PrinterIdentifiers
from collectors.shared.linux.rtnetlink import LinkNeighbour
from tests.unit.collectors.network.mdns.mdns_answers import (
    PTR,
    AnsweredSocket,
    Responder,
    name,
    record,
    response,
    service,
    service_records,
    srv_question,
)

QUICK = QuerySchedule(
    first_delay_s=(0.0, 0.0),
    second_round_s=0.1,
    round_interval_s=0.2,
    settle_s=0.1,
    resolve_interval_s=0.02,
    resolve_after_s=(0.0, 0.05),
)
IPP = name("_ipp", "_tcp", "local") + struct.pack("!H", PTR)
"""The question for IPP services, without the class."""
LAN = Interface("eth0", (InterfaceAddress("127.0.0.1", "ipv4", 8),))


@dataclass
class FakeRun:
    """Records progress. The run is cancelled only if ``cancelled`` is set."""

    cancelled: bool = False
    steps: list[tuple[str, int]] = field(default_factory=list)

    def progress(self, step: str, done: int, total: int | None = None) -> None:
        self.steps.append((step, done))

    def checkpoint(self, facts: Facts) -> None: ...

    def on_cancel(self, wake: Callable[[], None]) -> None: ...


def open_link_to(
    responder: Responder,
    networks: str = "127.0.0.0/8",
    socket_type: Callable[[Responder], socket.socket] = AnsweredSocket,
) -> Callable[[Interface], LinkSockets]:
    """Return a function that opens a link whose queries go to the responder. The link accepts
    answers from ``networks``.
    """

    def open_to(interface: Interface) -> LinkSockets:
        socket_ = socket_type(responder)
        socket_.setblocking(False)
        socket_.bind(("127.0.0.1", 0))
        return LinkSockets(
            interface.name,
            1,
            networks=(ipaddress.ip_network(networks),),
            sockets=[socket_],
            destinations={socket.AF_INET: responder.address},
        )

    return open_to


def browse_loopback(
    responder: Responder,
    *,
    limit: int = 100,
    run: FakeRun | None = None,
    bound_s: float = 60.0,
    networks: str = "127.0.0.0/8",
    schedule: QuerySchedule = QUICK,
    open_link: OpenLink | None = None,
) -> MdnsResult:
    return browse(
        [LAN],
        NetworkJob(max_services=limit, mdns_service_types=("_venue._tcp.local.", "nonsense")),
        time.monotonic() + bound_s,
        run or FakeRun(),
        open_link=open_link or open_link_to(responder, networks),
        schedule=schedule,
    )


def test_announced_services_are_discovered_and_browsing_ends_by_itself():
    packet = service("Kitchen", "_ipp._tcp", 631, "brn1", "127.0.0.9", txt=b"\x05ty=HP")
    run = FakeRun()
    with Responder({IPP: [packet]}) as responder:
        result = browse_loopback(responder, run=run)
    (kitchen,) = result.services
    assert (kitchen.instance, kitchen.addresses, kitchen.port) == ("Kitchen", ("127.0.0.9",), 631)
    assert result.state.state == "succeeded"
    assert (result.truncated, result.limitations) == (False, ())
    assert run.steps[0][0] == "mdns"
    first = responder.questions[0]
    assert b"\x09_services\x07_dns-sd\x04_udp\x05local" in first
    assert b"\x06_venue\x04_tcp" in first


def test_second_round_contains_known_answers():
    packet = service("Kitchen", "_ipp._tcp", 631, "brn1", "127.0.0.9")
    with Responder({IPP: [packet]}) as responder:
        browse_loopback(responder)
    assert any(b"\x07Kitchen\x04_ipp" in question for question in responder.questions)


def test_enumerated_types_are_queried():
    types = response(
        record(name("_services", "_dns-sd", "_udp", "local"), PTR, name("_odd", "_tcp", "local"))
    )
    packet = service("Odd", "_odd._tcp", 7000, "odd", "127.0.0.8")
    answers = {b"\x07_dns-sd": [types], b"\x04_odd\x04_tcp": [packet]}
    with Responder(answers) as responder:
        result = browse_loopback(responder)
    assert [announced_service.type for announced_service in result.services] == ["_odd._tcp"]


def test_missing_records_are_queried_in_one_packet():
    pointers, rest = [], {}
    for number in range(20):
        records = service_records(f"P{number}", "_ipp._tcp", 631, f"h{number}", "127.0.0.9")
        pointers.append(records[0])
        rest[srv_question(f"P{number}")] = [response(*records[1:])]
    with Responder({IPP: [response(*pointers)], **rest}) as responder:
        result = browse_loopback(responder, schedule=replace(QUICK, resolve_after_s=(0.0, 60.0)))
    assert {announced_service.port for announced_service in result.services} == {631}
    assert len(result.services) == 20
    srv_questions = [q for q in responder.questions if srv_question("P7") in q]
    assert len(srv_questions) == 1
    assert len(responder.questions) < 12


def test_queries_for_unanswered_records_end():
    (pointer, *_) = service_records("Ghost", "_ipp._tcp", 631, "h", "127.0.0.9")
    with Responder({IPP: [response(pointer)]}) as responder:
        result = browse_loopback(responder)
    (ghost,) = result.services
    assert (ghost.port, ghost.addresses) == (0, ())
    srv_questions = [q for q in responder.questions if srv_question("Ghost") in q]
    assert len(srv_questions) == len(QUICK.resolve_after_s)


def test_more_services_than_the_limit_are_counted():
    packets = [service(f"P{n}", "_ipp._tcp", 631, "h", "127.0.0.9") for n in range(30)]
    with Responder({IPP: packets}) as responder:
        result = browse_loopback(responder, limit=10)
    assert len(result.services) == 10
    assert result.truncated
    assert result.limitations == (
        "mDNS: 20 services over the limit were left out: 20 from 127.0.0.1",
    )


class LosingLink(LinkSockets):
    """A link that loses packets: each of the first 40 calls of `lost` adds one loss."""

    lost_calls: ClassVar[int] = 0

    def lost(self) -> int:
        LosingLink.lost_calls += 1
        return min(LosingLink.lost_calls, 40)


def losing_link_to(responder: Responder) -> OpenLink:
    """Return a function that opens a `LosingLink` to the responder. Reset the number of losses."""
    LosingLink.lost_calls = 0

    def open_to(interface: Interface) -> LinkSockets:
        link = open_link_to(responder)(interface)
        return LosingLink(
            link.name, 1, link.networks, sockets=link.sockets, destinations=link.destinations
        )

    return open_to


@pytest.mark.medium
def test_questions_are_sent_again_if_answers_were_lost():
    packet = service("Kitchen", "_ipp._tcp", 631, "brn1", "127.0.0.9")

    with Responder({IPP: [packet]}) as responder:
        result = browse(
            [LAN],
            NetworkJob(max_services=10),
            time.monotonic() + 60,
            FakeRun(),
            open_link=losing_link_to(responder),
            read_neighbours=lambda: (),
            schedule=QUICK,
        )
    assert [announced_service.instance for announced_service in result.services] == ["Kitchen"]
    assert len([question for question in responder.questions if IPP in question]) > 2


@pytest.mark.medium
def test_missing_records_are_queried_again_after_a_loss():
    """The answers with the missing records may be among the lost packets."""
    (pointer, *_) = service_records("Ghost", "_ipp._tcp", 631, "h", "127.0.0.9")

    with Responder({IPP: [response(pointer)]}) as responder:
        browse(
            [LAN],
            NetworkJob(max_services=10),
            time.monotonic() + 60,
            FakeRun(),
            open_link=losing_link_to(responder),
            schedule=QUICK,
        )
    srv_questions = [q for q in responder.questions if srv_question("Ghost") in q]
    assert len(srv_questions) > len(QUICK.resolve_after_s)


def test_a_packet_that_waits_in_the_kernel_is_received_before_the_end():
    """A busy machine may suspend the process for longer than the process waits for packets. Before
    browsing ends, the process must then read the packets that have arrived.
    """
    packet = service("Kitchen", "_ipp._tcp", 631, "brn1", "127.0.0.9")

    class SendingRun(FakeRun):
        def progress(self, step: str, done: int, total: int | None = None) -> None:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as late:
                late.sendto(packet, link.sockets[0].getsockname())

    with Responder({}) as responder:
        link = open_link_to(responder)(LAN)
        result = browse(
            [LAN],
            NetworkJob(max_services=10),
            time.monotonic() + 60,
            SendingRun(),
            open_link=lambda _: link,
            schedule=replace(QUICK, second_round_s=0.0, settle_s=0.0),
        )
    assert [announced_service.instance for announced_service in result.services] == ["Kitchen"]


def test_known_answers_are_not_sent_if_another_program_of_this_machine_queries_mdns():
    packet = service("Kitchen", "_ipp._tcp", 631, "brn1", "127.0.0.9")
    (question,) = question_packets([type_question("_http._tcp")])
    with Responder({IPP: [packet, *[question] * 50]}) as responder:
        result = browse_loopback(responder)
    assert [announced_service.instance for announced_service in result.services] == ["Kitchen"]
    ttl_of_known_answers = b"\x00\x01\x00\x00\x11\x94"  # the class IN and 4,500 s
    assert not any(ttl_of_known_answers in question for question in responder.questions)
    records = LinkRecords("eth0", Quota(10))
    records.add("10.0.0.9", [PointerRecord("_ipp._tcp.local", "Kitchen._ipp._tcp.local")])
    watch = Watch(LinkSockets("eth0", 1, sent=2), records, questions_of_machine=2)
    assert [*watch.known_answers()] == ["_ipp._tcp"]
    watch.questions_of_machine = 3
    assert not watch.known_answers()


def test_repeated_question_is_timed_from_its_first_sending():
    """A question is repeated a fixed time after it was first sent, even if it was sent late."""
    records = LinkRecords("eth0", Quota(1000))
    names = (f"P{n}._ipp._tcp.local" for n in range(RESOLVE_PER_TURN))
    records.add("10.0.0.9", [PointerRecord("_ipp._tcp.local", name_) for name_ in names])
    watch = Watch(LinkSockets("eth0", 1), records)
    sent = [len(due_questions(watch, now, (0.0, 1.0))[0]) for now in (0.0, 0.9, 1.0, 1.1, 1.9)]
    # Each instance lacks an SRV and a TXT record. Half of the questions are sent at 0.0 and the
    # other half at 0.9. Each half is repeated one second later.
    assert sent == [RESOLVE_PER_TURN, RESOLVE_PER_TURN, RESOLVE_PER_TURN, 0, RESOLVE_PER_TURN]


@pytest.mark.medium
def test_overloaded_link_is_queried_host_by_host():
    flood = [service(f"P{n}", "_ipp._tcp", 631, "h", "127.0.0.9") for n in range(40)]
    neighbour_reads: list[int] = []

    def neighbours() -> list[LinkNeighbour]:
        neighbour_reads.append(1)
        # Only 127.0.0.1 is queried. All other neighbours are excluded, failed, payment terminals,
        # or not in a network of the link.
        return [
            LinkNeighbour(1, "127.0.0.1", "02:00:00:00:00:01", "stale"),
            LinkNeighbour(1, "127.0.0.2", "02:00:00:00:00:02", "stale"),
            LinkNeighbour(1, "127.0.0.3", None, "failed"),
            LinkNeighbour(1, "127.0.0.4", "02:00:00:00:00:04", "stale"),
            LinkNeighbour(1, "127.0.0.5", "02:00:00:00:00:05", "stale"),
            LinkNeighbour(1, "10.0.0.1", "02:00:00:00:00:03", "stale"),
        ]

    with Responder({IPP: flood}) as responder:
        result = browse(
            [LAN],
            NetworkJob(
                max_services=10,
                exclude=("127.0.0.2/32", "nonsense"),
                devices=(
                    WatchedDevice("A", "payment-terminal", "127.0.0.4"),
                    WatchedDevice("B", "payment-terminal", None, "02:00:00:00:00:05"),
                ),
            ),
            time.monotonic() + 60,
            FakeRun(),
            open_link=open_link_to(responder),
            read_neighbours=neighbours,
            schedule=QUICK,
        )
    assert neighbour_reads
    # Later queries contain no known answers. A different host may have forged them, and the owner
    # of a service does not answer a question that already contains its answer.
    later_questions = [question for question in responder.questions[1:] if IPP in question]
    assert later_questions
    assert not any(b"\x02P1\x04_ipp" in question for question in later_questions)
    assert result.limitations[-1] == (
        "mDNS: packets on eth0 were lost, or too much was announced, so the hosts were queried"
        " one by one: 0 of 1 answered"
    )


@pytest.mark.parametrize("hosts", [("a",), ("a", "b")])
def test_a_host_with_several_names_is_queried_to_confirm_its_services(
    hosts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    queried: list[str] = []

    def query(records: LinkRecords, addresses: list[str], *, confirms: bool, **_: object) -> int:
        assert confirms
        queried.extend(addresses)
        return 0

    monkeypatch.setattr("collectors.network.mdns.browse.query_directly", query)
    answers = [service(f"P{host}", "_ipp._tcp", 631, host, "127.0.0.1") for host in hosts]
    with Responder({IPP: answers}) as responder:
        browse(
            [LAN],
            NetworkJob(),
            time.monotonic() + 60,
            FakeRun(),
            open_link=open_link_to(responder),
            read_neighbours=lambda: [LinkNeighbour(1, "127.0.0.1", "02:00:00:00:00:01", "stale")],
            schedule=QUICK,
        )
    assert queried == ["127.0.0.1"] * (len(hosts) > 1)


@pytest.mark.parametrize("has_mdns_name", [True, False])
def test_silent_link_is_queried_host_by_host_only_if_a_printer_has_an_mdns_name(
    has_mdns_name: bool,
):
    neighbour_reads: list[int] = []

    def neighbours() -> list[LinkNeighbour]:
        neighbour_reads.append(1)
        return []

    with Responder({}) as responder:
        result = browse(
            [LAN],
            NetworkJob(max_services=10),
            time.monotonic() + 60,
            FakeRun(),
            identifiers=lambda: PrinterIdentifiers(has_mdns_name=has_mdns_name),
            open_link=open_link_to(responder),
            read_neighbours=neighbours,
            schedule=QUICK,
        )
    assert bool(neighbour_reads) == has_mdns_name
    assert result.unicast_only == ()


def test_dropped_packets_are_counted_by_the_kernel():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as full:
        full.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        full.bind(("127.0.0.1", 0))
        link = LinkSockets("lo", 1, sockets=[full])
        assert link.lost() == 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(50):
                sender.sendto(bytes(1000), full.getsockname())
        assert link.lost() > 0 or sys.platform != "linux"


class TemporarilyFullSocket(socket.socket):
    """A socket that refuses packets at first, as the kernel does if its neighbour table is full."""

    refused = 0

    def sendto(self, packet: bytes, to: tuple[str, int]) -> int:  # type: ignore[override]
        if self.refused < 10:
            self.refused += 1
            raise OSError(errno.ENOBUFS, "No buffer space available")
        return super().sendto(packet, to)


@pytest.mark.medium
def test_questions_that_could_not_be_sent_are_sent_again():
    def open_to(interface: Interface) -> LinkSockets:
        link = open_link_to(responder)(interface)
        (ready,) = link.sockets
        link.sockets = [TemporarilyFullSocket(fileno=ready.detach())]
        link.sockets[0].setblocking(False)
        return link

    packet = service("Kitchen", "_ipp._tcp", 631, "brn1", "127.0.0.9")
    with Responder({IPP: [packet]}) as responder:
        result = browse_loopback(responder, open_link=open_to)
    assert [announced_service.instance for announced_service in result.services] == ["Kitchen"]


def test_deadline_ends_browsing_and_is_reported():
    with Responder({}) as responder:
        result = browse_loopback(responder, bound_s=0.05)
    assert result.truncated
    assert "the time was up" in result.limitations[0]


def test_a_cancelled_run_ends_at_once():
    with Responder({}) as responder:
        result = browse_loopback(responder, run=FakeRun(cancelled=True))
    assert (result.truncated, result.state.state) == (True, "failed")


def test_packets_from_beyond_the_link_are_ignored():
    packet = service("Far", "_ipp._tcp", 631, "far", "127.0.0.9")
    with Responder({IPP: [packet]}) as responder:
        result = browse_loopback(responder, networks="10.0.0.0/8")
    assert result.services == ()


def test_invalid_mdns_packets_are_ignored():
    noise = [b"\xff" * 40, b"\0" * 12, response(b"\xc0\x0c" * 30), b"x" * 8990]
    packet = service("Kitchen", "_ipp._tcp", 631, "brn1", "127.0.0.9")
    with Responder({IPP: [*noise, packet]}) as responder:
        result = browse_loopback(responder)
    assert [announced_service.instance for announced_service in result.services] == ["Kitchen"]


def test_browsing_without_an_interface_is_unsupported():
    loopback = Interface("lo", (InterfaceAddress("127.0.0.1", "ipv4", 8),))
    for interfaces in ([], [loopback]):
        result = browse(
            interfaces,
            NetworkJob(max_services=10),
            time.monotonic() + 60,
            FakeRun(),
        )
        assert result.state.state == "unsupported"
        assert result.services == ()


def test_an_interface_that_cannot_be_opened_is_a_failure_with_a_reason():
    def refuse(interface: Interface) -> LinkSockets:
        return LinkSockets(
            interface.name, 1, problems=[f"mDNS is not possible on {interface.name}: no"]
        )

    result = browse(
        [LAN],
        NetworkJob(max_services=10),
        time.monotonic() + 60,
        FakeRun(),
        open_link=refuse,
    )
    assert result.state.state == "failed"
    assert result.state.reason == "mDNS is not possible on eth0: no"


def test_interfaces_beyond_the_bound_are_reported():
    with Responder({}) as responder:
        result = browse(
            [LAN] * (INTERFACES_MAX + 3),
            NetworkJob(max_services=10),
            time.monotonic() + 60,
            FakeRun(),
            open_link=open_link_to(responder),
            schedule=QUICK,
        )
    assert result.limitations == (
        "mDNS: 3 interfaces were not browsed: the limit is 16 interfaces",
    )


def test_taken_port_is_reported_and_replaced():
    addresses = (
        InterfaceAddress("127.0.0.1", "ipv4", 8),
        InterfaceAddress("192.0.2.1", "ipv4", 24),
    )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("", 0))
        port = taken.getsockname()[1]
        link = open_link(Interface("lo", addresses), port)
        assert link is not None
        try:
            (problem,) = link.problems
            assert f"another program uses UDP port {port}" in problem
            assert [socket_.getsockname()[1] != port for socket_ in link.sockets] == [True]
        finally:
            link.close()


def test_the_browsed_service_types_are_distinct_and_include_all_printer_types():
    printing = {"_ipp._tcp", "_ipps._tcp", "_printer._tcp", "_pdl-datastream._tcp"}
    assert printing <= set(SERVICE_TYPES)
    assert len(set(SERVICE_TYPES)) == len(SERVICE_TYPES)
