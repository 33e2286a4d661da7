from agent.presentation.network_rows import (
    SERVICES_SHOWN_MAX,
    endpoint_rows,
    host_rows,
    interface_rows,
    limitation_lines,
    printer_rows,
    source_rows,
)
from agent.wire.payloads.network import MapService
from tests.fixtures.payloads import (
    bare_report,
    empty_report,
    host,
    large_venue,
    network_map,
    small_venue,
)


def test_printers_that_need_attention_come_first() -> None:
    rows = printer_rows(small_venue())
    assert [(row.name, row.status) for row in rows] == [
        ("Office laser", "unreachable"),
        ("Kitchen printer", "moved"),
        ("Bar receipts", "reachable"),
    ]
    assert rows[1].found_at == "192.168.1.61:9100"
    assert rows[2].found_at == ""


def test_a_reason_is_never_cut() -> None:
    payload = small_venue()
    long = "word " * 204
    printer = payload.printers[0].model_copy(update={"reason": long})
    (row,) = printer_rows(payload.model_copy(update={"printers": (printer,)}))
    assert row.reason == long.strip()


def test_endpoints_name_their_printers() -> None:
    rows = endpoint_rows(small_venue())
    assert rows[0].address == "192.168.1.52:9100"
    assert rows[0].printers == ("Bar receipts",)
    assert rows[0].found_by == "mDNS and scan"


def test_an_ipv6_endpoint_is_bracketed() -> None:
    payload = small_venue()
    endpoint = payload.endpoints[0].model_copy(update={"address": "fe80::1", "port": 631})
    (row,) = endpoint_rows(payload.model_copy(update={"endpoints": (endpoint,)}))
    assert row.address == "[fe80::1]:631"


def test_hosts_know_their_printers_matched_or_expected() -> None:
    by_address = {row.address: row for row in host_rows(large_venue())}
    assert by_address["10.0.0.3"].printers == ("Printer of table zone 1",)
    assert by_address["10.0.0.2"].printers == ("Printer of table zone 0",)
    assert by_address["192.168.1.1"].kind == "router"


def test_what_was_seen_of_one_port_is_one_service() -> None:
    found = {row.address: row.services for row in host_rows(small_venue())}
    assert found["192.168.1.52"] == ("9100 pdl-datastream", "80 http")
    assert found["192.168.1.80"] == ("apple-mobdev2",)


def test_services_beyond_the_bound_are_counted() -> None:
    services = tuple(MapService(port=port, source="tcp") for port in range(1, 101))
    crowded = host(9, "x").model_copy(update={"services": services})
    payload = small_venue().model_copy(update={"network_map": network_map((crowded,))})
    (row,) = host_rows(payload)
    assert len(row.services) == SERVICES_SHOWN_MAX + 1
    assert row.services[-1] == f"and {100 - SERVICES_SHOWN_MAX} more"


def test_limitations_say_everything_once() -> None:
    lines = limitation_lines(large_venue())
    assert "37 more endpoints were found and are not listed." in lines
    assert "The network map is not finished: it was cancelled." in lines
    assert "The network map was cut at its bounds: there is more than is shown." in lines
    assert len(lines) == len(set(lines))


def test_what_could_not_be_read_is_a_limitation() -> None:
    assert "The gateway could not be read: there is no default route" in limitation_lines(
        empty_report()
    )


def test_sources_and_their_reasons() -> None:
    assert [(row.name, row.state, row.reason) for row in source_rows(large_venue())] == [
        ("Interfaces", "succeeded", ""),
        ("mDNS", "failed", "port 5353 is held by another program"),
        ("Scan", "still running", ""),
    ]


def test_without_a_map_the_discovery_is_shown() -> None:
    payload = small_venue().model_copy(update={"network_map": None})
    assert [row.name for row in source_rows(payload)] == ["mDNS", "Scan"]
    assert source_rows(bare_report()) == ()
    assert host_rows(bare_report()) == ()
    assert interface_rows(bare_report()) == ()
