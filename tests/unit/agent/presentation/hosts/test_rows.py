"""Tests of the rows of a report's list of hosts."""

import pytest

from agent.presentation.hosts.makers import registry
from agent.presentation.hosts.rows import (
    FIRST_MAX,
    FIRST_MIN,
    HostRow,
    by_interest,
    host_rows,
    makers_note,
)
from agent.wire.payloads.network import Endpoint, MapHost, NetworkPayload
from agent.wire.payloads.watched_devices import WatchedLine
from agent.wire.vocabulary import DiscoverySource
from tests.fixtures.payloads import bare_report, host, large_venue, network_map, small_venue


def endpoint(
    port: int,
    label: str,
    model: str | None = None,
    by: tuple[DiscoverySource, ...] = ("mdns", "scan"),
    last_byte: int = 7,
) -> Endpoint:
    return Endpoint(
        address=f"192.168.1.{last_byte}", host="x", port=port, label=label, model=model,
        discovered_by=by, status="reachable", mac_address=None, matched_printer_ids=(),
    )  # fmt: skip


def venue(*hosts: MapHost, endpoints: tuple[Endpoint, ...] = ()) -> NetworkPayload:
    changes = {"network_map": network_map(hosts), "endpoints": endpoints, "printers": ()}
    return small_venue().model_copy(update=changes)


def row_of(lan_host: MapHost, *endpoints: Endpoint) -> HostRow:
    (row,) = host_rows(venue(lan_host, endpoints=endpoints))
    return row


def with_mac(lan_host: MapHost, mac: str | None) -> MapHost:
    return lan_host.model_copy(update={"mac_address": mac})


def test_a_host_lists_its_matched_or_configured_printers() -> None:
    by_address = {row.address: row for row in host_rows(large_venue())}
    assert by_address["10.0.0.3"].printers == ("Printer of table zone 1",)
    assert by_address["10.0.0.2"].printers == ("Printer of table zone 0",)
    assert by_address["192.168.1.1"].kind == "router"


def test_a_watched_device_has_the_name_and_kind_of_the_configuration() -> None:
    lines = (
        str(WatchedLine("Bar", "payment terminal", "moved", "192.168.1.7", "192.168.1.40")),
        str(WatchedLine("Hall", "payment terminal", "replaced", "192.168.1.8", other_mac="0" * 17)),
    )
    hosts = (host(7, "term-1.local", 80, mdns="_http._tcp"), host(8, "phone"))
    payload = venue(*hosts, endpoints=(endpoint(80, "Terminal 1"),))
    bar, phone = host_rows(payload.model_copy(update={"limitations": lines}))
    assert (bar.title, bar.kind, bar.kind_label) == ("Bar", "watched", "payment terminal")
    assert bar.identity_facts[0] == "payment terminal"
    assert bar.hostname == "term-1"
    assert (phone.title, phone.watched_kind) == ("phone", "")


def test_a_host_is_named_by_its_friendly_name() -> None:
    lan_host = host(7, "fuchsia-1a2b.local", 8009, mdns="_googlecast._tcp.local.")
    row = row_of(lan_host, endpoint(8009, "Menu board", "Chromecast (screen)"))
    assert (row.name, row.hostname) == ("Menu board", "fuchsia-1a2b")
    assert row.identity_facts == ("screen or kiosk", "Chromecast", "Seiko Epson")
    assert row.address_facts == ("192.168.1.7", "fuchsia-1a2b", "00:26:ab:00:00:07")


@pytest.mark.parametrize(
    ("hostname", "label", "by", "name"),
    [
        ("BRN30055C112233", "Office", ("mdns",), "Office"),
        ("till.local", "3c2af4112233", ("mdns",), "till"),
        ("till", "RouterOS", ("scan",), "till"),
        ("till", "HTTP (8080)", ("mdns",), "till"),
        (None, "3c2af4112233", ("mdns",), "3c2af4112233"),
        (None, "Login", ("scan",), ""),
        ("192.168.1.7", "Login", ("scan",), ""),
    ],
)
def test_a_host_has_the_best_of_its_names(
    hostname: str | None, label: str, by: tuple[DiscoverySource, ...], name: str
) -> None:
    assert row_of(host(7, hostname, 80), endpoint(80, label, by=by)).name == name


def test_a_computer_is_not_named_after_its_shared_queue() -> None:
    shared = endpoint(631, "Brother HL @ till", "Brother HL (shared queue)")
    row = row_of(host(7, "till", 631, mdns="_ipp._tcp"), shared)
    assert (row.name, row.model, row.kind) == ("till", "", "server")


def test_a_model_is_displayed_without_its_role_if_the_kind_shows_the_role() -> None:
    lan_host = host(7, "x", 5000)
    row = row_of(lan_host, endpoint(5000, "Mini", "Google Home Mini (speaker)"))
    assert row.identity_facts[:2] == ("speaker", "Google Home Mini")
    assert (
        row_of(lan_host, endpoint(5000, "Plug", "Eve Energy (outlet)")).model
        == "Eve Energy (outlet)"
    )
    assert row_of(lan_host, endpoint(5000, "Plug", "thermostat")).model == "thermostat"


def test_a_page_title_with_a_model_is_the_model_of_the_host() -> None:
    row = row_of(host(7, None, 80), endpoint(80, "NETGEAR R7000P", by=("scan",)))
    assert row.identity_facts == ("network device", "NETGEAR R7000P", "Seiko Epson")
    assert row.services == ("web page (80)",)
    assert row_of(host(7, None, 80), endpoint(80, "Bookings", by=("scan",))).model == ""
    raw = endpoint(9100, "Raw printing", by=("scan",))
    assert row_of(host(7, None, 9100), raw).model == "", (
        "the usual name of a port must not count as a model"
    )
    this_machine = host(7, None, 631, sources=("local",))
    assert row_of(this_machine, endpoint(631, "CUPS/2.4 IPP/2.1", by=("scan",))).model == ""


def test_a_maker_that_the_model_names_is_not_repeated() -> None:
    row = row_of(host(7, "x", 9100), endpoint(9100, "Bar", "EPSON TM-T20III"))
    assert (row.maker, row.identity_facts) == ("Seiko Epson", ("printer", "EPSON TM-T20III"))


def test_the_date_of_the_makers_list_is_displayed_if_a_maker_is_displayed() -> None:
    assert registry().date in makers_note(host_rows(small_venue()))
    assert makers_note(host_rows(venue(with_mac(host(7, "x"), "02:00:00:00:00:01")))) == ""


def test_a_name_or_a_registered_mac_makes_a_host_recognisable() -> None:
    def is_recognisable_host(name: str | None, mac: str | None) -> bool:
        return row_of(with_mac(host(7, name), mac)).is_recognisable

    assert is_recognisable_host("till", None)
    assert is_recognisable_host(None, "00:26:ab:00:00:01")
    assert not is_recognisable_host(None, "02:26:ab:00:00:01"), "a random MAC must not count"
    assert not is_recognisable_host("3c2af4112233", None)
    assert not is_recognisable_host("BRN3C2AF4112233", None)
    assert is_recognisable_host("AXIS M1065-L - 3C2AF4112233", None)
    assert not is_recognisable_host(None, None)
    this_machine = row_of(with_mac(host(7, None, sources=("local",)), "52:54:00:00:00:01"))
    assert (this_machine.identity_facts, this_machine.is_recognisable) == (("this machine",), True)


@pytest.mark.parametrize(
    ("install_id", "name"),
    [("till-1", "till-1"), ("unenrolled", ""), ("6f9a2a34-6a2a-4a39-b9b0-1a0c4b6f2f77", "")],
)
def test_this_machine_has_the_name_in_its_install_id(install_id: str, name: str) -> None:
    payload = venue(host(7, None, sources=("local",)), host(8, None))
    identity = payload.identity.model_copy(update={"install_id": install_id})
    rows = host_rows(payload.model_copy(update={"identity": identity}))
    assert [row.name for row in rows] == [name, ""]


def test_recognisable_hosts_are_listed_first() -> None:
    unknown = (with_mac(host(n, None), None) for n in range(100, 140))
    with_maker, with_name = host(60, None), host(50, "till")
    hosts = [
        *unknown,
        with_maker,
        with_name,
        host(51, None, 9100),
        host(52, "x", sources=("local",)),
    ]
    first, folded = by_interest(host_rows(venue(*hosts)))
    last_bytes = [row.address.rpartition(".")[2] for row in first]
    assert last_bytes[:5] == ["52", "51", "50", "60", "100"]
    assert (len(first), len(folded)) == (FIRST_MIN, len(hosts) - FIRST_MIN)
    first, folded = by_interest(host_rows(venue(*(host(n, f"name-{n}") for n in range(200)))))
    assert (len(first), len(folded)) == (FIRST_MAX, 200 - FIRST_MAX)
    assert by_interest(host_rows(venue(host(9, None))))[1] == (), (
        "a short list of hosts must not be folded"
    )


def test_endpoints_are_listed_as_hosts_if_there_is_no_map() -> None:
    payload = small_venue().model_copy(update={"network_map": None})
    rows = {row.address: row for row in host_rows(payload)}
    assert len(rows) == len({e.address for e in payload.endpoints})
    assert rows["192.168.1.52"].services == ("prints raw data (9100)", "web page (80)")
    assert rows["192.168.1.52"].printers == ("Bar receipts",)
    assert rows["192.168.1.30"].identity_facts[0] == "screen or kiosk"
    assert host_rows(bare_report()) == ()
