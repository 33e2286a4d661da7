"""Tests the watched devices in the network report and in the application snapshot.

The LAN fails a test if a payment terminal gets packets, except ARP requests and empty datagrams.
The terminals have open ports and announce services, so that the scan has reasons to contact them.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from collectors.contract import LearnedPrinter
from tests.lab.tap.collect import LabResult, collect_in_lan
from tests.lab.tap.plan import VENUE_PORTS, LabPlan, LanHost, LanService
from tests.unit.collectors.watched_venues import GATEWAY as GATEWAY_ADDRESS
from tests.unit.collectors.watched_venues import (
    NETWORK,
    OWN,
    learned_on_the_first_day,
    venue_of,
)

pytestmark = [pytest.mark.lab, pytest.mark.needs("tap")]

PATIENT = "tests.lab.tap.patient"
LAN = "10.77.0"
GATEWAY = LanHost(f"{LAN}.1", "02:1a:00:00:00:01", (53, 80))
BAR, PATIO, HALL, CELLAR, DISPLAY, LOFT = (f"00:11:22:00:00:0{n}" for n in range(1, 7))
"""The MACs of the payment terminals at the bar, on the patio, in the hall and in the cellar, of a
kitchen display, and of the terminal in the loft, which is off."""
PHONE = "02:99:00:00:00:01"
OPEN_PORTS = (80, 443, 631, 8080, 8443, 9100)


def terminal(number: int, mac: str) -> LanHost:
    service = LanService(f"Terminal {mac[-2:]}", "_http._tcp", 80)
    return LanHost(
        f"{LAN}.{number}", mac, OPEN_PORTS, hostname=f"term-{mac[-2:]}.local", services=(service,)
    )


PLAN = LabPlan(
    f"{LAN}.0/27",
    f"{LAN}.2",
    GATEWAY.address,
    (
        GATEWAY,
        terminal(10, BAR),
        terminal(21, PATIO),  # moved from 11
        LanHost(f"{LAN}.12", PHONE, (80,)),  # has the address of the hall's terminal
        terminal(24, CELLAR),  # moved from 14 to the address at which printer P1 is set up
        LanHost(f"{LAN}.15", DISPLAY, (80,)),
    ),
    terminals=(BAR, PATIO, CELLAR),
)


def device(name: str, number: int | None, mac: str | None, kind: str = "") -> dict[str, Any]:
    address = None if number is None else f"{LAN}.{number}"
    return {
        "name": name,
        "kind": kind or "payment-terminal",
        "address": address,
        "mac_address": mac,
    }


DEVICES = [
    device("Bar", 10, None),
    device("Patio", 11, PATIO),
    device("Hall", 12, HALL),
    device("Cellar", 14, None),
    device("Loft", 13, LOFT),
    device("Pass", 15, DISPLAY, "kitchen-display"),
    device("Any", None, BAR),
]
LEARNED = LearnedPrinter(
    "device:Cellar", f"{LAN}.14", "2026-11-01T00:00:00+00:00", f"{LAN}.14", mac_address=CELLAR
)
JOB: dict[str, Any] = {
    "ports": VENUE_PORTS,
    "max_hosts": 256,
    "max_services": 512,
    "max_duration_s": 300,
    "snmp_community": "public",
    "devices": DEVICES,
    "learned": [asdict(LEARNED)],
    "printers": [
        {"id": "p1", "name": "P1", "transport": "network", "address": f"{LAN}.24:9100"},
        {"id": "p2", "name": "P2", "transport": "network", "address": f"{LAN}.10"},
    ],
}
SNAPSHOT: dict[str, Any] = {
    "kind": "application",
    "max_duration_s": 300,
    "devices": DEVICES,
    "learned": [asdict(LEARNED)],
}
EXPECTED = {
    "Bar": ("present", 10, None, None),
    "Patio": ("moved", 21, 11, None),
    "Hall": ("replaced", 12, None, PHONE),
    "Cellar": ("moved", 24, 14, None),
    "Loft": ("absent", 13, None, None),
    "Pass": ("present", 15, None, None),
    "Any": ("present", 10, None, None),
}
"""The state, the address, the earlier address and the MAC of another device at the address. Each
address is shortened to its last part."""


def at(number: int) -> str:
    return f"{LAN}.{number}"


def at_or_none(number: int | None) -> str | None:
    return None if number is None else at(number)


def check_network(facts: dict[str, Any]) -> None:
    states = {
        state["device"]["name"]: (
            state["state"], state["address"], state["moved_from"], state["other_mac"]
        )
        for state in facts["devices"]
    }  # fmt: skip
    assert states == {
        name: (state, at(address), at_or_none(moved), mac)
        for name, (state, address, moved, mac) in EXPECTED.items()
    }


def check_snapshot(facts: dict[str, Any]) -> None:
    fields = {field["key"]: field["value"] for field in facts["fields"]}
    for name, (state, address, moved, mac) in EXPECTED.items():
        aspects = ("present", "address", "movedFrom", "otherMac")
        values = tuple(fields[f"device.{name}.{aspect}"] for aspect in aspects)
        assert values == (state in ("present", "moved"), at(address), at_or_none(moved), mac), name


def check_both_reports(result: LabResult) -> None:
    """Check the network report and the snapshot, and that the scan tried no port of a terminal."""
    network, snapshot = result.runs
    check_network(network.facts)
    check_snapshot(snapshot.facts)
    hosts = {host["address"]: host for host in network.facts["hosts"]}
    for number in (10, 21, 24):
        assert not any(
            service["source"] == "tcp" for service in hosts[f"{LAN}.{number}"]["services"]
        )
    assert any(service["source"] == "tcp" for service in hosts[f"{LAN}.15"]["services"])


def test_both_reports_find_the_devices_and_send_nothing_to_the_terminals(tmp_path: Path) -> None:
    check_both_reports(collect_in_lan(PLAN, JOB, tmp_path, others=(SNAPSHOT,), module=PATIENT))


@pytest.mark.large
def test_older_entries_of_the_neighbour_table_do_not_deceive_the_reports(tmp_path: Path) -> None:
    """Only the older entries of the terminals at the bar and in the cellar are still right."""
    stale = {at(10): BAR, at(11): PATIO, at(12): HALL, at(24): CELLAR, at(13): LOFT, at(30): PHONE}
    check_both_reports(
        collect_in_lan(PLAN, JOB, tmp_path, others=(SNAPSHOT,), stale=stale, module=PATIENT)
    )


@pytest.mark.large
def test_terminals_get_nothing_if_the_system_reports_no_neighbour_events(tmp_path: Path) -> None:
    check_both_reports(
        collect_in_lan(
            PLAN, JOB, tmp_path, others=(SNAPSHOT,), module="tests.lab.tap.without_events"
        )
    )


@pytest.mark.large
def test_a_check_of_printers_sends_nothing_to_terminals_at_the_printers_addresses(
    tmp_path: Path,
) -> None:
    (run,) = collect_in_lan(PLAN, {**JOB, "printers_only": True}, tmp_path).runs
    assert [printer["status"] for printer in run.facts["printers"]] == ["unreachable"] * 2


@pytest.mark.large
@pytest.mark.parametrize("seed", [4, 9, 18, 23, 32])
def test_reports_send_nothing_to_the_terminals_of_a_generated_venue(
    tmp_path: Path, seed: int
) -> None:
    """Some devices have moved, are off or were replaced since the report that learned them.

    Each of these venues has two terminals that are on.
    """
    venue = venue_of(seed)
    learned = [asdict(learned_device) for learned_device in learned_on_the_first_day(venue)]
    job_devices = {
        "devices": [asdict(watched_device) for watched_device in venue.devices],
        "learned": learned,
    }
    network = {"ports": VENUE_PORTS, "max_hosts": 300, "max_services": 99, "max_duration_s": 300}
    snapshot = {"kind": "application", "max_duration_s": 300}
    hosts = tuple(
        LanHost(address, host.mac, tuple(host.ports)) for address, host in venue.now.items()
    )
    terminals = tuple(
        watched_device.lan.mac for watched_device in venue.watched if watched_device.is_terminal
    )
    assert len({host.mac for host in hosts} & set(terminals)) == 2
    plan = LabPlan(f"{NETWORK}.0/24", OWN, GATEWAY_ADDRESS, hosts, terminals=terminals)
    runs = collect_in_lan(
        plan,
        {**network, **job_devices},
        tmp_path,
        others=({**snapshot, **job_devices},),
        module=PATIENT,
    ).runs
    fields = {field["key"]: field["value"] for field in runs[1].facts["fields"]}
    for watched_device, state in zip(venue.watched, runs[0].facts["devices"], strict=True):
        # A device with a new MAC can be identified only by its host name, but this LAN announces no
        # names. So its state is not compared.
        if watched_device.fate != "new MAC":
            assert (state["state"], state["address"]) == (
                watched_device.network.state,
                watched_device.network.address,
            )
            name = watched_device.device.name
            if watched_device.snapshot.state != "unknown":
                assert fields[f"device.{name}.movedFrom"] == watched_device.snapshot.moved_from
