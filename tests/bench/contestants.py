"""The contestants of the network benchmark: the collector, its scan step alone, and nmap."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from tests.lab.tap.plan import VENUE_PORTS, LabPlan

_SCAN_STEP = """
import json, sys, time
from collectors.shared.host.interfaces import read_local_network
from collectors.network.scan.scan import scan
from collectors.network.scan.targets import select_targets
from collectors.network.discoveries import Discoveries

class Run:
    cancelled = False
    def progress(self, *_): pass
    def on_cancel(self, _): pass

local = read_local_network().in_use
ports = json.loads(sys.argv[1])
began = time.monotonic()
chosen = select_targets(local, subnets=(), exclude=(), max_hosts=5000)
result = scan(chosen.targets, ports, deadline_s=began + 120, run=Run(), discoveries=Discoveries())
took = time.monotonic() - began
print(json.dumps([took, [[h.address, h.mac_address, h.open_ports] for h in result.hosts]]))
"""
_JOB = {"max_hosts": 5000, "max_services": 2048, "max_duration_s": 60}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one run. ``macs`` maps each host to its MAC address, or to "" if the contestant
    did not report one. ``ports`` has the address and port of each open port or announced service.
    ``rss_mib`` is the peak memory, or 0 if it was not measured.
    """

    took_s: float
    macs: dict[str, str] = field(default_factory=dict)
    ports: frozenset[tuple[str, int]] = frozenset()
    rss_mib: float = 0.0


def run_scan_step(plan: LabPlan) -> Outcome:
    """Measure only the scan, without the start of the interpreter."""
    command = [sys.executable, "-c", _SCAN_STEP, json.dumps(VENUE_PORTS)]
    result = subprocess.run(command, capture_output=True, check=True)
    took_s, hosts = json.loads(result.stdout)
    return Outcome(
        took_s,
        {address: mac or "" for address, mac, _ in hosts},
        frozenset((address, port) for address, _, ports in hosts for port in ports),
    )


def run_collector(plan: LabPlan) -> Outcome:
    """Run the collector's process as the agent does. The duration includes the start of the
    process. The peak memory is the value that the kernel reports for the process.
    """
    began = time.monotonic()
    job = json.dumps({"ports": VENUE_PORTS, **_JOB}).encode() + b"\n"
    rss_kib = 0
    command = [sys.executable, "-m", "collectors", "network"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(job)
        child.stdin.flush()
        last = b""
        for line in child.stdout:
            rss_kib = max(rss_kib, peak_rss_kib(child.pid))
            last = line
    facts = json.loads(last)["facts"]
    reached = (e for e in facts["endpoints"] if e["status"] == "reachable")
    return Outcome(
        time.monotonic() - began,
        {host["address"]: host["mac_address"] or "" for host in facts["hosts"]},
        frozenset((e["address"], e["port"]) for e in reached),
        rss_kib / 1024,
    )


def run_nmap(plan: LabPlan, options: tuple[str, ...]) -> Outcome:
    """Run nmap on the same ports, without name resolution. A host counts as discovered if nmap
    reports its MAC address, or reports one of its ports as open or closed.
    """
    ports = ",".join(map(str, VENUE_PORTS))
    began = time.monotonic()
    command = ["nmap", *options, "-n", "-p", ports, "-oX", "-", plan.subnet]
    result = subprocess.run(command, capture_output=True, check=True)
    took_s = time.monotonic() - began
    macs: dict[str, str] = {}
    open_ports: set[tuple[str, int]] = set()
    for host in ElementTree.fromstring(result.stdout).iter("host"):
        kinds = {a.get("addrtype"): a.get("addr", "") for a in host.iter("address")}
        states = {int(p.get("portid", 0)): p.find("state") for p in host.iter("port")}
        port_states = {port: s.get("state") for port, s in states.items() if s is not None}
        address = kinds.get("ipv4", "")
        if "mac" in kinds or any(state in ("open", "closed") for state in port_states.values()):
            macs[address] = kinds.get("mac", "").lower()
        open_ports |= {(address, port) for port, state in port_states.items() if state == "open"}
    return Outcome(took_s, macs, frozenset(open_ports))


def peak_rss_kib(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii", "replace")
    except OSError:
        return 0
    lines = (line.split() for line in status.splitlines() if line.startswith("VmHWM:"))
    return next((int(columns[1]) for columns in lines), 0)
