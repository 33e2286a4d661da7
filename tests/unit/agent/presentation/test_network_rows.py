from agent.presentation.network_rows import (
    interface_rows,
    limitation_lines,
    printer_rows,
    source_rows,
)
from agent.presentation.watched_devices import watched_rows
from agent.wire.payloads.watched_devices import WatchedLine
from tests.fixtures.payloads import (
    bare_report,
    empty_report,
    large_venue,
    small_venue,
)


def test_printers_that_need_attention_come_first() -> None:
    rows = printer_rows(small_venue())
    assert [(row.name, row.status) for row in rows] == [
        ("Office laser", "unreachable"),
        ("Kitchen printer", "moved"),
        ("Bar receipts", "reachable"),
    ]
    assert rows[1].discovered_address == "192.168.1.61:9100"
    assert rows[2].discovered_address == ""


def test_a_reason_is_never_cut() -> None:
    payload = small_venue()
    long = "word " * 204
    printer = payload.printers[0].model_copy(update={"reason": long})
    (row,) = printer_rows(payload.model_copy(update={"printers": (printer,)}))
    assert row.reason == long.strip()


def test_watched_devices_have_rows_instead_of_limitations() -> None:
    lines = [
        WatchedLine("Bar", "payment terminal", "present", "192.168.1.40"),
        WatchedLine("Deli\x1b[1m", "scale", "unknown", "192.168.1.41", reason="the time was up"),
        WatchedLine("Hall", "device", "absent"),
    ]
    update = {"limitations": (*map(str, lines), "another limitation")}
    payload = small_venue().model_copy(update=update)
    assert limitation_lines(payload) == ("another limitation",)
    assert [(row.name, row.state, row.detail) for row in watched_rows(payload)] == [
        ("Hall", "absent", "no answer"),
        ("Deli\ufffd[1m", "unknown", "at 192.168.1.41; the time was up"),
        ("Bar", "present", "at 192.168.1.40"),
    ]


def test_each_limitation_is_listed_once() -> None:
    lines = limitation_lines(large_venue())
    assert "Further endpoints, not listed: 37." in lines
    assert "The network map is incomplete: it was cancelled." in lines
    assert "The network map was cut at its limits: it does not contain everything." in lines
    assert len(lines) == len(set(lines))


def test_an_unreadable_gateway_is_a_limitation() -> None:
    assert "The gateway could not be read: there is no default route" in limitation_lines(
        empty_report()
    )


def test_sources_are_listed_with_their_states_and_reasons() -> None:
    assert [(row.name, row.state, row.reason) for row in source_rows(large_venue())] == [
        ("Interfaces", "succeeded", ""),
        ("mDNS", "failed", "port 5353 is held by another program"),
        ("Scan", "still running", ""),
    ]


def test_sources_of_the_discovery_are_listed_if_there_is_no_map() -> None:
    payload = small_venue().model_copy(update={"network_map": None})
    assert [row.name for row in source_rows(payload)] == ["mDNS", "Scan"]
    assert source_rows(bare_report()) == ()
    assert interface_rows(bare_report()) == ()
