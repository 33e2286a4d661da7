"""Tests each rule with two reports of a nearly healthy network: one that must cause its finding,
and a similar one that must not.
"""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.presentation.findings.findings import NETWORK_RULES, findings_of
from agent.presentation.findings.local_network import NO_ROUTE
from agent.presentation.plain_text import plain
from agent.wire.payloads.network import (
    MapHost,
    NetworkPayload,
    SourceFailed,
    SourceSucceeded,
    Unavailable,
)
from agent.wire.payloads.watched_devices import WatchedLine, WatchedState
from collectors.network import report_facts
from collectors.network.matching.reasons import STATE_WORDS
from collectors.network.scan import scan
from collectors.network.scan.sweep import SweepResult
from tests.fixtures.payloads import host, hostile_network, large_venue, small_venue
from tests.unit.agent.presentation.findings.networks import (
    USB,
    healthy_network,
    link,
    printer,
    with_map,
)

GATEWAY = host(1, None, 53, latency_ms=99.9, sources=("gateway", "tcp"))
SELF = host(20, "till-1", sources=("local",))
SILENT_GATEWAY = GATEWAY.model_copy(
    update={"reachability": "unknown", "mac_address": None, "services": (), "latency_ms": None}
)
TILL = host(41, "till-2", 22)
SOURCES = small_venue().network_map.sources  # type: ignore[union-attr]
NO_SCAN = SOURCES.model_copy(update={"scan": SourceFailed(reason="no permission")})


def with_mac(lan_host: MapHost, mac: str) -> MapHost:
    return lan_host.model_copy(update={"mac_address": mac})


# In this sweep, one device answered ARP for 212 of 254 addresses.
SWEEP = SweepResult((), (), {"02:bb:00:00:00:01": 212}, untried_count=0, has_ended_early=False)
(PROXY_ARP,) = scan.scan_result_of(SWEEP, target_count=254).limitations


class Case(NamedTuple):
    code: str
    problem: NetworkPayload
    harmless: NetworkPayload
    sentence: str


def with_device(state: WatchedState, **details: str) -> NetworkPayload:
    line = str(WatchedLine("Bar", "payment terminal", state, **details))  # type: ignore[arg-type]
    return healthy_network().model_copy(update={"limitations": (line,)})


OLD_ADDRESS, NEW_ADDRESS = "192.168.1.40", "192.168.1.61"
MAC = "02:00:00:00:00:07"
PRESENT = with_device("present", address=OLD_ADDRESS)


def with_printer(status: str, reason: str | None = None, **changes: object) -> NetworkPayload:
    return healthy_network((printer(status, reason, **changes),))  # type: ignore[arg-type]


CASES = (
    Case(
        "device-moved",
        with_device("moved", address=NEW_ADDRESS, moved_from=OLD_ADDRESS),
        PRESENT,
        "The payment terminal Bar has moved from 192.168.1.40 to 192.168.1.61.",
    ),
    Case(
        "device-replaced",
        with_device("replaced", address=OLD_ADDRESS, other_mac=MAC),
        with_device("moved", address=NEW_ADDRESS, moved_from=OLD_ADDRESS, other_mac=MAC),
        "The payment terminal Bar does not answer: another device uses its address 192.168.1.40"
        " (MAC 02:00:00:00:00:07).",
    ),
    Case(
        "device-absent",
        with_device("absent", address=OLD_ADDRESS),
        with_device("unknown", address=OLD_ADDRESS, reason="the time was up"),
        "The payment terminal Bar does not answer at 192.168.1.40.",
    ),
    Case(
        "printer-moved",
        with_printer("unreachable", matched_endpoint="192.168.1.61:9100"),
        with_printer("reachable", matched_endpoint="192.168.1.61:9100"),
        "The printer bar has moved from 192.168.1.52:9100 to 192.168.1.61:9100.",
    ),
    Case(
        "printer-unreachable",
        with_printer("unreachable", name="Bar printer", matched_endpoint=None),
        with_printer("unknown", matched_endpoint=None),
        "Bar printer at 192.168.1.52:9100 is not reachable.",
    ),
    Case(
        "printer-not-judged",
        with_printer("unknown", matched_endpoint=None),
        healthy_network((USB,)),
        "The printer bar at 192.168.1.52:9100 has an unknown state.",
    ),
    Case(
        "printer-needs-attention",
        with_printer("reachable", "The printer reports: out of paper, low on toner and cover open"),
        with_printer("reachable", "The printer reports: low on ink or toner and low on paper"),
        "The printer bar needs attention: out of paper, cover open.",
    ),
    Case(
        "printer-needs-attention",
        with_printer("reachable", "Reachable on port 631; its queue is stopped on this machine"),
        with_printer("reachable", "Reachable on port 631; the printer reports: holds new jobs"),
        "The printer bar needs attention: stopped.",
    ),
    Case(
        "printer-needs-attention",
        with_printer("reachable", "Reachable on port 631; the printer reports that it is stopped"),
        with_printer("reachable", "Reachable on port 631"),
        "The printer bar needs attention: stopped.",
    ),
    Case(
        "printer-needs-attention",
        with_printer("reachable", "Reachable on port 9100; the spooler reports: filter failed"),
        with_printer("reachable", "Reachable on port 9100; the spooler reports: cups ipp job"),
        "The printer bar needs attention: filter failed.",
    ),
    Case(
        "no-network",
        with_map(interfaces=(link("eth0", "fe80::1", gateways=()),), hosts=(SELF, TILL)),
        with_map(interfaces=(link("eth0", "192.168.1.20"),)),
        "The machine is not connected to a network.",
    ),
    Case(
        "no-dhcp-answer",
        with_map(interfaces=(link("eth0", "192.168.1.20"), link("wlan0", "169.254.3.9"))),
        with_map(interfaces=(link("eth0", "169.254.3.9", "192.168.1.20"),)),
        "The interface wlan0 got no address by DHCP and uses 169.254.3.9 instead.",
    ),
    Case(
        "own-address-only",
        with_map(interfaces=(link("eth0", "192.168.1.20"), link("usb0", "169.254.95.118"))),
        with_map(interfaces=(link("eth0", "192.168.1.20"), link("usb0", "fe80::1"))),
        "The interface usb0 has only a self-assigned address: 169.254.95.118.",
    ),
    Case(
        "gateway-silent",
        with_map(hosts=(SELF, SILENT_GATEWAY, TILL)),
        with_map(hosts=(SELF, with_mac(SILENT_GATEWAY, "00:26:ab:00:00:01"), TILL)),
        "The gateway 192.168.1.1 does not answer: no other network can be reached.",
    ),
    Case(
        "address-conflict",
        with_map(interfaces=(link("eth0", "192.168.1.20"), link("wlan0", "192.168.1.20"))),
        with_map(interfaces=(link("eth0", "192.168.1.20", "fe80::1"), link("wlan0", "fe80::1"))),
        "The address 192.168.1.20 is used twice: by 2 interfaces of this machine.",
    ),
    Case(
        "address-conflict",
        with_map(hosts=(SELF, GATEWAY, TILL, with_mac(TILL, "00:26:AB:00:00:99"))),
        with_map(hosts=(SELF, GATEWAY, TILL, with_mac(TILL, "00:26:AB:00:00:29"))),
        "The address 192.168.1.41 is used twice:"
        " by the MACs 00:26:ab:00:00:29 and 00:26:ab:00:00:99.",
    ),
    Case(
        "nothing-but-gateway",
        with_map(hosts=(SELF, GATEWAY)),
        with_map(hosts=(SELF, GATEWAY), sources=NO_SCAN),
        "No host except the gateway answers on this network.",
    ),
    Case(
        "nothing-but-gateway",
        with_map(hosts=(SELF, SILENT_GATEWAY)),
        with_map(hosts=(SELF, SILENT_GATEWAY, TILL)),
        "No host answers on this network.",
    ),
    Case(
        "gateway-silent",
        with_map(hosts=(SELF, SILENT_GATEWAY, TILL)),
        with_map(hosts=(SELF, SILENT_GATEWAY.model_copy(update={"interface_name": "tun0"}), TILL)),
        "The gateway 192.168.1.1 does not answer: no other network can be reached.",
    ),
    Case(
        "no-gateway",
        with_map(interfaces=(link("eth0", "192.168.1.20", gateways=()),)),
        with_map(interfaces=(link("eth0", "192.168.1.20", gateways=()),)).model_copy(
            update={"unavailable": Unavailable(gateway="the routing table cannot be read")}
        ),
        "No gateway is configured: no other network can be reached.",
    ),
    Case(
        "gateway-slow",
        with_map(hosts=(SELF, GATEWAY.model_copy(update={"latency_ms": 100}), TILL)),
        with_map(hosts=(SELF, GATEWAY, TILL)),
        "The gateway 192.168.1.1 answers slowly: after 100 ms.",
    ),
    Case(
        "source-failed",
        with_map(sources=NO_SCAN),
        with_map(sources=NO_SCAN.model_copy(update={"scan": SourceSucceeded()})),
        "Scanning the network failed: no permission.",
    ),
    Case(
        "proxy-arp",
        healthy_network().model_copy(update={"limitations": (PROXY_ARP,)}),
        healthy_network().model_copy(update={"limitations": (f"mDNS: {PROXY_ARP}",)}),
        "The device 02:bb:00:00:00:01 answers for 212 addresses.",
    ),
    Case(
        "report-cut",
        with_map(truncated=True),
        with_map(truncated=False),
        "The network has more hosts or services than the report can contain.",
    ),
    Case(
        "report-unfinished",
        with_map(state="cancelled"),
        with_map(state="completed"),
        "The collection ended early: the report may be incomplete.",
    ),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_each_rule_creates_its_finding(case: Case) -> None:
    (finding,) = findings_of(case.problem)
    assert (finding.code, finding.sentences) == (case.code, (case.sentence,))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_no_rule_creates_a_finding_for_the_similar_harmless_report(case: Case) -> None:
    assert case.code not in {finding.code for finding in findings_of(case.harmless)}


def test_the_text_for_a_missing_route_equals_the_text_of_the_collector() -> None:
    assert NO_ROUTE == report_facts.NO_DEFAULT_ROUTE


def test_every_rule_has_a_case() -> None:
    assert {rule.code for rule in NETWORK_RULES} == {case.code for case in CASES}


def test_the_fix_names_the_kind_of_the_devices() -> None:
    moved_terminal = with_device("moved", address=NEW_ADDRESS, moved_from=OLD_ADDRESS)
    (moved,) = findings_of(moved_terminal)
    assert moved.advice == "Give the payment terminal a fixed address (DHCP reservation)."
    scale = WatchedLine("Deli", "scale", "moved", NEW_ADDRESS, OLD_ADDRESS)
    lines = (*moved_terminal.limitations, str(scale))
    (both,) = findings_of(healthy_network().model_copy(update={"limitations": lines}))
    assert both.advice == "Give the device a fixed address (DHCP reservation)."


def test_findings_about_printers_come_first() -> None:
    codes = [finding.code for finding in findings_of(large_venue(60))]
    assert codes[0] == "printer-unreachable"
    assert {"report-unfinished", "source-failed"} <= set(codes)
    (moved, unreachable) = findings_of(small_venue())
    assert (moved.code, unreachable.code) == ("printer-moved", "printer-unreachable")


def test_a_finding_about_twenty_printers_has_five_sentences_and_a_count() -> None:
    finding = findings_of(large_venue(60))[0]
    assert (len(finding.sentences), finding.more) == (5, 15)


def test_findings_of_hostile_network_reports_are_plain_text() -> None:
    findings = findings_of(hostile_network())
    assert findings
    for finding in findings:
        for sentence in finding.sentences:
            assert sentence == plain(sentence)


@given(st.text(max_size=60), st.text(max_size=40))
def test_any_reported_printer_state_causes_at_most_one_kind_of_finding(
    before: str, state: str
) -> None:
    findings = findings_of(with_printer("reachable", f"{before}; the printer reports: {state}"))
    assert {finding.code for finding in findings} <= {"printer-needs-attention"}
    assert all(plain(s) == s for finding in findings for s in finding.sentences)


@pytest.mark.parametrize("words", STATE_WORDS.values())
def test_each_reported_printer_state_causes_at_most_one_finding(words: str) -> None:
    """The finding contains the collector's words unchanged. Harmless words cause no finding."""
    findings = findings_of(with_printer("reachable", f"Reachable; the printer reports: {words}"))
    summary = [sentence for finding in findings for sentence in finding.sentences]
    is_harmless = words.startswith(("low on", "asked to", "holds")) or "nearly" in words
    assert summary == ([] if is_harmless else [f"The printer bar needs attention: {words}."])
