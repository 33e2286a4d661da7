"""Tests watched devices in a LAN that counts the packets to payment terminals.

The terminals have open ports and announce services, so that the scan has reasons to contact them.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from collectors.contract import LearnedPrinter
from tests.lab.tap.collect import collect_in_lan
from tests.lab.tap.plan import VENUE_PORTS, LabPlan, LanHost, LanService

pytestmark = [pytest.mark.lab, pytest.mark.needs("tap")]

LAN = "10.77.0"
GATEWAY = LanHost(f"{LAN}.1", "02:1a:00:00:00:01", (53, 80))
BAR, PATIO, HALL, CELLAR, DISPLAY = (f"00:11:22:00:00:0{n}" for n in range(1, 6))
"""The MACs of the payment terminals at the bar, on the patio, in the hall and in the cellar, and of
a kitchen display."""
PHONE = "02:99:00:00:00:01"
OPEN = (80, 443, 631, 8080, 8443, 9100)


def terminal(number: int, mac: str) -> LanHost:
    service = LanService(f"Terminal {mac[-2:]}", "_http._tcp", 80)
    return LanHost(
        f"{LAN}.{number}", mac, OPEN, hostname=f"term-{mac[-2:]}.local", services=(service,)
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
        terminal(24, CELLAR),  # moved from 14, where a printer is set up on this machine
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
    device("Loft", 13, "00:11:22:00:00:09"),
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


def at(number: int | None) -> str | None:
    return None if number is None else f"{LAN}.{number}"


def check_network(facts: dict[str, Any]) -> None:
    states = {
        each["device"]["name"]: (
            each["state"], each["address"], each["moved_from"], each["other_mac"]
        )
        for each in facts["devices"]
    }  # fmt: skip
    assert states == {
        name: (state, at(address), at(moved), mac)
        for name, (state, address, moved, mac) in EXPECTED.items()
    }


def check_snapshot(facts: dict[str, Any]) -> None:
    fields = {each["key"]: each["value"] for each in facts["fields"]}
    for name, (state, address, moved, mac) in EXPECTED.items():
        aspects = ("present", "address", "movedFrom", "otherMac")
        values = tuple(fields[f"device.{name}.{aspect}"] for aspect in aspects)
        assert values == (state in ("present", "moved"), at(address), at(moved), mac), name


def test_both_reports_find_the_devices_and_send_nothing_to_the_terminals(tmp_path: Path) -> None:
    result = collect_in_lan(PLAN, JOB, tmp_path, others=(SNAPSHOT,))
    network, snapshot = result.runs
    check_network(network.facts)
    check_snapshot(snapshot.facts)
    hosts = {each["address"]: each for each in network.facts["hosts"]}
    for number in (10, 21, 24):
        assert not any(each["source"] == "tcp" for each in hosts[f"{LAN}.{number}"]["services"])
    assert any(each["source"] == "tcp" for each in hosts[f"{LAN}.15"]["services"])
