"""Payload → the sealed body of `submitResult`, small enough to be taken.

A sealed body is bytes that never change: the same report is the same bytes, however often it is
sent. Only an answer of 413 makes a new seal, of the same report, one tier smaller. Each tier
drops whole parts, in the order of their worth to a technician, and says so in the report.
"""

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from agent.wire.codec import decode, encode, validate
from agent.wire.device_operations import SubmitResultRequest
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.by_kind import PAYLOADS, ReportPayload
from agent.wire.payloads.network import NetworkPayload
from agent.wire.vocabulary import FailureReason, Kind, Outcome

Payload = ReportPayload

LAST_TIER: Final = 4
"""Tier 0 is the whole report; the last tier carries no payload at all."""

_ENDPOINTS_KEPT: Final = {1: 256, 2: 128, 3: 32}
_HOSTS_KEPT: Final = {1: 512, 2: 128, 3: 0}
_LINES_KEPT: Final = {1: 128, 2: 32, 3: 8}


@dataclass(frozen=True, slots=True)
class Report:
    """A finished report before it is sealed. ``payload`` is None when there is nothing to tell."""

    report_id: UUID
    binding_id: UUID
    kind: Kind
    outcome: Outcome
    payload: Payload | None
    request_id: UUID | None = None
    failure_reason: FailureReason | None = None


@dataclass(frozen=True, slots=True)
class Sealed:
    """``body`` is what is sent, ``tier`` how much had to go to make it fit."""

    body: bytes
    tier: int
    outcome: Outcome


def seal(report: Report, max_bytes: int, *, first_tier: int = 0) -> Sealed:
    """Seal ``report`` at the first tier from ``first_tier`` on that fits ``max_bytes``.

    The last tier, a failed report without payload, is some 300 bytes and is returned whatever
    ``max_bytes`` says.
    """
    for tier in range(first_tier, LAST_TIER):
        if report.payload is None:
            break
        payload = shrink(report.payload, tier)
        sealed = Sealed(_body(report, payload, report.outcome), tier, report.outcome)
        if len(sealed.body) <= max_bytes:
            return sealed
    tier = first_tier if report.payload is None else LAST_TIER
    outcome: Outcome = "failed"
    return Sealed(_body(report, None, outcome), tier, outcome)


def seal_smaller(body: bytes, max_bytes: int, *, tier: int) -> Sealed | None:
    """Return a smaller seal of the report in ``body``, or None when it is the smallest already.

    Raises ValidationError when ``body`` is no sealed report.
    """
    if tier >= LAST_TIER:
        return None
    return seal(report_of(body), min(max_bytes, len(body) - 1), first_tier=tier + 1)


def seal_as_failed(body: bytes) -> Sealed:
    """Return a report of failure with the ids of ``body``, for a body the service rejected."""
    report = report_of(body)
    return Sealed(_body(report, None, "failed"), LAST_TIER, "failed")


def report_of(body: bytes) -> Report:
    """Read a sealed body back. Raises ValidationError."""
    request = decode(body, SubmitResultRequest)
    payload: Payload | None = None
    if isinstance(request.report, dict):
        payload = validate(request.report, PAYLOADS[request.kind])
    return Report(
        report_id=request.report_id,
        binding_id=request.binding_id,
        kind=request.kind,
        outcome=request.outcome,
        payload=payload,
        request_id=request.request_id,
        failure_reason=request.failure_reason,
    )


def shrink(payload: Payload, tier: int) -> Payload:
    """Return ``payload`` without what tier ``tier`` drops; tier 0 drops nothing."""
    if tier == 0:
        return payload
    if isinstance(payload, NetworkPayload):
        return _shrink_network(payload, tier)
    return _shrink_application(payload, tier)


def _shrink_network(payload: NetworkPayload, tier: int) -> NetworkPayload:
    endpoints = payload.endpoints[: _ENDPOINTS_KEPT[tier]]
    network_map = payload.network_map
    hosts_dropped = 0
    if network_map is not None:
        hosts = network_map.hosts[: _HOSTS_KEPT[tier]]
        hosts_dropped = len(network_map.hosts) - len(hosts)
        network_map = network_map.model_copy(
            update={
                "hosts": tuple(h.model_copy(update={"services": ()}) for h in hosts),
                "truncated": True,
            }
        )
    dropped = len(payload.endpoints) - len(endpoints)
    what = f"services of hosts, {dropped} endpoints, {hosts_dropped} hosts"
    return payload.model_copy(
        update={
            **_said(payload, tier, what),
            "endpoints": endpoints,
            "endpoints_omitted": payload.endpoints_omitted + dropped,
            "network_map": network_map,
        }
    )


def _shrink_application(payload: ApplicationPayload, tier: int) -> ApplicationPayload:
    snapshot = payload.snapshot
    dropped = [f"{len(snapshot.peripherals)} peripherals"]
    update: dict[str, Any] = {"peripherals": (), "truncated": True}
    if tier >= 2:
        dropped.append(f"{len(snapshot.interfaces)} interfaces")
        update["interfaces"] = ()
    if tier >= 3:
        available = tuple(f for f in snapshot.fields if f.status == "available")
        dropped.append(f"{len(snapshot.fields) - len(available)} unavailable fields")
        update["fields"] = available
    return payload.model_copy(
        update={
            **_said(payload, tier, ", ".join(dropped)),
            "snapshot": snapshot.model_copy(update={**update}),
        }
    )


def _said(payload: Payload, tier: int, dropped: str) -> dict[str, Any]:
    """Return the changes that say in the report what it was shrunk by."""
    kept = _LINES_KEPT[tier]
    lines = max(0, len(payload.limitations) - kept + 1) + max(0, len(payload.failures) - kept)
    more = f", {lines} failures and limitations" if lines else ""
    line = f"the report was too large for the service: left out are {dropped}{more}"
    judged = "limited" if payload.completeness == "complete" else payload.completeness
    return {
        "limitations": (line, *payload.limitations[: kept - 1]),
        "failures": payload.failures[:kept],
        "completeness": judged,
    }


def _body(report: Report, payload: Payload | None, outcome: Outcome) -> bytes:
    """Write the body. Raises ValueError for a report that breaks the contract."""
    reason = report.failure_reason
    if outcome == "failed" and reason is None:
        reason = "collection-failed"
    request = SubmitResultRequest(
        binding_id=report.binding_id,
        report_id=report.report_id,
        kind=report.kind,
        outcome=outcome,
        request_id=report.request_id,
        report=payload,
        failure_reason=reason,
    )
    body = encode(request)
    # What could not be read back is not sent: the service would refuse it, and nobody would know.
    report_of(body)
    return body
