"""Tests the network report on a LAN of real programs: cupsd, ippeveprinter and avahi."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.presentation.headline import headline_of
from tests import sizes
from tests.lab.harm import HARM_PORTS
from tests.lab.peers.lan import Peer, PeerLan, peer_lan
from tests.lab.spooler import Spooler
from tests.lab.test_tap_lan import payload_of
from tests.paths import ROOT

pytestmark = [
    pytest.mark.lab,
    pytest.mark.needs("peers"),
]

JOB = {
    "ports": [22, 53, 80, 139, 443, 445, 515, 554, 631, 8008, 8043, 8080, 8443, 9100, 9101],
    "max_hosts": 256,
    "max_services": 1024,
    "max_duration_s": 300,
    "exclude": ["10.66.0.66"],
    "printers": [
        {"id": "till", "name": "Till", "transport": "network", "address": "10.66.0.20:9100"},
        {"id": "by-mac", "name": "By MAC", "transport": "network", "address": "02:66:00:00:00:0b"},
        {"id": "nowhere", "name": "X", "transport": "network", "address": "10.66.0.99:9100"},
    ],
}
OUT_OF_PAPER = "http://{address}:631/media?" + "&".join(
    f"size{tray}=na_letter_8.5x11in&type{tray}=stationery&level{tray}=0" for tray in range(2)
)
"""The page of ippeveprinter that sets the level of both paper trays to 0."""


@dataclass
class Venue:
    """The LAN during the report.

    ``machine`` is the host that runs the agent, and ``server`` is a print server. The script
    listener.py writes ``counts_file``. ``truth_file`` has the printers' real addresses.
    """

    lan: PeerLan
    machine: Peer
    printers: dict[str, Peer]
    spooler: Spooler
    server: Peer
    server_spooler: Spooler
    counts_file: Path
    truth_file: Path

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start Python on the machine with these arguments."""
        env = {**self.spooler.environment, "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(
            self.lan.command(self.machine, sys.executable, *arguments),
            env=env,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )

    def start_report(self) -> subprocess.Popen[bytes]:
        process = self.start("-m", "collectors", "network", stdin=subprocess.PIPE)
        assert process.stdin is not None
        # An earlier report learned the MAC of the printer that gets another address.
        cellar = {
            "id": "cups:cellar",
            "setup": f"10.66.0.13 {self.printers['Cellar'].uuid}",
            "mac_address": "02:66:00:00:00:0d",
        }
        process.stdin.write(json.dumps(JOB | {"learned": [cellar]}).encode() + b"\n")
        process.stdin.flush()
        return process

    def browse(self, limit: int = 1000) -> subprocess.Popen[bytes]:
        """Start the script browse.py. It waits until `browse_results` lets it begin."""
        script = str(ROOT / "tests/lab/peers/browse.py")
        arguments = ("eth0", f"{self.machine.address}/24", str(limit), "300")
        return self.start(script, *arguments, stdin=subprocess.PIPE)


def facts_of(report: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Return the facts of a collector's result.

    The collector's standard input stays open until the result, because closing it would end the
    collector.
    """
    assert report.stdout is not None
    try:
        for line in report.stdout:
            event = json.loads(line)
            if event["event"] in ("result", "crash"):
                assert event["event"] == "result", event
                return dict(event["facts"])
        raise AssertionError("the collector ended without a result")
    finally:
        report.kill()
        report.communicate()


def browse_results(*scripts: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    """Let all scripts begin at the same time, when all are ready. Returns their results."""
    for process in scripts:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in scripts:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    results = []
    for process in scripts:
        output, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors.decode()
        results.append(dict(json.loads(output)))
    return results


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    """Yield a directory that cupsd's user can enter, unlike the directories of pytest."""
    with tempfile.TemporaryDirectory(prefix="peers-") as path:
        Path(path).chmod(0o755)
        yield Path(path)


@pytest.fixture(scope="module")
def venue(directory: Path) -> Iterator[Venue]:
    with peer_lan(directory, excluded=("10.66.0.66",)) as lan:
        machine = lan.add_host("pc", 1)
        printers = {
            name: lan.add_printer(name, number, *make_model)
            for name, number, make_model in (
                ("Kitchen", 11, ("Brother", "HL-L2350DW")),
                ("Bar", 12, ("Epson", "TM-m30")),
                ("Cellar", 13, ("HP", "LaserJet-400")),
                ("Office", 14, ("Canon", "MF-640")),
                ("Terrace", 15, ("Star", "mC-Print3")),
            )
        }
        lan.add_host("excluded", 66)
        till, server = lan.add_host("till", 20), lan.add_host("server", 30)
        counts = directory / "counts.json"
        listener = subprocess.Popen(
            lan.command(till, sys.executable, str(ROOT / "tests/lab/peers/listener.py"), counts),
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
        )
        try:
            assert listener.stdout is not None
            assert listener.stdout.readline() == b"ready\n"
            spooler = lan.start_spooler(machine)
            server_spooler = lan.start_spooler(server, listen=f"{server.address}:631")
            lan.wait_for_printers(machine)
            truth = directory / "truth.json"
            new_venue = Venue(
                lan, machine, printers, spooler, server, server_spooler, counts, truth
            )
            _set_up(new_venue)
            yield new_venue
        finally:
            listener.kill()
            listener.communicate()


def _set_up(venue: Venue) -> None:
    """Create the queues, then break some printers. Writes the printers to ``venue.truth_file``."""
    lan, printers = venue.lan, venue.printers
    uris = {
        name: f"ipp://{peer.address}/ipp/print?uuid={peer.uuid}" for name, peer in printers.items()
    }
    uris["Kitchen"] = f"dnssd://Kitchen._ipp._tcp.local/?uuid={printers['Kitchen'].uuid}"
    for name, uri in uris.items():
        lan.add_queue(venue.machine, venue.spooler, name.lower(), uri)
    driverless = f"ipp://{printers['Bar'].address}/ipp/print"
    lan.add_queue(venue.machine, venue.spooler, "bar-2", driverless, "-m", "everywhere")
    gone = f"ipp://{printers['Bar'].address}/printers/GONE"
    lan.add_queue(venue.machine, venue.spooler, "gone", gone)
    for name in ("shared", "paused", "missing"):
        uri = f"ipp://{venue.server.address}/printers/{name}"
        lan.add_queue(venue.machine, venue.spooler, f"server-{name}", uri)
    for name in ("shared", "paused"):
        lan.add_queue(venue.server, venue.server_spooler, name, "socket://10.66.0.20:9100")
    lan.administer(venue.server, venue.server_spooler, "cupsdisable", "paused")
    lan.add_queue(venue.machine, venue.spooler, "wrapped", "beh:/1/0/5/socket://10.66.0.20:9100")
    usb = "dnssd://Brother%20HL%20(USB)._ipp._tcp.local/"
    lan.add_queue(venue.machine, venue.spooler, "over-usb", usb)
    lan.move(printers["Cellar"], 43)
    lan.stop(printers["Office"])
    lan.unplug(printers["Terrace"])
    page = OUT_OF_PAPER.format(address=printers["Bar"].address)
    get_page = f"import urllib.request; urllib.request.urlopen({page!r}, timeout=60).read()"
    _, errors = venue.start("-c", get_page).communicate(timeout=120)
    assert not errors, errors.decode()
    peers = {name: asdict(without_process(peer)) for name, peer in printers.items()}
    venue.truth_file.write_text(json.dumps(peers))


def without_process(peer: Peer) -> Peer:
    """Return a serializable form of a peer."""
    return Peer(peer.name, peer.namespace, peer.address, peer.mac_address, None, peer.uuid)


@pytest.fixture(scope="module")
def facts(venue: Venue) -> dict[str, Any]:
    return facts_of(venue.start_report())


@pytest.fixture(scope="module")
def truth(venue: Venue) -> dict[str, Any]:
    return dict(json.loads(venue.truth_file.read_text()))


def printer(facts: dict[str, Any], printer_id: str) -> dict[str, Any]:
    (result,) = (
        printer_facts for printer_facts in facts["printers"] if printer_facts["id"] == printer_id
    )
    return dict(result)


def test_every_network_source_succeeds_in_the_peer_lan(facts: dict[str, Any]):
    for source in ("interfaces_source", "mdns_source", "scan_source"):
        assert facts[source] == {"state": "succeeded", "reason": None}
    assert facts["failures"] == []
    assert facts["truncated"] is False, facts["limitations"]


@pytest.mark.parametrize("name", ["Kitchen", "Bar"])
def test_a_queue_is_matched_to_its_printer_by_uuid(
    facts: dict[str, Any], truth: dict[str, Any], name: str
):
    queue = printer(facts, f"cups:{name.lower()}")
    assert queue["status"] == "reachable"
    assert queue["matched_endpoint"] == f"{truth[name]['address']}:631"
    assert queue["reason"].startswith("Reachable on port 631, matched by UUID")


def test_a_queue_without_identity_is_matched_by_its_address(facts: dict[str, Any]):
    queue = printer(facts, "cups:bar-2")
    assert queue["status"] == "reachable"
    assert queue["reason"].startswith("Reachable on port 631, matched by address, port and queue")


def test_printer_without_paper_has_its_state_as_reason(facts: dict[str, Any]):
    assert printer(facts, "cups:bar")["reason"].endswith("; the printer reports: out of paper")
    assert "the printer reports" not in printer(facts, "cups:kitchen")["reason"]


def test_a_queue_that_the_device_does_not_have_is_unreachable(facts: dict[str, Any]):
    queue = printer(facts, "cups:gone")
    assert queue["status"] == "unreachable"
    assert queue["reason"].startswith("10.66.0.12:631 answers, but it has no queue printers/GONE")


def test_the_status_of_each_queue_of_a_print_server_depends_on_its_path(facts: dict[str, Any]):
    shared, paused = printer(facts, "cups:server-shared"), printer(facts, "cups:server-paused")
    missing = printer(facts, "cups:server-missing")
    assert [queue["status"] for queue in (shared, paused)] == ["reachable"] * 2
    assert "stopped" not in shared["reason"]
    assert "paused" in paused["reason"]
    assert missing["status"] == "unreachable"
    assert "printers/missing" in missing["reason"]


def test_a_queue_with_the_backend_beh_is_not_checked_and_a_usb_queue_is_listed_as_usb(
    facts: dict[str, Any],
):
    wrapped, usb = printer(facts, "cups:wrapped"), printer(facts, "cups:over-usb")
    assert (wrapped["status"], usb["transport"]) == ("unknown", "usb")
    assert wrapped["reason"] == "Not checked: CUPS prints to it with the backend beh"


def test_printer_with_a_new_address_is_reported_as_moved(
    facts: dict[str, Any], truth: dict[str, Any]
):
    queue = printer(facts, "cups:cellar")
    assert truth["Cellar"]["address"] == "10.66.0.43"
    assert queue["status"] == "unreachable"
    assert queue["matched_endpoint"] == "10.66.0.43:631"
    assert queue["reason"].startswith(
        "Moved to 10.66.0.43:631 (same MAC); nothing answers at 10.66.0.13 any more"
    )


def test_faults_are_reported_with_their_cause(facts: dict[str, Any]):
    findings = {f.code: f for f in headline_of(payload_of(facts, JOB)).findings}
    assert "no-gateway" in findings
    (moved,) = findings["printer-moved"].sentences
    assert moved == "The printer cellar has moved from 10.66.0.13:631 to 10.66.0.43:631."
    unreachable = findings["printer-unreachable"]
    sentences = " ".join(unreachable.sentences)
    assert "The printer office at " in sentences
    assert unreachable.count == sum(
        printer_facts["status"] == "unreachable" for printer_facts in facts["printers"]
    ) - len(findings["printer-moved"].sentences)


def test_a_printer_with_stopped_programs_refuses_connections(facts: dict[str, Any]):
    queue = printer(facts, "cups:office")
    assert (queue["status"], queue["matched_endpoint"]) == ("unreachable", None)
    assert queue["reason"].startswith("10.66.0.14 refuses connections on port 631")


def test_an_unplugged_printer_does_not_answer(facts: dict[str, Any]):
    queue = printer(facts, "cups:terrace")
    assert (queue["status"], queue["matched_endpoint"]) == ("unreachable", None)
    assert queue["reason"].startswith("No answer from 10.66.0.15")
    assert queue["reason"].endswith("is it switched on and connected?")


def test_configured_printers_are_matched_in_addition_to_queues(facts: dict[str, Any]):
    till = printer(facts, "till")
    assert till["matched_endpoint"] == "10.66.0.20:9100"
    assert till["reason"] == "Reachable on port 9100, matched by address and port"
    by_mac = printer(facts, "by-mac")
    assert by_mac["matched_endpoint"] == "10.66.0.11:631"
    assert by_mac["reason"].startswith("Reachable on port 631, matched by MAC")
    nowhere = printer(facts, "nowhere")
    assert nowhere["reason"] == "No answer from 10.66.0.99: is it switched on and connected?"


def test_endpoints_have_label_model_and_printers(facts: dict[str, Any], truth: dict[str, Any]):
    (kitchen,) = (
        endpoint
        for endpoint in facts["endpoints"]
        if (endpoint["address"], endpoint["port"]) == (truth["Kitchen"]["address"], 631)
    )
    assert (kitchen["label"], kitchen["model"]) == ("Kitchen", "Brother HL-L2350DW")
    assert kitchen["host"] == "Kitchen-host.local"
    assert kitchen["mac_address"] == truth["Kitchen"]["mac_address"]
    assert kitchen["matched_printer_ids"] == ["by-mac", "cups:kitchen"]
    assert kitchen["discovered_by"] == ["mdns", "scan"]


def test_hosts_of_the_peer_lan_have_their_names(facts: dict[str, Any]):
    hosts = {host["address"]: host for host in facts["hosts"]}
    assert {"10.66.0.1", "10.66.0.11", "10.66.0.12", "10.66.0.20", "10.66.0.43"} <= set(hosts)
    assert hosts["10.66.0.43"]["hostname"] == "Cellar-host.local"


def test_no_payload_reaches_the_ports_that_must_not_receive_any(
    facts: dict[str, Any], venue: Venue
):
    counts = {int(port): count for port, count in json.loads(venue.counts_file.read_text()).items()}
    assert set(counts) == set(HARM_PORTS)
    tried = set(JOB["ports"]) & set(HARM_PORTS)  # type: ignore[call-overload]
    assert all(counts[port][0] > 0 for port in tried)  # the scan connected to the ports
    assert sum(size for _, size in counts.values()) == 0  # but sent no byte


def test_two_reports_at_once_do_not_disturb_each_other(venue: Venue, facts: dict[str, Any]):
    running = [venue.start_report(), venue.start_report()]
    for report in running:
        second_facts = facts_of(report)
        assert second_facts["failures"] == []
        for printer_facts in facts["printers"]:
            other = printer(second_facts, printer_facts["id"])
            assert (other["status"], other["matched_endpoint"]) == (
                printer_facts["status"],
                printer_facts["matched_endpoint"],
            )


def test_concurrent_browses_return_the_same_printers(venue: Venue):
    first, second = browse_results(venue.browse(), venue.browse())
    for result in (first, second):
        assert result["state"]["state"] == "succeeded"
        printing = [s for s in result["services"] if s["type"] == "_ipp._tcp"]
        assert {s["instance"] for s in printing} == {"Kitchen", "Bar", "Cellar"}
        assert all(s["addresses"] and s["port"] == 631 for s in printing)
    assert _names(first) == _names(second)


def test_another_program_on_the_mdns_port_is_tolerated(venue: Venue):
    script = (
        "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
        " s.bind(('', 5353)); print('bound', flush=True); sys.stdin.read()"
    )
    blocker = venue.start("-c", script, stdin=subprocess.PIPE)
    try:
        assert blocker.stdout is not None
        assert blocker.stdout.readline() == b"bound\n"
        (result,) = browse_results(venue.browse())
    finally:
        blocker.communicate(timeout=60)
    assert result["state"]["state"] == "succeeded"
    assert "another program uses UDP port 5353 exclusively" in result["limitations"][0]
    assert {"Kitchen", "Bar"} <= {s["instance"] for s in result["services"]}


def test_thousands_of_services_with_hostile_names_are_listed_up_to_the_limit(venue: Venue):
    services = sizes.amount(medium=900, large=3000)
    limit = services // 3
    host = venue.lan.add_host("many", 50)
    script = str(ROOT / "tests/lab/peers/announcer.py")
    announcer = subprocess.Popen(
        venue.lan.command(host, sys.executable, script, host.address, str(services)),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )
    try:
        assert announcer.stdout is not None
        assert announcer.stdout.readline() == b"ready\n"
        (whole,) = browse_results(venue.browse(2 * services))
        (cut,) = browse_results(venue.browse(limit))
    finally:
        announcer.kill()
        announcer.communicate()
    hostile_services = [
        service for service in whole["services"] if host.address in service["addresses"]
    ]
    # One instance in 70 (fewer than one in 60) has a name that is not UTF-8 and is sent without its
    # address. It cannot be queried by name, so its address stays unknown.
    assert len(hostile_services) >= services * 59 // 60
    assert whole["truncated"] is False
    assert len(cut["services"]) == limit
    assert cut["truncated"] is True
    assert any(
        "services over the limit were left out" in limitation for limitation in cut["limitations"]
    )
    for service in hostile_services:
        texts = (service["instance"], *(value for _, value in service["txt"]))
        for text in texts:
            assert text.replace("\u200d", "").isprintable(), repr(text)
    assert any("<script>" in service["instance"] for service in hostile_services)
    assert whole["rss_mib"] < 90


def test_faults_disappear_after_the_fix(venue: Venue):
    lan, server = venue.lan, (venue.server, venue.server_spooler)
    lan.add_queue(*server, "missing", "socket://10.66.0.20:9100")
    lan.administer(*server, "cupsenable", "paused")
    cellar = venue.printers["Cellar"]
    moved = f"ipp://{cellar.address}/ipp/print?uuid={cellar.uuid}"
    lan.add_queue(venue.machine, venue.spooler, "cellar", moved)
    kitchen = f"ipp://{venue.printers['Kitchen'].address}/ipp/print"
    lan.add_queue(venue.machine, venue.spooler, "gone", kitchen)
    lan.plug_in(venue.printers["Terrace"])
    facts = facts_of(venue.start_report())
    fixed = ("server-shared", "server-paused", "server-missing", "cellar", "gone", "terrace")
    for name in fixed:
        queue = printer(facts, f"cups:{name}")
        assert queue["status"] == "reachable", queue
        assert queue["reason"].startswith("Reachable on port 631, matched by "), queue
        assert ";" not in queue["reason"], queue


def _names(result: dict[str, Any]) -> set[tuple[str, str]]:
    return {(service["instance"], service["type"]) for service in result["services"]}
