"""Tests that any collected facts become a payload that is valid according to the contract."""

from dataclasses import replace

import pytest
from hypothesis import given

from agent.config.model import LocalConfig
from agent.presentation.watched_devices import located_devices
from agent.reporting import describe_environment
from agent.rules.reports.context import ReportContext, identity_of
from agent.rules.reports.network import completeness, network_report, outcome_of
from agent.wire.codec import decode, encode, to_plain
from agent.wire.payloads.network import NetworkPayload
from agent.wire.payloads.watched_devices import parse_watched
from agent.wire.text import utf16_length
from collectors import contract as facts
from tests.unit.agent.hostile import network_facts

JOB = facts.NetworkJob(ports=(80, 631), max_hosts=10, max_services=20, max_duration_s=1.5)
CONTEXT = ReportContext(
    report_id="0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10",
    finished_at="2026-11-20T19:04:15+00:00",
    identity=identity_of(None, "install-1"),
    environment=describe_environment(LocalConfig()),
)
SUCCEEDED = facts.SourceState("succeeded")
CLEAN = facts.NetworkFacts(
    scope="local-network",
    os_platform="linux",
    os_version="12",
    started_at="2026-11-20T19:04:12+00:00",
    printers=(),
    interfaces_source=SUCCEEDED,
    mdns_source=SUCCEEDED,
    scan_source=SUCCEEDED,
)


def endpoint(number: int = 1, port: int = 80) -> facts.Endpoint:
    return facts.Endpoint(f"10.0.0.{number}", "till", port, "http", ("scan",), "reachable")


def printer(number: int) -> facts.Printer:
    return facts.Printer(f"p{number}", "Kitchen", "network", "reachable")


@given(network_facts)
def test_any_facts_become_a_payload(collected: facts.NetworkFacts) -> None:
    payload = network_report(collected, JOB, CONTEXT)

    decoded = decode(encode(payload), NetworkPayload)
    assert decoded == payload
    assert len(payload.endpoints) + payload.endpoints_omitted == len(collected.endpoints)
    assert payload.completeness == completeness(collected)
    strings = encode(payload).decode()
    assert "\\u001b" not in strings
    assert "\u202e" not in strings


def test_watched_devices_are_lines_of_the_limitations_in_a_complete_report() -> None:
    bar = facts.WatchedDevice("Bar", "payment-terminal", "10.0.0.4")
    state = facts.DeviceState(bar, "moved", "10.0.0.7", "10.0.0.4")
    payload = network_report(replace(CLEAN, devices=(state,)), JOB, CONTEXT)

    line = 'Watched payment terminal "Bar": moved from 10.0.0.4 to 10.0.0.7'
    assert payload.limitations == (line,)
    assert payload.network_map is not None
    assert payload.network_map.limitations == (line,)
    assert payload.completeness == "complete"
    assert located_devices(payload) == {"10.0.0.7": parse_watched(line)}


def test_payload_contains_the_facts_unchanged() -> None:
    result = replace(
        CLEAN,
        endpoints=(replace(endpoint(), discovered_by=("mdns", "scan"), model="M"),),
        printers=(printer(1),),
        hosts=(
            facts.Host(
                "10.0.0.1",
                (facts.Service(80, "tcp", "http", None, True),),
                "reachable",
                ("tcp",),
                latency_ms=0.25,
            ),
        ),
        interfaces=(
            facts.Interface(
                "eth0", (facts.InterfaceAddress("10.0.0.9", "ipv4", 24),), ("10.0.0.1",)
            ),
        ),
    )

    payload = network_report(result, JOB, CONTEXT)

    assert payload.completeness == "complete"
    assert payload.identity.location_id == "unenrolled"
    assert payload.endpoints[0].discovered_by == ("mdns", "scan")
    assert payload.printers is not None
    assert payload.printers[0].id == "p1"
    assert payload.network_map is not None
    assert payload.network_map.state == "completed"
    assert payload.network_map.hosts[0].latency_ms == 0.25
    assert payload.network_map.hosts[0].services[0].type is None
    assert payload.network_map.interfaces[0].gateways == ("10.0.0.1",)
    assert payload.network_map.bounds.max_duration_ms == 1500
    assert payload.network_map.bounds.ports == (80, 631)
    assert payload.limitations == ()
    assert payload.endpoints_omitted == 0


@pytest.mark.parametrize(
    ("count", "kept", "omitted"), [(256, 256, 0), (257, 256, 1), (999, 256, 743)]
)
def test_endpoints_beyond_the_contract_are_counted(count: int, kept: int, omitted: int) -> None:
    payload = network_report(
        replace(CLEAN, endpoints=tuple(endpoint(n % 250) for n in range(count))), JOB, CONTEXT
    )

    assert len(payload.endpoints) == kept
    assert payload.endpoints_omitted == omitted
    assert payload.completeness == ("limited" if omitted else "complete")
    line = f"endpoints of the least interest, not listed: {omitted}"
    assert payload.limitations == ((line,) if omitted else ())


@pytest.mark.parametrize("port", [-1, 0, 65536, 2**60])
def test_endpoints_with_an_invalid_port_are_omitted_and_counted(port: int) -> None:
    payload = network_report(
        replace(CLEAN, endpoints=(endpoint(1, port), endpoint(2, 65535))), JOB, CONTEXT
    )

    assert [e.port for e in payload.endpoints] == [65535]
    assert payload.endpoints_omitted == 1


@pytest.mark.parametrize(("count", "kept", "is_reported"), [(64, 64, False), (65, 64, True)])
def test_printers_beyond_the_contract_are_reported(
    count: int, kept: int, is_reported: bool
) -> None:
    payload = network_report(
        replace(CLEAN, printers=tuple(printer(n) for n in range(count))), JOB, CONTEXT
    )

    assert payload.printers is not None
    assert len(payload.printers) == kept
    assert ("printers beyond the limit, not listed: 1" in payload.limitations) == is_reported
    assert payload.network_map is not None
    assert payload.network_map.limitations == payload.limitations


def test_printers_are_null_if_their_sources_were_not_read() -> None:
    assert network_report(replace(CLEAN, printers=None), JOB, CONTEXT).printers is None


def test_the_last_line_counts_omitted_failures_and_limitations() -> None:
    collected = replace(
        CLEAN,
        failures=tuple(facts.Failure("step", str(n)) for n in range(200)),
        limitations=tuple(f"line {n}" for n in range(200)),
    )

    payload = network_report(collected, JOB, CONTEXT)

    assert len(payload.failures) == len(payload.limitations) == 128
    assert payload.failures[-1].reason == "further failures, not listed: 73"
    assert payload.limitations[-1] == "73 more limitations are not listed"


FAILED = facts.SourceState("failed", "it broke")
UNSUPPORTED = facts.SourceState("unsupported", "not here")


@pytest.mark.parametrize(
    ("collected", "expected"),
    [
        (CLEAN, "complete"),
        (replace(CLEAN, mdns_source=FAILED), "partial"),
        (replace(CLEAN, scan_source=facts.SourceState()), "partial"),
        (replace(CLEAN, interfaces_source=FAILED), "partial"),
        (replace(CLEAN, failures=(facts.Failure("s", "r"),)), "partial"),
        (replace(CLEAN, cancelled=True), "partial"),
        (replace(CLEAN, mdns_source=UNSUPPORTED), "limited"),
        (replace(CLEAN, truncated=True), "limited"),
        (replace(CLEAN, limitations=("less",)), "limited"),
        (replace(CLEAN, unavailable=facts.Unavailable(gateway="denied")), "limited"),
        (replace(CLEAN, mdns_source=UNSUPPORTED, scan_source=FAILED), "partial"),
    ],
)
def test_facts_determine_the_completeness_of_a_network_report(
    collected: facts.NetworkFacts, expected: str
) -> None:
    assert completeness(collected) == expected
    payload = network_report(collected, JOB, CONTEXT)
    assert payload.completeness == expected
    assert outcome_of(payload.completeness) == ("partial" if expected == "partial" else "completed")
    assert payload.network_map is not None
    assert payload.network_map.state == ("cancelled" if collected.cancelled else "completed")


def test_source_state_is_in_discovery_and_in_the_network_map() -> None:
    collected = replace(CLEAN, mdns_source=UNSUPPORTED, scan_source=facts.SourceState("failed"))

    payload = network_report(collected, JOB, CONTEXT)

    assert payload.discovery is not None
    assert payload.network_map is not None
    assert to_plain(payload.discovery.mdns) == {"state": "failed", "reason": "not here"}
    assert to_plain(payload.network_map.sources.mdns) == {
        "state": "unsupported",
        "reason": "not here",
    }
    assert to_plain(payload.discovery.scan) == {
        "state": "failed",
        "reason": "no reason was given",
    }


def test_discovery_is_null_if_neither_mdns_nor_scan_was_possible() -> None:
    collected = replace(CLEAN, mdns_source=UNSUPPORTED, scan_source=UNSUPPORTED)

    payload = network_report(collected, JOB, CONTEXT)

    assert payload.discovery is None
    assert payload.failures == ()
    assert payload.completeness == "limited"
    assert payload.network_map is not None
    assert to_plain(payload.network_map.sources.scan) == {
        "state": "unsupported",
        "reason": "not here",
    }


def test_a_failed_source_is_reported_as_one_failure() -> None:
    failure = facts.Failure("scan", "reported by the step itself")
    collected = replace(CLEAN, mdns_source=FAILED, scan_source=FAILED, failures=(failure,))

    payload = network_report(collected, JOB, CONTEXT)

    assert [(f.step, f.reason) for f in payload.failures] == [
        ("scan", "reported by the step itself"),
        ("mdns", "it broke"),
    ]


def test_one_unsupported_discovery_source_is_no_failure_of_the_report() -> None:
    payload = network_report(replace(CLEAN, mdns_source=UNSUPPORTED), JOB, CONTEXT)

    assert payload.failures == ()
    assert payload.discovery is not None
    assert to_plain(payload.discovery.mdns) == {"state": "failed", "reason": "not here"}


@pytest.mark.parametrize("latency", [float("nan"), float("inf"), -float("inf")])
def test_a_latency_that_is_no_number_is_left_out(latency: float) -> None:
    collected = replace(CLEAN, hosts=(facts.Host("10.0.0.1", latency_ms=latency),))

    payload = network_report(collected, JOB, CONTEXT)

    assert payload.network_map is not None
    assert "latencyMs" not in to_plain(payload.network_map.hosts[0])


def test_an_empty_printer_id_becomes_unknown() -> None:
    collected = replace(CLEAN, printers=(facts.Printer("", "", "usb", "unknown"),))

    payload = network_report(collected, JOB, CONTEXT)

    assert payload.printers is not None
    assert (payload.printers[0].id, payload.printers[0].name) == ("unknown", "")


def test_long_names_are_cut_to_the_contract() -> None:
    collected = replace(CLEAN, endpoints=(replace(endpoint(), label="🖨" * 2048),))

    assert utf16_length(network_report(collected, JOB, CONTEXT).endpoints[0].label) == 1023


def test_unconfined_collector_is_reported_and_changes_nothing_else() -> None:
    refused = replace(CLEAN, confinement=facts.Confinement("refused", "this kernel is old"))
    payload = network_report(refused, JOB, CONTEXT)
    assert payload.limitations == (
        "the collector was not confined to what it needs to read: this kernel is old",
    )
    assert payload.completeness == "complete"
    for state in ("confined", "not-offered"):
        confined = replace(CLEAN, confinement=facts.Confinement(state, "a reason"))
        assert network_report(confined, JOB, CONTEXT).limitations == ()
