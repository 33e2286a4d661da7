"""Tests printers that are set up only by their address, in several reports of one LAN.

The second report identifies them by the MACs that the first report learned, even if DHCP has
changed their addresses since.
"""

from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent.adapters.storage.printer_memory import PrinterMemory
from agent.adapters.storage.state import StateDirectory
from agent.rules.learned_printers import still_known, update_memory
from agent.wire.codec import validate
from collectors.contract import NetworkFacts
from tests.lab.tap.collect import collect_in_lan
from tests.lab.tap.plan import LabPlan, LanHost

pytestmark = [pytest.mark.lab, pytest.mark.needs("tap")]

LAN = "10.77.0"
ADDRESSES = {"kitchen": f"{LAN}.5", "bar": f"{LAN}.6", "office": f"{LAN}.7", "pass": f"{LAN}.8"}
MACS = {name: f"00:26:ab:00:00:{number:02x}" for number, name in enumerate(ADDRESSES, 1)}
STRANGER_MAC = "00:11:62:00:00:09"
GATEWAY = LanHost(f"{LAN}.1", "02:1a:00:00:00:01", (53, 80))


def printer(address: str, mac: str) -> LanHost:
    """Return a printer. All printers are alike, so only the MAC distinguishes them."""
    return LanHost(address, mac, (9100,))


ORIGINAL_HOSTS = tuple(printer(ADDRESSES[name], mac) for name, mac in MACS.items())
CHANGED_HOSTS = (
    printer(ADDRESSES["kitchen"], MACS["bar"]),
    printer(ADDRESSES["bar"], MACS["kitchen"]),
    printer(f"{LAN}.20", MACS["office"]),
    printer(ADDRESSES["pass"], STRANGER_MAC),
)


def create_report(
    memory: PrinterMemory, hosts: tuple[LanHost, ...], directory: Path
) -> dict[str, dict[str, Any]]:
    """Create a report and store what it learned, as the daemon does. Returns printers by name."""
    stored, reason = memory.load()
    assert reason is None
    now = datetime.now(UTC)
    job: dict[str, Any] = {
        "ports": (80, 631, 9100),
        "max_hosts": 256,
        "max_services": 512,
        "max_duration_s": 300,
        "learned": [asdict(printer_facts) for printer_facts in still_known(stored.printers, now)],
        "printers": [
            {"id": name, "name": name, "transport": "network", "address": f"{address}:9100"}
            for name, address in ADDRESSES.items()
        ],
    }
    plan = LabPlan(f"{LAN}.0/27", f"{LAN}.2", GATEWAY.address, (GATEWAY, *hosts))
    result = collect_in_lan(plan, job, directory)
    assert result.counters.harm() == {}
    assert result.counters.most_print_connections <= 1
    (run,) = result.runs
    memory.write(update_memory(stored, validate(run.facts, NetworkFacts), now))
    return {printer_facts["id"]: printer_facts for printer_facts in run.facts["printers"]}


def test_moved_swapped_and_replaced_printers_are_identified_by_mac(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "state")
    state.prepare()
    memory = PrinterMemory(state)

    printers = create_report(memory, ORIGINAL_HOSTS, tmp_path)
    assert {printer_facts["status"] for printer_facts in printers.values()} == {"reachable"}
    known_printers = {
        printer_facts.id: printer_facts for printer_facts in memory.load()[0].printers
    }
    assert {
        name: known_printer.mac_address for name, known_printer in known_printers.items()
    } == MACS

    printers = create_report(memory, CHANGED_HOSTS, tmp_path)
    for name, number in (("kitchen", 6), ("bar", 5), ("office", 20)):
        assert printers[name]["status"] == "unreachable"
        assert printers[name]["matched_endpoint"] == f"{LAN}.{number}:9100"
        assert f"oved to {LAN}.{number}:9100 (same MAC)" in printers[name]["reason"]
    assert f"another device has {LAN}.5 now" in printers["kitchen"]["reason"]
    assert f"nothing answers at {LAN}.7 any more" in printers["office"]["reason"]
    assert (printers["pass"]["status"], printers["pass"]["matched_endpoint"]) == ("unknown", None)
    assert f"another device answers there: MAC {STRANGER_MAC}" in printers["pass"]["reason"]
    assert f"while the printer had MAC {MACS['pass']}" in printers["pass"]["reason"]
    (candidate,) = memory.load()[0].replacements
    assert (candidate.printer.id, candidate.printer.mac_address) == ("pass", STRANGER_MAC)

    printers = create_report(memory, ORIGINAL_HOSTS, tmp_path)
    assert {printer_facts["status"] for printer_facts in printers.values()} == {"reachable"}
    assert memory.load()[0].replacements == ()
    assert {
        printer_facts.id: replace(printer_facts, seen_at="")
        for printer_facts in memory.load()[0].printers
    } == {
        name: replace(known_printer, seen_at="") for name, known_printer in known_printers.items()
    }
