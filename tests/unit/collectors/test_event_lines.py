"""Tests that a collector writes each event as one line that fits into the buffer of its parent
process. If the line would be too long, the largest part of the event is cut, and a limitation
reports the cut.
"""

import json
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.contract import (
    ApplicationFacts,
    Checkpoint,
    Crash,
    Endpoint,
    Failure,
    Field,
    Host,
    InterfaceFields,
    NetworkFacts,
    Printer,
    Progress,
    Result,
    Service,
)
from collectors.event_lines import line_of

LIMIT = 100_000
FLOODER, FLOODER_MAC = "10.0.0.66", "02:00:00:00:00:66"
"""The address and MAC of a device that announces far too many services."""


def an_endpoint(address: str, port: int, mac: str | None, ids: tuple[str, ...] = ()) -> Endpoint:
    return Endpoint(address, "h", port, "x" * 50, ("mdns",), "discovered", None, mac, ids)


def a_host(address: str, services: int, mac: str | None) -> Host:
    return Host(
        address, tuple(Service(n, "mdns", "x" * 50) for n in range(services)), mac_address=mac
    )


def network(**values: Any) -> NetworkFacts:
    return NetworkFacts("local-network", "linux", "1", "2026-01-01T00:00:00Z", **values)


HONEST = network(
    hosts=tuple(a_host(f"10.0.0.{n}", 3, f"02:00:00:00:00:{n:02}") for n in range(10)),
    endpoints=tuple(an_endpoint(f"10.0.0.{n}", 631, f"02:00:00:00:00:{n:02}") for n in range(10)),
    printers=(Printer("p", "P", "network", "reachable"),),
)


def facts_of(line: bytes) -> dict[str, Any]:
    """Check that the event is one line within the limit. Return its facts."""
    assert len(line) <= LIMIT
    assert line.count(b"\n") == 1
    return dict(json.loads(line)["facts"])


def test_an_event_that_fits_is_unchanged() -> None:
    for event in (Progress("scan", 1, 2), Checkpoint(HONEST), Result(HONEST), Crash("x")):
        expected = json.loads(json.dumps(asdict(event)))
        assert json.loads(line_of(event, LIMIT)) == expected
    assert json.loads(line_of(Progress("scan", 1, 2)))["done"] == 1


def test_only_the_largest_device_is_cut_and_reported() -> None:
    announced = tuple(an_endpoint(FLOODER, n, FLOODER_MAC) for n in range(2000))
    matched = an_endpoint(FLOODER, 9100, FLOODER_MAC, ("p",))
    facts = replace(
        HONEST,
        hosts=(*HONEST.hosts, a_host(FLOODER, 1000, FLOODER_MAC)),
        endpoints=(*announced, matched, *HONEST.endpoints),
    )
    for event in (Checkpoint(facts), Result(facts)):
        output = facts_of(line_of(event, LIMIT))
        addresses = [endpoint["address"] for endpoint in output["endpoints"]]
        assert all(addresses.count(f"10.0.0.{n}") == 1 for n in range(10))
        assert all(len(host["services"]) == 3 for host in output["hosts"][:10])
        assert [e["port"] for e in output["endpoints"] if e["matched_printer_ids"]] == [9100]
        # The first endpoints of the device are kept.
        assert output["endpoints"][0]["port"] == 0
        assert len(output["printers"]) == 1
        assert output["truncated"]
        (text,) = output["limitations"]
        assert text.startswith(f"{FLOODER} (MAC {FLOODER_MAC}): ")
        assert "of 3,001 services and ports are listed" in text


def test_services_of_many_devices_are_cut_equally() -> None:
    facts = network(hosts=tuple(a_host(f"10.0.{n // 250}.{n % 250}", 40, None) for n in range(50)))
    content = facts_of(line_of(Result(facts), LIMIT))
    counts = {len(host["services"]) for host in content["hosts"]}
    assert len(content["hosts"]) == 50
    assert max(counts) - min(counts) <= 1
    assert len(content["limitations"]) == 17  # 16 devices, and the number of the other devices
    assert content["limitations"][-1] == "further devices whose lists are cut: 34"


def test_failures_and_limitations_of_an_oversized_result_are_cut() -> None:
    lines = tuple(f"{n} " + "x" * 1000 for n in range(200))
    facts = replace(HONEST, limitations=lines, failures=(Failure("a", "b" * 1000),) * 200)
    content = facts_of(line_of(Result(facts), LIMIT))
    assert len(content["printers"]) == 1
    assert len(content["endpoints"]) == 10
    # 16 of the 200 failures and 16 of the 200 limitations are kept.
    assert content["limitations"][-1].endswith("left out, because there are too many: 368")


def test_excess_hosts_are_cut_before_endpoints_and_printers() -> None:
    hosts = tuple(
        a_host(f"10.{n // 62500}.{n // 250 % 250}.{n % 250}", 0, None) for n in range(900)
    )
    facts = replace(HONEST, hosts=hosts, endpoints=(an_endpoint("10.0.0.1", 1, None, ("p",)),))
    content = facts_of(line_of(Result(facts), LIMIT))
    assert (content["hosts"], len(content["endpoints"]), len(content["printers"])) == ([], 1, 1)
    assert "900 hosts" in content["limitations"][0]


@pytest.mark.medium
@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400), st.booleans()), max_size=30),
    st.integers(0, 100),
)
def test_any_network_facts_fit_into_one_line(
    devices: list[tuple[int, int, bool]], limitations: int
) -> None:
    hosts, endpoints = [], []
    for number, (services, ports, has_mac) in enumerate(devices):
        mac = f"02:00:00:00:00:{number:02x}" if has_mac else None
        hosts.append(a_host(f"10.0.0.{number}", services, mac))
        endpoints += [an_endpoint(f"10.0.0.{number}", port, mac) for port in range(ports)]
    facts = network(
        hosts=tuple(hosts), endpoints=tuple(endpoints), limitations=("x" * 1000,) * limitations
    )
    facts_of(line_of(Result(facts), LIMIT))


def test_the_longest_field_of_a_snapshot_loses_its_value_and_gets_a_reason() -> None:
    long, short = Field("cpu", "s", "available", "x" * LIMIT), Field("os", "s", "available", "y")
    facts = ApplicationFacts(
        "2026", fields=(long, short), interfaces=(InterfaceFields("eth0", (long, short)),)
    )
    content = facts_of(line_of(Result(facts), LIMIT))
    for fields in (content["fields"], content["interfaces"][0]["fields"]):
        assert [field["status"] for field in fields] == ["collection-failed", "available"]
        assert "100,002 bytes" in fields[0]["reason"]
    assert content["limitations"] == ["cpu was left out: it is too long"]
    assert content["truncated"]


def test_whole_interfaces_are_left_out_if_there_are_too_many_short_fields() -> None:
    group = InterfaceFields("eth0", (Field("os", "s", "available", "y" * 100),) * 100)
    facts = ApplicationFacts("2026", fields=group.fields[:3], interfaces=(group,) * 100)
    content = facts_of(line_of(Result(facts), LIMIT))
    assert len(content["fields"]) == 3
    assert "100 interfaces and 0 peripherals are left out" in content["limitations"][0]


def test_a_crash_event_is_bounded() -> None:
    assert len(line_of(Crash("x" * LIMIT), LIMIT)) < 5000
