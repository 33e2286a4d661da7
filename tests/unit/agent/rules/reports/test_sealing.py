"""Tests that a report small enough for the service is sealed whole, and that a larger report is
sealed in a later tier. Each tier leaves out more content.
"""

import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.rules.reports.application import application_report
from agent.rules.reports.network import network_report
from agent.rules.reports.sealed_report import SealedReport
from agent.rules.reports.sealing import (
    LAST_TIER,
    report_of,
    seal,
    seal_as_failed,
    seal_smaller,
    shrink,
)
from agent.wire.codec import decode, encode, to_plain
from agent.wire.device_operations import SubmitResultRequest
from agent.wire.payloads.by_kind import ReportPayload
from agent.wire.validation import ValidationError
from collectors import contract as facts
from tests.fixtures import payloads
from tests.fixtures.healthy import HEALTHY, healthy
from tests.sizes import examples
from tests.unit.agent.hostile import application_facts, network_facts
from tests.unit.agent.rules.reports.test_network import CONTEXT, JOB

REPORT_ID = UUID("0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10")
REQUEST_ID = UUID(int=7)
BINDING_ID = UUID(int=9)
SMALLEST_LIMIT = 10_000
"""The smallest permitted value of limits.max_report_bytes."""
IDS = ("bindingId", "reportId", "requestId", "kind")


def report(payload: ReportPayload | None, **changes: Any) -> SubmitResultRequest:
    kind = "application" if payload is not None and payload.version == 1 else "network"
    request = SubmitResultRequest(
        report_id=REPORT_ID,
        binding_id=BINDING_ID,
        kind=kind,
        outcome="completed",
        report=payload,
        request_id=REQUEST_ID,
    )
    return request.model_copy(update=changes)


def large_network() -> ReportPayload:
    many = facts.NetworkFacts(
        scope="local-network",
        os_platform="linux",
        os_version="12",
        started_at="2026-11-20T19:04:12+00:00",
        hosts=tuple(
            facts.Host(f"10.0.{n // 256}.{n % 256}", (facts.Service(80, "tcp", "web"),) * 4)
            for n in range(1000)
        ),
        endpoints=tuple(
            facts.Endpoint(f"10.0.1.{n}", "till", 80, "http", ("scan",), "reachable")
            for n in range(300)
        ),
        printers=tuple(facts.Printer(f"p{n}", "P", "usb", "unknown") for n in range(40)),
        failures=tuple(facts.Failure("step", str(n)) for n in range(150)),
        limitations=tuple(f"line {n}" for n in range(150)),
        interfaces_source=facts.SourceState("succeeded"),
        mdns_source=facts.SourceState("succeeded"),
        scan_source=facts.SourceState("succeeded"),
    )
    return network_report(many, JOB, CONTEXT)


def large_application() -> ReportPayload:
    field = facts.Field("some.key", "source", "available", "value " * 20)
    missing = facts.Field("some.key", "source", "unsupported", reason="reason " * 20)
    many = facts.ApplicationFacts(
        started_at="2026-11-20T19:04:12+00:00",
        fields=(field, missing) * 50,
        interfaces=tuple(facts.InterfaceFields(f"eth{n}", (field,) * 5) for n in range(20)),
        peripherals=tuple(facts.PeripheralFields(f"u{n}", "usb", (field,) * 5) for n in range(20)),
    )
    return application_report(many, (), CONTEXT)


LARGE = {"network": large_network(), "application": large_application()}


@pytest.fixture(params=sorted(LARGE))
def large(request: pytest.FixtureRequest) -> ReportPayload:
    return LARGE[request.param]


def message(sealed: SealedReport) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(sealed.body)
    return document


def size(payload: ReportPayload, tier: int) -> int:
    return len(seal(report(payload), 10**9, first_tier=tier).body)


def test_a_report_that_fits_is_sealed_whole(large: ReportPayload) -> None:
    sealed = seal(report(large), 10**9)

    assert sealed.tier == 0
    assert sealed.outcome == "completed"
    assert message(sealed)["report"] == json.loads(encode(large))
    assert report_of(sealed.body) == report(large)


def test_sealing_the_same_report_again_returns_the_same_bytes(large: ReportPayload) -> None:
    assert seal(report(large), 10**6) == seal(report(large), 10**6)
    assert seal(report_of(seal(report(large), 10**6).body), 10**6) == seal(report(large), 10**6)


def test_each_tier_is_smaller_and_marked_as_incomplete(large: ReportPayload) -> None:
    sizes = [size(large, tier) for tier in range(LAST_TIER + 1)]

    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)
    for tier in range(1, LAST_TIER):
        smaller = shrink(large, tier)
        assert smaller.limitations[0].startswith("the report was too large for the service")
        assert smaller.completeness != "complete"
        decode(encode(smaller), type(smaller))
    assert shrink(large, 0) is large


def test_a_report_is_sealed_in_the_first_tier_that_fits(large: ReportPayload) -> None:
    for tier in range(LAST_TIER + 1):
        bound = size(large, tier)
        assert seal(report(large), bound).tier == tier
        if tier < LAST_TIER:
            assert seal(report(large), bound - 1).tier == tier + 1


def test_the_last_tier_has_no_payload_and_is_small(large: ReportPayload) -> None:
    sealed = seal(report(large), 1)

    assert sealed.tier == LAST_TIER
    assert sealed.outcome == "failed"
    assert len(sealed.body) < 500
    assert message(sealed)["report"] is None
    assert message(sealed)["failureReason"] == "collection-failed"


@pytest.mark.parametrize("name", HEALTHY)
def test_the_facts_of_a_machine_fit_the_smallest_limit(name: str) -> None:
    sealed = seal(report(healthy(name)), SMALLEST_LIMIT)

    assert len(sealed.body) <= SMALLEST_LIMIT
    assert sealed.outcome == "completed"
    payload = message(sealed)["report"]
    assert len(payload["snapshot"]["fields"]) == 48  # as many as tier 4 keeps
    assert {field["status"] for field in payload["browserFields"]} <= {"available"}
    assert "other fields" in payload["limitations"][0]
    assert "browser fields" in payload["limitations"][0]


def test_a_large_report_keeps_a_payload_at_the_smallest_limit(large: ReportPayload) -> None:
    sealed = seal(report(large), SMALLEST_LIMIT)

    assert sealed.outcome == "completed"
    if large.version == 2:
        payload = message(sealed)["report"]
        assert payload["endpointsOmitted"] + len(payload["endpoints"]) == 300
        assert f"{40 - len(payload['printers'])} printers" in payload["limitations"][0]


def test_each_tier_of_a_network_report_counts_what_it_drops() -> None:
    whole = LARGE["network"]
    assert whole.version == 2
    assert whole.network_map is not None
    for tier, endpoints, hosts in ((1, 256, 512), (2, 128, 128), (3, 32, 0)):
        cut = shrink(whole, tier)
        assert cut.version == 2
        assert cut.network_map is not None
        assert len(cut.endpoints) == endpoints
        assert cut.endpoints_omitted == 300 - endpoints
        assert len(cut.network_map.hosts) == hosts
        assert cut.network_map.truncated
        assert all(host.services == () for host in cut.network_map.hosts)
        line = cut.limitations[0]
        assert f"{256 - endpoints} endpoints, {1000 - hosts} hosts" in line
        # The whole report has 128 failures and 128 limitations. The cut report has one more line,
        # which describes what was dropped.
        omitted = 2 * 128 + 1 - len(cut.failures) - len(cut.limitations)
        assert f", {omitted} failures and limitations" in line
        assert len(cut.failures) <= 128
        assert len(cut.limitations) <= 128


def test_each_tier_of_an_application_report_counts_what_it_drops() -> None:
    whole = LARGE["application"]
    assert whole.version == 1
    one, two, three = (shrink(whole, tier) for tier in (1, 2, 3))
    assert one.version == two.version == three.version == 1
    assert one.snapshot.peripherals == two.snapshot.peripherals == ()
    assert one.snapshot.interfaces == whole.snapshot.interfaces
    assert two.snapshot.interfaces == three.snapshot.interfaces == ()
    assert two.snapshot.fields == whole.snapshot.fields
    assert {f.status for f in three.snapshot.fields} == {"available"}
    assert three.limitations[0].endswith("20 peripherals, 20 interfaces, 50 unavailable fields")
    assert three.snapshot.truncated
    assert three.completeness == "limited"


def test_a_report_without_a_map_can_be_shrunk() -> None:
    whole = payloads.small_venue().model_copy(update={"network_map": None})

    assert to_plain(shrink(whole, 3))["networkMap"] is None


def test_repeated_seal_smaller_keeps_the_ids_and_ends_at_the_last_tier(
    large: ReportPayload,
) -> None:
    sealed = seal(report(large), 10**9)
    ids = {key: message(sealed)[key] for key in IDS}
    tiers = [sealed.tier]
    while (smaller := seal_smaller(sealed.body, 10**9, tier=sealed.tier)) is not None:
        assert len(smaller.body) < len(sealed.body)
        assert {key: message(smaller)[key] for key in IDS} == ids
        decode(smaller.body, SubmitResultRequest)
        sealed = smaller
        tiers.append(sealed.tier)

    assert tiers == sorted(set(tiers))
    assert tiers[-1] == LAST_TIER
    assert len(tiers) <= LAST_TIER + 1


def test_repeated_seal_smaller_of_a_small_report_ends_at_the_last_tier() -> None:
    sealed = seal(report(payloads.small_venue()), 10**9)
    for _ in range(LAST_TIER + 1):
        smaller = seal_smaller(sealed.body, 10**9, tier=sealed.tier)
        if smaller is None:
            break
        assert len(smaller.body) < len(sealed.body)
        sealed = smaller

    assert sealed.tier == LAST_TIER


@pytest.mark.parametrize("reason", ["collection-failed", "execution-interrupted"])
def test_a_failed_report_keeps_its_reason(reason: str) -> None:
    failed = report(None, outcome="failed", failure_reason=reason, request_id=None)

    sealed = seal(failed, 10**6)

    assert (sealed.tier, sealed.outcome) == (0, "failed")
    assert message(sealed)["failureReason"] == reason
    assert "requestId" not in message(sealed)
    assert report_of(sealed.body) == failed
    for tier in range(LAST_TIER):
        smaller = seal_smaller(sealed.body, 10**6, tier=tier)
        assert smaller is not None
        assert smaller.body == sealed.body
        assert smaller.tier == tier + 1
    assert seal_smaller(sealed.body, 10**6, tier=LAST_TIER) is None


def test_a_rejected_body_becomes_a_failed_report_with_its_ids(large: ReportPayload) -> None:
    sealed = seal(report(large), 10**9)

    failed = seal_as_failed(sealed.body)

    assert (failed.tier, failed.outcome) == (LAST_TIER, "failed")
    assert {k: message(failed)[k] for k in IDS} == {k: message(sealed)[k] for k in IDS}
    assert message(failed)["report"] is None


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"\xff", b'{"report": 1}'])
def test_invalid_sealed_report_raises_an_error(body: bytes) -> None:
    with pytest.raises(ValidationError):
        seal_smaller(body, 1000, tier=0)
    with pytest.raises(ValidationError):
        seal_as_failed(body)


@settings(max_examples=examples(40))
@given(network_facts | application_facts, st.integers(1, 20_000))
def test_no_sealed_report_with_a_payload_exceeds_the_limit(
    collected: facts.Facts, max_bytes: int
) -> None:
    payload: ReportPayload
    if isinstance(collected, facts.NetworkFacts):
        payload = network_report(collected, JOB, CONTEXT)
    else:
        payload = application_report(collected, (), CONTEXT)

    sealed = seal(report(payload), max_bytes)

    assert len(sealed.body) <= max_bytes or sealed.tier == LAST_TIER
    assert decode(sealed.body, SubmitResultRequest).report_id == REPORT_ID
    if sealed.tier == 0:
        assert report_of(sealed.body).report == payload
