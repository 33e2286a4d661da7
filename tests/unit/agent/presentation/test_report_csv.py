import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.presentation.report_csv import csv_of, report_csv, tables_of
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import NetworkPayload
from tests.fixtures.payloads import (
    application_snapshot,
    bare_report,
    hostile_application,
    hostile_network,
    large_venue,
    small_venue,
)


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_distinguishes_a_moved_printer_from_an_unreachable_one() -> None:
    rows = read(report_csv(small_venue(), "printers"))
    assert {row["name"]: (row["status"], row["isMoved"]) for row in rows} == {
        "Bar receipts": ("reachable", "false"),
        "Kitchen printer": ("unreachable", "true"),
        "Office laser": ("unreachable", "false"),
    }


def test_every_row_has_the_ids_of_its_installation_location_and_report() -> None:
    payload = small_venue()
    for table in tables_of(payload):
        rows = read(report_csv(payload, table))
        assert rows
        assert {row["installId"] for row in rows} == {payload.identity.install_id}
        assert {row["locationId"] for row in rows} == {payload.identity.location_id}
        assert {row["reportId"] for row in rows} == {payload.report_id}


def test_csv_contains_the_ports_of_all_endpoints_and_the_latencies_of_all_hosts() -> None:
    payload = large_venue()
    assert payload.network_map is not None
    hosts = read(report_csv(payload, "hosts"))
    endpoints = read(report_csv(payload, "endpoints"))
    assert [row["address"] for row in endpoints] == [
        endpoint.address for endpoint in payload.endpoints
    ]
    assert [int(row["port"]) for row in endpoints] == [
        endpoint.port for endpoint in payload.endpoints
    ]
    latencies = {host.address: host.latency_ms for host in payload.network_map.hosts}
    assert set(latencies) <= {row["address"] for row in hosts}
    for row in hosts:
        latency = latencies.get(row["address"])
        assert (float(row["latencyMs"]) if row["latencyMs"] else None) == latency


def test_facts_without_a_value_have_a_reason() -> None:
    payload = application_snapshot()
    rows = read(report_csv(payload, "facts"))
    snapshot = payload.snapshot
    interface_fields = [field for link in snapshot.interfaces for field in link.fields]
    peripheral_fields = [field for device in snapshot.peripherals for field in device.fields]
    fields = (*snapshot.fields, *interface_fields, *peripheral_fields)
    keys = [field.key for field in fields]
    keys += [field.key for field in payload.browser_fields]
    assert [row["key"] for row in rows] == keys
    assert all(row["reason"] for row in rows if row["status"] == "collection-failed")
    assert all(row["value"] for row in rows if row["status"] == "available")


@pytest.mark.parametrize("payload", [hostile_network(), hostile_application(), bare_report()])
def test_untrusted_text_in_csv_is_plain_and_not_a_formula(
    payload: NetworkPayload | ApplicationPayload,
) -> None:
    for table in tables_of(payload):
        for row in read(report_csv(payload, table)):
            for name, cell in row.items():
                assert cell.isprintable()
                # A number may be negative. It is not a formula.
                assert name in {"latencyMs", "value"} or not cell.startswith(("=", "+", "-", "@"))


@given(st.lists(st.lists(st.text(max_size=20), min_size=2, max_size=2), max_size=5))
def test_any_text_is_read_back_as_one_cell(rows: list[list[str]]) -> None:
    actual = list(csv.reader(io.StringIO(csv_of(("a", "b"), rows), newline="")))
    assert actual[0] == ["a", "b"]
    assert [len(row) for row in actual[1:]] == [2] * len(rows)
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in actual[1:] for cell in row)
