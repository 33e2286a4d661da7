"""Tests the findings for a machine with many real problems, and for one without a network.

On the first machine the disk is full, a print queue is stuck, the till program does not run, and
neither the service nor the kiosk's browser can be reached. The collector runs as a child process,
as in the agent.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from agent.presentation.findings.findings import findings_of
from agent.wire.codec import decode
from agent.wire.payloads.network import NetworkPayload
from collectors.contract import ApplicationFacts
from tests.lab.namespaces import entering
from tests.lab.peers.lan import Peer, PeerLan, peer_lan
from tests.lab.spooler import Spooler
from tests.paths import ROOT
from tests.unit.agent.presentation.findings.sentences_by_rule import sentences_by_rule_of_facts

pytestmark = [pytest.mark.lab]


def run_on_machine(lan: PeerLan, machine: Peer, spooler: Spooler, *command: str) -> None:
    subprocess.run(
        lan.command(machine, *command),
        env=spooler.environment, input=b"1 x espresso\n",
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip


def collect_facts(
    lan: PeerLan, machine: Peer, spooler: Spooler, job: dict[str, object]
) -> ApplicationFacts:
    snapshot_process = (sys.executable, "-m", "tests.unit.collectors.application.run_snapshot")
    result = subprocess.run(
        lan.command(machine, "unshare", "--mount", *snapshot_process, json.dumps(job)),
        env=spooler.environment,
        cwd=ROOT, capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr.decode()[-3000:]
    facts = json.loads(result.stdout)["events"][-1]["facts"]
    return TypeAdapter(ApplicationFacts).validate_python(facts)


@pytest.mark.needs("peers")
def test_each_problem_of_a_real_machine_has_a_finding() -> None:
    with tempfile.TemporaryDirectory(prefix="findings-") as path, peer_lan(Path(path)) as lan:
        directory = Path(path)
        directory.chmod(0o755)
        disk = directory / "disk"
        disk.mkdir()
        machine = lan.add_host("till", 1)
        spooler = lan.start_spooler(machine)
        lan.add_queue(machine, spooler, "kitchen", "socket://127.0.0.1:9", "-m", "raw")
        run_on_machine(lan, machine, spooler, "cupsdisable", "kitchen")
        run_on_machine(lan, machine, spooler, "lp", "-d", "kitchen")
        job: dict[str, object] = {
            "max_duration_s": 10,
            "watch_processes": ["no-such-till"],
            "service_url": "https://127.0.0.1:1",
            "kiosk_debug_url": "http://127.0.0.1:2",
            "full_disk": str(disk),
        }
        findings = sentences_by_rule_of_facts(collect_facts(lan, machine, spooler, job))
    (stuck,) = findings["print-queue-stuck"]
    assert stuck.startswith("The print queue kitchen is stuck: 1 job waits, the oldest for ")
    assert findings["program-missing"] == ("The program no-such-till is not running.",)
    assert findings["service-unreachable"] == (
        "The service cannot be reached: Connection refused.",
    )
    assert findings["kiosk-silent"] == (
        "The kiosk's browser does not answer: no browser listens at kiosk_debug_url.",
    )
    assert f"The disk {disk} is full: 0 bytes of 4 MiB free." in findings["disk-full"]
    assert "no-network" not in findings


@pytest.mark.needs("network-namespace")
def test_machine_without_network_has_the_finding_no_network() -> None:
    collect = (sys.executable, "-m", "agent", "collect", "network", "--json")
    result = subprocess.run(
        (*entering(), *collect), cwd=ROOT, capture_output=True, timeout=300, check=False
    )
    (finding,) = findings_of(decode(result.stdout, NetworkPayload))
    assert finding.code == "no-network"
