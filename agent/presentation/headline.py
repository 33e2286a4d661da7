"""The headline of a report: the most severe finding, and how complete the report is."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from agent.presentation.findings.findings import findings_of, verdict_of
from agent.presentation.findings.rule import Finding
from agent.presentation.findings.snapshot_facts import all_fields
from agent.presentation.hosts.rows import host_rows
from agent.presentation.humanize import counted, do_not_apply, duration_between, format_timestamp
from agent.presentation.machine_name import machine_name
from agent.presentation.plain_text import shorten
from agent.presentation.printer_status import verdict_on
from agent.presentation.severity import Severity
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.common import Payload
from agent.wire.payloads.network import NetworkPayload
from agent.wire.vocabulary import Completeness, FieldStatus

_OUTCOMES: Final[dict[Completeness, tuple[str, Severity]]] = {
    "complete": ("Complete: every source succeeded and nothing was cut.", "good"),
    "partial": ("Partial: a source failed or was cut short.", "warn"),
    "limited": ("Limited: this machine or its configuration did not allow everything.", "warn"),
}
NAMED_MAX: Final = 3
"""Maximum number of discovered printers that the verdict names."""
_SCOPES: Final = {"local-network": "this machine's local networks", "device": "this machine only"}


@dataclass(frozen=True, slots=True)
class HeadlineRow:
    """A value with its label, such as the location or the duration of the report."""

    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Headline:
    """The summary of a report.

    Args:
        verdict: The most severe finding in one sentence. A network report without problems and
            warnings has a sentence about its printers instead. An application snapshot without
            findings has a sentence that states that no problem was found or that nothing could be
            read.
        findings: All findings, most severe first.
        outcome: How complete the report is.
    """

    title: str
    verdict: str
    severity: Severity
    findings: tuple[Finding, ...]
    outcome: str
    outcome_severity: Severity
    rows: tuple[HeadlineRow, ...]


def headline_of(payload: NetworkPayload | ApplicationPayload) -> Headline:
    findings = findings_of(payload)
    if isinstance(payload, NetworkPayload):
        kind = "network report"
        verdict, severity = printers_verdict(payload)
        is_verdict_a_finding = bool(findings) and findings[0].severity != "muted"
        rows = tuple(_network_rows(payload, verdict if is_verdict_a_finding else ""))
    else:
        counts = Counter(field.status for _, field in all_fields(payload))
        kind, is_verdict_a_finding = "application snapshot", bool(findings)
        verdict, severity = "No problem was found.", "good"
        if not counts["available"]:
            verdict, severity = "Nothing could be read.", "muted"
        rows = (HeadlineRow("Facts", _summary(counts)),)
    if is_verdict_a_finding:
        verdict, severity = verdict_of(findings), findings[0].severity
    outcome, outcome_severity = _outcome(payload)
    name = machine_name(payload.identity.install_id)
    return Headline(
        title=f"{name}: {kind}" if name else kind.capitalize(),
        verdict=verdict,
        severity=severity,
        findings=findings,
        outcome=outcome,
        outcome_severity=outcome_severity,
        rows=(*_common_rows(payload), *rows),
    )


def printers_verdict(payload: NetworkPayload) -> tuple[str, Severity]:
    """Return one sentence about the printers, and its severity.

    If this machine has no printer, the sentence names the printers on the network.
    """
    verdict, severity = verdict_on(payload.printers)
    on_network = _describe_discovered(payload) if payload.printers == () else ""
    return (f"{verdict.removesuffix('.')}; {on_network}." if on_network else verdict), severity


def _describe_discovered(payload: NetworkPayload) -> str:
    """Return the number of printers on the network, and the first ones with their addresses.

    For example: ``2 discovered on the network: TM-T88VI at 192.168.1.50, Bar at .51``.
    Return "" if there are none.
    """
    rows = [row for row in host_rows(payload) if row.kind == "printer"]
    if not rows:
        return ""
    network = rows[0].address.rpartition(".")[0]
    printer_names: list[str] = []
    for row in rows[:NAMED_MAX]:
        prefix, _, last_octet = row.address.rpartition(".")
        where = f".{last_octet}" if printer_names and prefix and prefix == network else row.address
        printer_names.append(f"{row.model or row.name or row.known_maker or 'one'} at {where}")
    more = f" and {len(rows) - len(printer_names)} more" if len(rows) > len(printer_names) else ""
    return f"{len(rows)} discovered on the network: {', '.join(printer_names)}{more}"


def _summary(counts: Counter[FieldStatus]) -> str:
    inapplicable = counts["unsupported"] + counts["not-applicable"]
    parts = (
        (counts["collection-failed"], "failed"),
        (counts["permission-denied"], "denied"),
        (inapplicable, do_not_apply(inapplicable)),
    )
    parts_text = (f"{count} {label}" for count, label in parts if count)
    return ", ".join((f"{counts['available']} read", *parts_text))


def _outcome(payload: Payload) -> tuple[str, Severity]:
    sentence, severity = _OUTCOMES[payload.completeness]
    if not payload.failures:
        return sentence, severity
    return f"{sentence} {counted(len(payload.failures), 'step')} failed, see below.", "bad"


def _common_rows(payload: Payload) -> tuple[HeadlineRow, ...]:
    environment, install_id = payload.environment, payload.identity.install_id
    duration = duration_between(payload.started_at, payload.finished_at)
    version = environment.native_app_version
    values = (
        ("Location", payload.identity.location_id),
        ("Organization", payload.identity.organization_id),
        ("Machine", "" if machine_name(install_id) else install_id),
        ("Started", format_timestamp(payload.started_at)),
        ("Duration", duration),
        ("Agent", f"{version} on {environment.os_platform}" if version else environment.user_agent),
        ("Report", payload.report_id),
    )
    return tuple(HeadlineRow(label, shorten(value)) for label, value in values if value)


def _network_rows(payload: NetworkPayload, printers_sentence: str) -> Iterator[HeadlineRow]:
    yield HeadlineRow("Scope", _SCOPES.get(payload.scope) or shorten(payload.scope))
    if printers_sentence:
        yield HeadlineRow("Printers", printers_sentence.removesuffix("."))
    if payload.network_map is not None:
        system = payload.network_map.os
        yield HeadlineRow("System", shorten(f"{system.platform} {system.version or ''}"))
        hosts = counted(len(payload.network_map.hosts), "host")
        endpoints = counted(len(payload.endpoints) + payload.endpoints_omitted, "endpoint")
        yield HeadlineRow("Contents", f"{hosts}, {endpoints}")
