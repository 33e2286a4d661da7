"""Tests that a neighbour that sends false mDNS packets does not change the report of ten printers.

``make test-liar`` sends 50,000 false packets. The test suite sends fewer.
"""

import os
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from agent.wire.codec import decode, encode
from agent.wire.payloads.network import NetworkPayload
from tests import sizes
from tests.lab.tap.collect import ChildRun, collect_in_lan
from tests.lab.tap.ipp import lab_printer
from tests.lab.tap.plan import VENUE_PORTS, LabPlan, LanHost, LanService
from tests.lab.test_tap_lan import payload_of

pytestmark = [
    pytest.mark.lab,
    pytest.mark.needs("tap"),
]

LIES = sizes.amount(medium=2000, large=6000, variable="LIES")
# Packets per second. At the first rate, the kernel still receives most packets. 0 means that the
# packets are sent as fast as possible.
RATES = (20_000, 0) if "LIES" in os.environ else (20_000,)
PEAK_MAX_MIB = 96.0
LIAR = "10.81.0.66"
LIAR_MAC = "02:66:66:66:66:66"
PRINTERS = tuple(
    LanHost(
        address=f"10.81.0.{100 + n}",
        mac=f"02:1b:00:00:00:{n:02x}",
        open_ports=(80, 631, 9100),
        hostname=f"printer-{n}",
        services=(
            LanService(
                f"Honest {n}", "_ipp._tcp", 631, (f"UUID={UUID(int=n)}", "ty=Lab Printer 1")
            ),
            LanService(f"Honest {n}", "_pdl-datastream._tcp", 9100, ("ty=Lab Printer 1",)),
        ),
        ipp=(lab_printer(str(UUID(int=n))),),
    )
    for n in range(10)
)
# Nine printers are set up on this machine, by address or by MAC. The last one is not set up.
JOB: dict[str, Any] = {
    "ports": VENUE_PORTS,
    "max_hosts": 256,
    "max_services": 2048,
    "max_duration_s": 300,
    "printers": [
        {
            "id": f"q{n}",
            "name": f"Queue {n}",
            "transport": "network",
            "address": (f"{p.address}:631", p.address, p.mac, f"{p.address}:9100")[n % 4],
        }
        for n, p in enumerate(PRINTERS[:9])
    ],
}


def lan(lies: int, rate: int = 0) -> LabPlan:
    gateway = LanHost("10.81.0.1", "02:1b:00:00:01:00", (53, 80))
    liar = LanHost(LIAR, LIAR_MAC, (80,), hostname="liar")
    return LabPlan(
        "10.81.0.0/24",
        "10.81.0.2",
        gateway.address,
        (gateway, *PRINTERS, liar),
        lies=lies,
        lies_per_s=rate,
    )


def collect(tmp_path: Path, lies: int, rate: int = 0) -> ChildRun:
    directory = tmp_path / str(lies)
    directory.mkdir()
    (run,) = collect_in_lan(lan(lies, rate), JOB, directory).runs
    print(
        f"{lies} lies: {run.took_s:.1f} s, {run.peak_mib:.0f} MiB",
        *run.facts["limitations"],
        sep="\n",
    )
    return run


def honest_part(run: ChildRun) -> dict[str, Any]:
    """Return the part of a report that is about the ten printers."""
    addresses = {p.address for p in PRINTERS}
    endpoints = [e for e in run.facts["endpoints"] if e["address"] in addresses]
    return {
        "printers": run.facts["printers"],
        "endpoints": {
            (e["address"], e["port"]): (e["label"], e["host"], e["model"], e["status"],
            e["mac_address"], tuple(e["matched_printer_ids"]), tuple(e["discovered_by"]))
            for e in endpoints if e["status"] == "reachable"
        },
        "hosts": {
            h["address"]: (h["hostname"], h["mac_address"], h["reachability"])
            for h in run.facts["hosts"]
            if h["address"] in addresses
        },
    }  # fmt: skip


@pytest.mark.parametrize("rate", RATES)
def test_lying_neighbour_does_not_change_the_report_of_the_printers(
    tmp_path: Path, rate: int
) -> None:
    undisturbed, disturbed = collect(tmp_path, 0), collect(tmp_path, LIES, rate)
    assert honest_part(disturbed) == honest_part(undisturbed)
    assert [p["status"] for p in undisturbed.facts["printers"]] == ["reachable"] * 9
    assert undisturbed.facts["limitations"] == []
    assert disturbed.facts["failures"] == []
    for source in ("interfaces_source", "mdns_source", "scan_source"):
        assert disturbed.facts[source]["state"] == "succeeded"
    assert any(LIAR in text for text in disturbed.facts["limitations"])
    assert disturbed.peak_mib <= PEAK_MAX_MIB
    payload = payload_of(disturbed.facts, {**JOB, "printers": ()})
    assert payload.completeness == "limited"
    listed_endpoints = {(e.address, e.port) for e in payload.endpoints}
    assert {(p.address, port) for p in PRINTERS for port in p.open_ports} <= listed_endpoints
    decode(encode(payload), NetworkPayload)
