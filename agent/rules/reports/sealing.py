"""Builds the sealed body of `submitResult` from a payload, small enough for the service.

A sealed body never changes: however often a report is sent, it has the same bytes. The tier of a
body determines which parts of the report are dropped. Each tier drops more parts than the tier
before. The parts that are least useful for a technician are dropped first. The report mentions what
was dropped. If the service does not accept the body, the report is sealed again: after 413 with a
higher tier, and after other rejections as a failed report.
"""

from typing import Any, Final

from agent.rules.reports.sealed_report import SealedReport
from agent.wire.codec import decode, encode, validate
from agent.wire.device_operations import SubmitResultRequest
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.by_kind import PAYLOADS, ReportPayload
from agent.wire.payloads.network import NetworkPayload

LAST_TIER: Final = 7
"""Tier 0 is the whole report. The last tier is a failed report without a payload."""

_HOURS: Final = "history.hours"
"""The largest field of the connectivity record. It is dropped first."""
# How many items each tier keeps. Tiers before the first one in a table keep all items, and tiers
# after the last one keep none.
_ENDPOINTS_KEPT: Final = {1: 256, 2: 128, 3: 32, 4: 16, 5: 4, 6: 0}
_HOSTS_KEPT: Final = {1: 512, 2: 128}
_PRINTERS_KEPT: Final = {4: 16, 5: 8, 6: 2}
_INTERFACES_KEPT: Final = {4: 8, 5: 2, 6: 1}
_FIELDS_KEPT: Final = {4: 48, 5: 16, 6: 4}
_BROWSER_FIELDS_KEPT: Final = {4: 16}
_LINES_KEPT: Final = {1: 128, 2: 32, 3: 8, 4: 6, 5: 4, 6: 2}
"""Numbers of limitations. The same numbers apply to failures."""


def seal(report: SubmitResultRequest, max_bytes: int, *, first_tier: int = 0) -> SealedReport:
    """Seal ``report`` at the first tier that fits ``max_bytes``, starting with ``first_tier``.

    The last tier, a failed report without payload, has about 300 bytes and is returned even if it
    does not fit. ``report.report`` is a payload, or None.
    """
    payload: ReportPayload | None = report.report
    if payload is None:
        return _sealed(report, None, first_tier)
    for tier in range(first_tier, LAST_TIER):
        sealed_report = _sealed(report, shrink(payload, tier), tier)
        if len(sealed_report.body) <= max_bytes:
            return sealed_report
    return _sealed(report, None, LAST_TIER)


def seal_smaller(body: bytes, max_bytes: int, *, tier: int) -> SealedReport | None:
    """Seal the report in ``body`` again, but smaller. Returns None if it is the smallest already.

    Raises ValidationError if ``body`` is not a sealed report.
    """
    if tier >= LAST_TIER:
        return None
    return seal(report_of(body), min(max_bytes, len(body) - 1), first_tier=tier + 1)


def seal_as_failed(body: bytes) -> SealedReport:
    """Return a failed report with the ids of ``body``, for a body that the service rejected.

    Raises ValidationError if ``body`` is not a sealed report.
    """
    return _sealed(report_of(body), None, LAST_TIER)


def report_of(body: bytes) -> SubmitResultRequest:
    """Parse a sealed body; its payload becomes a model. Raises ValidationError."""
    request = decode(body, SubmitResultRequest)
    if not isinstance(request.report, dict):
        return request
    payload = validate(request.report, PAYLOADS[request.kind])
    return request.model_copy(update={"report": payload})


def shrink(payload: ReportPayload, tier: int) -> ReportPayload:
    """Return ``payload`` without the parts that ``tier`` drops. Tier 0 drops nothing."""
    if tier == 0:
        return payload
    if isinstance(payload, NetworkPayload):
        return _shrink_network(payload, tier)
    return _shrink_application(payload, tier)


def _shrink_network(payload: NetworkPayload, tier: int) -> NetworkPayload:
    endpoints = payload.endpoints[: _ENDPOINTS_KEPT[tier]]
    network_map, printers = payload.network_map, payload.printers
    hosts_dropped = interfaces_dropped = printers_dropped = 0
    if network_map is not None:
        hosts = network_map.hosts[: _HOSTS_KEPT.get(tier, 0)]
        hosts_dropped = len(network_map.hosts) - len(hosts)
        interfaces = network_map.interfaces[: _INTERFACES_KEPT.get(tier)]
        interfaces_dropped = len(network_map.interfaces) - len(interfaces)
        network_map = network_map.model_copy(
            update={
                "hosts": tuple(h.model_copy(update={"services": ()}) for h in hosts),
                "interfaces": interfaces,
                "limitations": network_map.limitations[: _LINES_KEPT[tier]],
                "truncated": True,
            }
        )
    if printers is not None:
        printers = printers[: _PRINTERS_KEPT.get(tier)]
        printers_dropped = len(payload.printers or ()) - len(printers)
    endpoints_dropped = len(payload.endpoints) - len(endpoints)
    dropped = ["services of hosts", f"{endpoints_dropped} endpoints", f"{hosts_dropped} hosts"]
    dropped += _counted((printers_dropped, "printers"), (interfaces_dropped, "interfaces"))
    return payload.model_copy(
        update={
            **_shrinkage(payload, tier, dropped),
            "endpoints": endpoints,
            "endpoints_omitted": payload.endpoints_omitted + endpoints_dropped,
            "printers": printers,
            "network_map": network_map,
        }
    )


def _shrink_application(payload: ApplicationPayload, tier: int) -> ApplicationPayload:
    snapshot = payload.snapshot
    fields = tuple(f for f in snapshot.fields if f.key != _HOURS)
    dropped = [_HOURS] if len(fields) < len(snapshot.fields) else []
    dropped.append(f"{len(snapshot.peripherals)} peripherals")
    browser_fields = payload.browser_fields
    update: dict[str, Any] = {"fields": fields, "peripherals": (), "truncated": True}
    if tier >= 2:
        dropped.append(f"{len(snapshot.interfaces)} interfaces")
        update["interfaces"] = ()
    if tier >= 3:
        available = tuple(f for f in fields if f.status == "available")
        dropped.append(f"{len(fields) - len(available)} unavailable fields")
        update["fields"] = available[: _FIELDS_KEPT.get(tier)]
        dropped += _counted((len(available) - len(update["fields"]), "other fields"))
    if tier >= 4:
        available_browser_fields = tuple(f for f in browser_fields if f.status == "available")
        browser_fields = available_browser_fields[: _BROWSER_FIELDS_KEPT.get(tier, 0)]
        dropped += _counted((len(payload.browser_fields) - len(browser_fields), "browser fields"))
        update["limitations"] = snapshot.limitations[: _LINES_KEPT[tier]]
    return payload.model_copy(
        update={
            **_shrinkage(payload, tier, dropped),
            "snapshot": snapshot.model_copy(update=update),
            "browser_fields": browser_fields,
        }
    )


def _counted(*dropped: tuple[int, str]) -> list[str]:
    return [f"{count} {noun}" for count, noun in dropped if count]


def _shrinkage(payload: ReportPayload, tier: int, dropped: list[str]) -> dict[str, Any]:
    """Return the changes that ``tier`` makes to reports of both kinds.

    The changes cut the limitations and failures, add a limitation that lists ``dropped``, and
    update the completeness.
    """
    lines_kept = _LINES_KEPT[tier]
    limitations_kept = lines_kept - 1  # one line is for the new limitation
    lines_dropped = max(0, len(payload.limitations) - limitations_kept)
    lines_dropped += max(0, len(payload.failures) - lines_kept)
    more = f", {lines_dropped} failures and limitations" if lines_dropped else ""
    line = f"the report was too large for the service: dropped {', '.join(dropped)}{more}"
    completeness = "limited" if payload.completeness == "complete" else payload.completeness
    return {
        "limitations": (line, *payload.limitations[:limitations_kept]),
        "failures": payload.failures[:lines_kept],
        "completeness": completeness,
    }


def _sealed(report: SubmitResultRequest, payload: ReportPayload | None, tier: int) -> SealedReport:
    """Seal ``report`` with ``payload``. Raises ValueError if it violates the contract."""
    outcome = "failed" if payload is None else report.outcome
    default_reason = "collection-failed" if outcome == "failed" else None
    body = encode(
        report.model_copy(
            update={
                "report": payload,
                "outcome": outcome,
                "failure_reason": report.failure_reason or default_reason,
            }
        )
    )
    # A body that cannot be read back is never sent: the service would reject it each time.
    report_of(body)
    return SealedReport(
        report_id=report.report_id,
        request_id=report.request_id,
        binding_id=report.binding_id,
        kind=report.kind,
        outcome=outcome,
        tier=tier,
        body=body,
    )
