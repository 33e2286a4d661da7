"""Tests the network collector on simulated LANs: complete reports, harmless traffic."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from agent.config.model import LocalConfig
from agent.presentation.findings.findings import findings_of
from agent.presentation.hosts.rows import host_rows
from agent.reporting import describe_environment
from agent.rules.reports.context import ReportContext, identity_of
from agent.rules.reports.network import network_report
from agent.wire.codec import decode, encode, validate
from agent.wire.payloads.network import NetworkPayload
from collectors.contract import NetworkFacts, NetworkJob
from tests import sizes
from tests.lab.namespaces import entering_without_privileges
from tests.lab.tap.collect import ChildRun, LabResult, collect_in_lan
from tests.lab.tap.hostile import HOSTILE_NAMES, hostile_lan
from tests.lab.tap.ipp import lab_printer
from tests.lab.tap.plan import (
    VENUE_PORTS,
    LabPlan,
    LanHost,
    LanService,
    plan_lan,
    with_mute_pages,
)

pytestmark = [
    pytest.mark.lab,
    pytest.mark.needs("tap"),
]

JOB: dict[str, Any] = {
    "ports": VENUE_PORTS,
    "max_hosts": 1024,
    "max_services": 4096,
    "max_duration_s": 300,
}


def check_hosts_and_endpoints(plan: LabPlan, run: ChildRun) -> None:
    """Check that the report has every live host with its MAC and every open port, and no others."""
    hosts = {h["address"]: h for h in run.facts["hosts"]}
    agent_host = hosts.pop(plan.agent_address)
    assert "local" in agent_host["sources"]
    assert {address: host["mac_address"] for address, host in hosts.items()} == plan.macs()
    assert all(host["reachability"] == "reachable" for host in hosts.values())
    reachable_endpoints = {
        (e["address"], e["port"]) for e in run.facts["endpoints"] if e["status"] == "reachable"
    }
    assert reachable_endpoints == plan.open_endpoints()
    assert "gateway" in hosts[plan.gateway]["sources"]


def check_harmless(result: LabResult) -> None:
    assert result.counters.harm() == {}
    assert result.counters.most_print_connections <= 1
    # Connections to one print port are at least a second apart. TCP timestamps measure the pause in
    # whole milliseconds, so the measured pause can be slightly too short.
    assert result.counters.shortest_print_pause_s >= 0.998
    assert result.counters.wrong_mac_frames == 0


def payload_of(facts: dict[str, Any], job: dict[str, Any]) -> NetworkPayload:
    network_facts = validate(facts, NetworkFacts)
    context = ReportContext(
        "r1",
        "2026-01-01T00:00:00.000Z",
        identity_of(None, None),
        describe_environment(LocalConfig()),
    )
    fields = {name: tuple(v) if isinstance(v, list) else v for name, v in job.items()}
    return network_report(network_facts, NetworkJob(**fields), context)


def test_venue_with_wifi_firewalls_and_packet_loss_is_discovered_completely(tmp_path: Path) -> None:
    plan = with_mute_pages(plan_lan("10.77.0.0/24", 40, seed=3), 4)
    result = collect_in_lan(plan, JOB, tmp_path)
    (run,) = result.runs
    check_hosts_and_endpoints(plan, run)
    check_harmless(result)
    assert run.facts["failures"] == []
    assert run.facts["limitations"] == []
    assert run.facts["scope"] == "local-network"
    payload = payload_of(run.facts, JOB)
    assert payload.completeness == "complete"
    assert findings_of(payload) == ()
    assert run.events[-1] == "result"
    assert run.events.count("checkpoint") <= 8
    # Endpoints of printers come first in the list.
    assert run.facts["endpoints"][0]["port"] in {515, 631, 9100, 9101}


def test_two_runs_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    plan = plan_lan("10.77.0.0/24", 30, seed=4)
    # There is no packet loss, so that only the other run can cause a difference.
    plan = replace(plan, hosts=tuple(replace(host, loss=0.0) for host in plan.hosts))
    result = collect_in_lan(plan, JOB, tmp_path, runs=2)
    for run in result.runs:
        check_hosts_and_endpoints(plan, run)
        assert run.facts["failures"] == []
    assert result.counters.harm() == {}


def test_cancelled_collection_returns_valid_partial_facts(tmp_path: Path) -> None:
    plan = plan_lan("10.77.0.0/24", 30, seed=5)
    (run,) = collect_in_lan(plan, JOB, tmp_path, cancel_at="mdns").runs
    assert run.events[-1] == "result"
    assert run.facts["cancelled"]
    assert run.facts["interfaces"]
    assert run.facts["scan_source"]["state"] == "failed"
    payload = payload_of(run.facts, JOB)
    assert payload.completeness == "partial"
    assert payload.network_map is not None
    assert payload.network_map.state == "cancelled"
    codes = [finding.code for finding in findings_of(payload)]
    assert codes == ["source-failed", "report-unfinished"]


def test_network_with_only_a_gateway_has_the_finding_nothing_but_gateway(tmp_path: Path) -> None:
    (run,) = collect_in_lan(plan_lan("10.77.0.0/24", 1), JOB, tmp_path).runs
    (finding,) = findings_of(payload_of(run.facts, JOB))
    assert finding.code == "nothing-but-gateway"


def test_an_address_behind_proxy_arp_is_listed_only_if_its_host_answers(
    tmp_path: Path,
) -> None:
    plan = plan_lan("10.77.0.0/24", 8, seed=6, wifi_share=0.0)
    proxy_mac = "02:bb:00:00:00:01"
    host_behind_proxy = LanHost("10.77.0.40", proxy_mac, (80,))
    plan = replace(
        plan,
        hosts=(
            *(h for h in plan.hosts if h.address != host_behind_proxy.address),
            host_behind_proxy,
        ),
        proxy_arp_mac=proxy_mac,
        proxied_network="10.77.0.0/24",
    )
    result = collect_in_lan(plan, JOB, tmp_path)
    (run,) = result.runs
    hosts = {h["address"]: h["mac_address"] for h in run.facts["hosts"]}
    del hosts[plan.agent_address]
    assert hosts == {**plan.macs(), host_behind_proxy.address: None}
    assert any("proxy ARP" in text for text in run.facts["limitations"])
    assert [finding.code for finding in findings_of(payload_of(run.facts, JOB))] == ["proxy-arp"]
    check_harmless(result)


def test_a_device_only_report_sends_nothing(tmp_path: Path) -> None:
    plan = plan_lan("10.77.0.0/24", 10, seed=8)
    result = collect_in_lan(plan, {**JOB, "device_only": True}, tmp_path)
    (run,) = result.runs
    assert run.facts["scope"] == "device"
    assert run.facts["mdns_source"]["state"] == "unsupported"
    assert result.counters.arp_requests == 0
    assert result.counters.syns == 0
    assert result.counters.udp_datagrams == 0


def test_collector_contacts_no_excluded_address_and_only_the_ports_of_the_job(
    tmp_path: Path,
) -> None:
    plan = plan_lan("10.77.0.0/25", 12, seed=9, wifi_share=0.0)
    excluded = tuple(host.address for host in plan.hosts[1:])
    job = {**JOB, "exclude": excluded, "ports": (80, 443), "enrich": False}
    result = collect_in_lan(plan, job, tmp_path)
    (run,) = result.runs
    addresses = {h["address"] for h in run.facts["hosts"]}
    assert addresses == {plan.agent_address, plan.gateway}
    assert set(result.counters.syns_by_port) == {80, 443}
    assert result.counters.payload_bytes.total() == 0


def test_printer_contacted_after_the_scan_is_queried_over_the_same_connection(
    tmp_path: Path,
) -> None:
    bar = LanHost(
        "10.77.0.50", "02:1a:00:00:00:50", (80, 631, 9100), ipp=(lab_printer(str(UUID(int=50))),)
    )
    # The LAN has only a gateway and `bar`. `plan_lan` gives the agent an address in the /28, which
    # does not contain the address of `bar`. Then the subnet is enlarged to include `bar`.
    plan = replace(plan_lan("10.77.0.0/28", 1), subnet="10.77.0.0/25")
    plan = replace(plan, hosts=(*plan.hosts, bar))
    printer = {"id": "bar", "name": "Bar", "transport": "network", "address": "10.77.0.50:631"}
    # The scan does not try port 631, so the printer is contacted after the scan.
    job = {**JOB, "ports": (80,), "printers": (printer,)}
    result = collect_in_lan(plan, job, tmp_path)
    (run,) = result.runs
    assert result.counters.syns_by_port[631] == 1
    check_harmless(result)
    (printer_facts,) = run.facts["printers"]
    assert (printer_facts["status"], printer_facts["matched_endpoint"]) == (
        "reachable",
        "10.77.0.50:631",
    )
    models = {(e["address"], e["port"]): e["model"] for e in run.facts["endpoints"]}
    assert models["10.77.0.50", 631] == "Lab Printer 1"


def test_hostile_service_names_are_cleaned_and_the_report_is_cut_to_its_limits(
    tmp_path: Path,
) -> None:
    services = sizes.amount(medium=900, large=3000)
    max_services = services * 5 // 6
    printers = tuple(
        {"id": f"p{n}", "name": HOSTILE_NAMES[n % len(HOSTILE_NAMES)], "address": f"10.80.3.{n}"}
        for n in range(1, 80)
    )
    # A job cannot contain lone surrogates.
    printers = tuple({**p, "name": p["name"].encode("utf-8", "replace").decode()} for p in printers)
    plan = hostile_lan(services)
    job = {**JOB, "printers": printers, "max_services": max_services}
    result = collect_in_lan(plan, job, tmp_path)
    (run,) = result.runs
    check_harmless(result)
    facts = run.facts
    assert facts["mdns_source"]["state"] == "succeeded"
    announced_endpoints = [e for e in facts["endpoints"] if "mdns" in e["discovered_by"]]
    assert len(announced_endpoints) > services * 2 // 3
    assert facts["truncated"]
    assert len(facts["printers"]) == 79
    for endpoint in facts["endpoints"]:
        for text in (endpoint["label"], endpoint["host"], endpoint["model"] or ""):
            assert text.replace("\u200d", "").isprintable(), ascii(text)
    payload = payload_of(facts, {**job, "printers": ()})
    assert len(payload.endpoints) == 256
    assert payload.endpoints_omitted == len(facts["endpoints"]) - 256
    assert payload.printers is not None
    assert len(payload.printers) == 64
    assert payload.network_map is not None
    assert payload.network_map.truncated
    decode(encode(payload), NetworkPayload)


def venue_with_known_makers() -> LabPlan:
    """Return a realistic venue: most hosts announce nothing, and one has a random MAC."""

    def host(number: int, mac: str, ports: tuple[int, ...], *announcement: str) -> LanHost:
        address = f"10.77.0.{number}"
        if not announcement:
            return LanHost(address, mac, ports)
        name, kind, port, txt = announcement
        services = (LanService(name, f"{kind}._tcp", int(port), (txt,)),)
        return LanHost(address, mac, ports, hostname=name.lower(), services=services)

    hosts = (
        host(1, "3c:a6:2f:10:00:01", (53, 80, 443)),
        host(50, "64:eb:8c:10:00:50", (80, 9100), "Kitchen", "_printer", "515", "ty=TM-T88"),
        host(51, "00:11:62:10:00:51", (9100,)),
        host(60, "30:05:5c:10:00:60", (80, 9100), "Office", "_printer", "515", "ty=MFC-L2750DW"),
        host(70, "00:0b:4f:10:00:70", (443,)),
        host(71, "1c:59:74:60:00:71", ()),
        host(80, "f4:f5:d8:10:00:80", (8008,), "Menu", "_googlecast", "8009", "md=Chromecast"),
        host(90, "ac:cc:8e:10:00:90", (80, 554)),
        host(91, "78:8a:20:10:00:91", (22, 443)),
        host(99, "d6:10:2a:31:5c:8e", ()),
    )  # fmt: skip
    return LabPlan("10.77.0.0/25", "10.77.0.20", "10.77.0.1", hosts)


def test_nine_of_ten_hosts_of_a_venue_have_a_name_a_model_or_a_maker(tmp_path: Path) -> None:
    (run,) = collect_in_lan(venue_with_known_makers(), JOB, tmp_path).runs
    rows = host_rows(payload_of(run.facts, JOB))
    unrecognised = [row.address for row in rows if not row.is_recognisable]
    assert unrecognised == ["10.77.0.99"]
    assert len(rows) == 10 + 1  # the hosts and this machine
    by_address = {row.address: row.identity_facts for row in rows}
    assert by_address["10.77.0.50"] == ("printer", "TM-T88", "Seiko Epson")
    assert by_address["10.77.0.71"] == ("Square",)
    assert by_address["10.77.0.99"] == ("randomised address",)


@pytest.mark.needs("user-namespace")
def test_report_is_complete_without_privileges(tmp_path: Path) -> None:
    plan = plan_lan("10.77.0.0/26", 10, seed=10, wifi_share=0.0)
    result = collect_in_lan(plan, JOB, tmp_path, prefix=entering_without_privileges())
    check_hosts_and_endpoints(plan, result.runs[0])
    check_harmless(result)
