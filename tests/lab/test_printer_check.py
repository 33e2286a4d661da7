"""Tests the check of printers on a simulated LAN: only the printers are contacted."""

import json
import os
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.lab.tap.collect import LabResult, collect_in_lan
from tests.lab.tap.ipp import lab_printer
from tests.lab.tap.plan import LabPlan, LanHost
from tests.lab.tap.traffic import VARIABLE as RECORDS_VARIABLE
from tests.lab.test_tap_lan import check_harmless

pytestmark = [
    pytest.mark.lab,
    pytest.mark.needs("tap"),
]

GATEWAY = LanHost("10.77.0.1", "02:1a:00:00:00:01", (53, 80))
BAR = LanHost(
    "10.77.0.50", "02:1a:00:00:00:50", (80, 631, 9100), ipp=(lab_printer(str(UUID(int=50))),)
)
EMPTY = LanHost(
    "10.77.0.51", "02:1a:00:00:00:51", (631,),
    ipp=(lab_printer(str(UUID(int=51)), "printer-state=5", "printer-state-reasons=media-empty"),),
)  # fmt: skip
CLOSED = LanHost("10.77.0.52", "02:1a:00:00:00:52", (80,))
OTHERS = tuple(LanHost(f"10.77.0.{n}", f"02:1a:00:00:01:{n:02x}", (80,)) for n in range(60, 80))
PLAN = LabPlan("10.77.0.0/24", "10.77.0.2", "10.77.0.1", (GATEWAY, BAR, EMPTY, CLOSED, *OTHERS))
PRINTERS = (
    {"id": "bar", "name": "Bar", "address": "10.77.0.50:9100"},
    {"id": "empty", "name": "Empty", "address": "10.77.0.51:631"},
    {"id": "closed", "name": "Closed", "address": "10.77.0.52:9100"},
    {"id": "off", "name": "Off", "address": "10.77.0.53:9100"},
)
JOB: dict[str, Any] = {
    "ports": (22, 80, 443),
    "max_hosts": 1024,
    "max_services": 4096,
    "max_duration_s": 300,
    "printers_only": True,
    "printers": PRINTERS,
}


def check(directory: Path, **changes: object) -> LabResult:
    return collect_in_lan(PLAN, JOB | changes, directory)


def test_check_of_all_printers_names_each_cause_and_contacts_nothing_else(tmp_path: Path) -> None:
    result = check(tmp_path)
    (run,) = result.runs
    printers = {
        printer["id"]: (printer["status"], printer["reason"]) for printer in run.facts["printers"]
    }
    assert printers["bar"] == (
        "reachable", "Reachable on port 9100, matched by address and port"
    )  # fmt: skip
    assert printers["empty"][0] == "reachable"
    assert printers["empty"][1].endswith(
        "the printer reports: out of paper; fix it at the printer: paper, cover, toner"
    )
    assert printers["closed"][0] == "unreachable"
    assert "10.77.0.52 refuses connections on port 9100" in printers["closed"][1]
    assert "another till or program may use it" in printers["closed"][1]
    assert printers["off"] == (
        "unreachable", "No answer from 10.77.0.53: is it switched on and connected?"
    )  # fmt: skip
    assert (run.facts["failures"], run.facts["limitations"]) == ([], [])
    check_harmless(result)
    assert set(result.counters.syns_by_port) == {515, 631, 9100}
    assert {host["address"] for host in run.facts["hosts"] if "tcp" in host["sources"]} == {
        "10.77.0.50", "10.77.0.51", "10.77.0.52",
    }  # fmt: skip


def test_check_of_one_printer_contacts_only_this_printer(tmp_path: Path) -> None:
    result = check(tmp_path, printer="Bar")
    (run,) = result.runs
    assert [printer["id"] for printer in run.facts["printers"]] == ["bar"]
    assert result.counters.arp_requests == 1
    assert result.counters.syns_by_port == {515: 1, 631: 1, 9100: 1}
    check_harmless(result)


def test_snmp_requests_only_read_and_go_only_to_printers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(os.environ.get(RECORDS_VARIABLE) or tmp_path)
    monkeypatch.setenv(RECORDS_VARIABLE, str(folder))
    earlier_records = set(folder.glob("*-*.json"))
    result = check(tmp_path, snmp_community="public")
    (record,) = {*folder.glob("*-*.json")} - earlier_records
    rows = json.loads(record.read_text())["requests"]
    snmp_requests = {(device, request) for device, request, _ in rows if "SNMP" in request}
    assert snmp_requests == {("printer", "SNMP get")}
    check_harmless(result)


def test_excluded_printer_is_not_contacted(tmp_path: Path) -> None:
    result = check(tmp_path, printer="bar", exclude=("10.77.0.50",))
    (run,) = result.runs
    (printer,) = run.facts["printers"]
    assert printer["status"] == "unknown"
    assert run.facts["limitations"] == [
        "printer Bar: 10.77.0.50 is excluded by the configuration and was not contacted"
    ]
    assert result.counters.syns == 0
