"""Tests the network map's list of hosts, and the report's list of endpoints."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from collectors.contract import Endpoint, Interface, InterfaceAddress, Service
from collectors.network.correlate import correlate
from collectors.network.network_map import (
    ENDPOINTS_AT_ONCE,
    assemble_endpoints,
    assemble_hosts,
    by_importance,
    select_hosts,
)
from collectors.network.observations import (
    Evidence,
    MdnsService,
    PrinterMatches,
)
from collectors.network.scan.port_names import port_name
from collectors.network.scan.scan import ScannedHost
from collectors.shared.host.local_network import LocalInterface, LocalNetwork

ETH0 = LocalInterface(
    Interface(
        "eth0",
        (InterfaceAddress("10.0.0.20", "ipv4", 24), InterfaceAddress("fe80::20", "ipv6", 64)),
        ("10.0.0.1",),
        "02:00:00:00:00:20",
    )
)
PRINTER = MdnsService(
    "Kitchen", "_ipp._tcp", "kitchen.local", ("10.0.0.9", "fe80::9"), 631, (), "eth0"
)


def test_sources_of_a_host_are_listed_in_a_fixed_order() -> None:
    hosts = assemble_hosts(
        correlate(
            local=LocalNetwork((ETH0,)),
            scanned=(
                ScannedHost("10.0.0.9", "eth0", "02:00:00:00:00:09", True, 1.5, (631, 80), (22,)),
                ScannedHost("10.0.0.1", "eth0", "02:00:00:00:00:01", False),
                ScannedHost("10.0.0.20", None, None, True),
            ),
            services=(PRINTER,),
        )
    )
    assert [(host.address, host.sources) for host in hosts] == [
        ("10.0.0.20", ("local", "tcp")),
        ("10.0.0.1", ("gateway", "tcp")),
        ("10.0.0.9", ("mdns", "tcp")),
    ]
    own, gateway, printer = hosts
    assert own.mac_address == "02:00:00:00:00:20"
    assert own.reachability == "reachable"
    assert gateway.reachability == "unknown"
    assert printer.hostname == "kitchen.local"
    assert printer.latency_ms == 1.5
    assert printer.services == (
        Service(631, "mdns", "Kitchen", "_ipp._tcp", reachable=True),
        Service(80, "tcp", "HTTP", None, reachable=True),
    )


def test_an_announced_port_that_refuses_connections_has_the_status_discovered() -> None:
    scanned = (ScannedHost("10.0.0.9", refused_ports=(631,)),)
    (host,) = assemble_hosts(correlate(scanned=scanned, services=(PRINTER,)))
    assert host.services == (Service(631, "mdns", "Kitchen", "_ipp._tcp", reachable=False),)
    (endpoint,) = assemble_endpoints(correlate(scanned=scanned, services=(PRINTER,)))
    assert (endpoint.status, endpoint.discovered_by) == ("discovered", ("mdns",))


def test_an_announced_host_that_was_not_scanned_has_an_unknown_reachability() -> None:
    service = MdnsService("TV", "_airplay._tcp", "tv.local", ("10.7.0.9",), 7000)
    (host,) = assemble_hosts(correlate(services=(service,), macs={"10.7.0.9": "02:00:00:00:00:07"}))
    assert host.reachability == "unknown"
    assert host.mac_address == "02:00:00:00:00:07"
    assert host.services[0].reachable is None


def test_sources_are_joined_into_one_endpoint_per_address_and_port() -> None:
    web = MdnsService("Kitchen page", "_http._tcp", "kitchen.local", ("10.0.0.9",), 631)
    (endpoint,) = assemble_endpoints(
        correlate(
            scanned=(ScannedHost("10.0.0.9", mac_address="02:00:00:00:00:09", open_ports=(631,)),),
            services=(PRINTER, web),
            evidence=(Evidence("10.0.0.9", 631, name="Its own name", make_model="Brother HL"),),
        ),
        PrinterMatches((), {("10.0.0.9", 631): ("q1", "q2")}),
    )
    assert endpoint == Endpoint(
        "10.0.0.9",
        "kitchen.local",
        631,
        "Kitchen",
        ("mdns", "scan"),
        "reachable",
        "Brother HL",
        "02:00:00:00:00:09",
        ("q1", "q2"),
    )


def test_labels_fall_back_to_the_service_of_the_port() -> None:
    scanned = (ScannedHost("10.0.0.9", open_ports=(22, 80, 9102, 4711)),)
    known = (Evidence("10.0.0.9", 80, title="Router login"),)
    endpoints = assemble_endpoints(correlate(scanned=scanned, evidence=known))
    assert {e.port: e.label for e in endpoints} == {
        9102: "Raw printing",
        22: "SSH",
        80: "Router login",
        4711: "port 4711",
    }
    assert {e.host for e in endpoints} == {"10.0.0.9"}


def test_a_name_from_a_reverse_query_is_used_if_no_name_is_announced() -> None:
    scanned = (ScannedHost("10.0.0.9", open_ports=(80,)),)
    names = {"10.0.0.9": "till.local", "10.0.0.99": "nobody.local"}
    (host,) = assemble_hosts(correlate(scanned=scanned, hostnames=names))
    assert host.hostname == "till.local"


def endpoint(address: str, port: int, *, mdns: bool = False, ids: tuple[str, ...] = ()) -> Endpoint:
    return Endpoint(
        address,
        address,
        port,
        port_name(port),
        ("mdns",) if mdns else ("scan",),
        "discovered" if mdns else "reachable",
        matched_printer_ids=ids,
    )


def test_endpoints_are_ordered_by_importance() -> None:
    rest = endpoint("10.0.0.2", 22)
    announced = endpoint("10.0.0.3", 8009, mdns=True)
    announced_printer = endpoint("10.0.0.4", 6310, mdns=True)
    printer = endpoint("10.0.0.10", 9100)
    matched = endpoint("10.0.0.200", 80, ids=("kitchen",))
    ordered = by_importance(
        [rest, announced, printer, announced_printer, matched], [("10.0.0.4", 6310)]
    )
    assert ordered == (matched, announced_printer, printer, announced, rest)


@given(
    numbers=st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from((22, 80, 631, 9100)), st.booleans()),
        max_size=30,
    )
)
def test_endpoints_are_distinct_and_ordered_by_importance(
    numbers: list[tuple[int, int, bool]],
) -> None:
    open_ports: dict[str, set[int]] = {}
    services = []
    for number, port, is_announced in numbers:
        address = f"10.0.0.{number}"
        if is_announced:
            services.append(MdnsService(f"s{port}", "_http._tcp", "h.local", (address,), port))
        else:
            open_ports.setdefault(address, set()).add(port)
    scanned = tuple(ScannedHost(a, open_ports=tuple(ports)) for a, ports in open_ports.items())
    endpoints = assemble_endpoints(correlate(scanned=scanned, services=services))
    keys = [(e.address, e.port) for e in endpoints]
    assert set(keys) == {(f"10.0.0.{n}", port) for n, port, _ in numbers}
    assert len(keys) == len(set(keys))
    assert by_importance(endpoints) == endpoints


def test_endpoints_beyond_the_share_of_a_device_are_listed_last() -> None:
    announced = [endpoint("10.0.0.2", port, mdns=True) for port in range(1, 1001)]
    printer, till = endpoint("10.0.0.9", 9100), endpoint("10.0.0.8", 22)
    matched = endpoint("10.0.0.2", 2000, mdns=True, ids=("kitchen",))
    announced_printers = [(each.address, each.port) for each in announced]
    ordered = by_importance([*announced, printer, till, matched], announced_printers)
    assert ordered[0] == matched
    assert ordered[1:3] == (printer, till)


def test_all_addresses_of_one_announcer_count_as_one_device() -> None:
    announced = [endpoint(f"10.0.0.{n}", 631, mdns=True) for n in range(1, 101)]
    announcers = {each.address: "02:00:00:00:00:66" for each in announced}
    ordered = by_importance([*announced, endpoint("10.0.0.200", 22)], (), announcers)
    assert ordered.index(endpoint("10.0.0.200", 22)) == ENDPOINTS_AT_ONCE


def test_contacted_hosts_are_kept_before_announced_hosts() -> None:
    services = [
        MdnsService(f"s{n}", "_ipp._tcp", "h", (f"10.0.0.{n}",), 631, announcer="10.0.0.66")
        for n in range(100, 150)
    ]
    other = MdnsService("other", "_ipp._tcp", "h", ("10.0.0.240",), 631, announcer="10.0.0.240")
    observed = correlate(
        local=LocalNetwork((ETH0,)),
        scanned=(ScannedHost("10.0.0.200", open_ports=(80,)), ScannedHost("10.0.0.201")),
        services=[*services, other],
        announcers={s.addresses[0]: s.announcer for s in (*services, other)},
    )
    matches = PrinterMatches((), {("10.0.0.149", 631): ("q1",)})
    hosts = assemble_hosts(observed)
    # The limit is eight hosts. This machine, the gateway, the matched host (149) and the contacted
    # hosts (200 and 201) leave room for three more. The two announcers of the other hosts take
    # turns.
    kept = [host.address for host in select_hosts(hosts, observed, matches, 8)]
    assert kept == [
        *("10.0.0.20", "10.0.0.1", "10.0.0.100", "10.0.0.101", "10.0.0.149"),
        *("10.0.0.200", "10.0.0.201", "10.0.0.240"),
    ]
    assert select_hosts(hosts, observed, matches, len(hosts)) == hosts


def test_a_name_that_a_host_reports_for_itself_is_preferred() -> None:
    hearsay = MdnsService("lie", "_ipp._tcp", "lie.local", ("10.0.0.9",), 80, is_hearsay=True)
    (host,) = assemble_hosts(correlate(services=(hearsay, PRINTER)))
    assert host.hostname == "kitchen.local"
    names = {"10.0.0.9": "till.local"}
    (host,) = assemble_hosts(correlate(services=(hearsay,), hostnames=names))
    assert host.hostname == "till.local"
    (host,) = assemble_hosts(correlate(services=(hearsay,)))
    assert host.hostname == "lie.local"


def test_reachable_endpoints_precede_announced_endpoints_of_the_same_device() -> None:
    mac = "aa:aa:aa:aa:aa:aa"
    announced = tuple(
        Endpoint("10.0.0.9", "p", 1000 + n, "lie", ("mdns",), "discovered", mac_address=mac)
        for n in range(300)
    )
    real = Endpoint("10.0.0.9", "p", 80, "http", ("scan",), "reachable", mac_address=mac)
    assert by_importance((*announced, real))[0] == real


def test_a_model_announced_by_another_host_is_listed_but_is_no_evidence() -> None:
    uuid = "e3248000-80ce-11db-8000-001ba9123456"
    txt = (("uuid", uuid), ("ty", "Brother HL"))
    hearsay = MdnsService("lie", "_ipp._tcp", "lie.local", ("10.0.0.7",), 631, txt, is_hearsay=True)
    observed = correlate(services=(replace(PRINTER, txt=txt), hearsay))
    assert [(e.address, e.label, e.model) for e in assemble_endpoints(observed)] == [
        ("10.0.0.7", "lie", "Brother HL"),
        ("10.0.0.9", "Kitchen", "Brother HL"),
    ]
    assert ("10.0.0.7", 631) not in observed.ports


def test_a_friendly_name_is_preferred_to_a_technical_name() -> None:
    connect = MdnsService("sonos02005e0010aa", "_spotify-connect._tcp", "s", ("10.0.0.9",), 1400)
    play = MdnsService("02005E0010AA@Roost", "_raop._tcp", "s", ("10.0.0.9",), 7000)
    endpoints = assemble_endpoints(correlate(services=(connect, play)))
    assert {e.port: e.label for e in endpoints} == {1400: "Roost", 7000: "Roost"}
    (alone,) = assemble_endpoints(correlate(services=(connect,)))
    assert alone.label == "sonos02005e0010aa"


def test_the_announced_model_of_a_device_is_used_for_its_endpoints() -> None:
    shell = MdnsService("stock", "_ssh._tcp", "s.local", ("10.0.0.9",), 22, announcer="10.0.0.9")
    info = replace(shell, type="_device-info._tcp", txt=(("model", "Macmini9,1"),), port=0)
    for device_info in (info, replace(info, addresses=(), hostname="")):
        (endpoint,) = assemble_endpoints(correlate(services=(shell, device_info)))
        assert (endpoint.port, endpoint.model) == (22, "Macmini9,1")
    hearsay = replace(info, is_hearsay=True)
    assert [e.model for e in assemble_endpoints(correlate(services=(shell, hearsay)))] == [None]


def test_a_shared_queue_is_marked_only_in_the_model_of_the_endpoint() -> None:
    txt = (("rp", "printers/bar"), ("ty", "Brother HL, using brlaser v4"))
    share = MdnsService("Bar @ till", "_ipp._tcp", "till.local", ("10.0.0.9",), 631, txt)
    observed = correlate(services=(share,))
    (endpoint,) = assemble_endpoints(observed)
    assert endpoint.model == "Brother HL (shared queue)"
    assert observed.ports["10.0.0.9", 631].models == ("Brother HL, using brlaser v4",)
