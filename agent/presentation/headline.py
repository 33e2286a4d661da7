"""The first thing a reader sees: how the report ended, and what it says in one sentence."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from agent.presentation.findings.findings import findings_of, verdict_of
from agent.presentation.findings.rule import Finding
from agent.presentation.hosts.printers import printers_verdict
from agent.presentation.humanize import duration_between, moment_in_words
from agent.presentation.machine_name import machine_name
from agent.presentation.plain_text import NAME_LENGTH, shorten
from agent.presentation.tone import Tone
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.common import Payload
from agent.wire.payloads.network import NetworkPayload
from agent.wire.vocabulary import Completeness, FieldStatus

_OUTCOMES: Final[dict[Completeness, tuple[str, Tone]]] = {
    "complete": ("Complete: every source answered and nothing was cut.", "good"),
    "partial": ("Partial: a source failed or was cut short.", "warn"),
    "limited": ("Limited: this machine or its configuration allowed less than everything.", "warn"),
}
_SCOPES: Final = {
    "local-network": "this machine's local networks",
    "device": "this machine only",
}


@dataclass(frozen=True, slots=True)
class Fact:
    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Headline:
    """``verdict`` answers the reader's question; ``outcome`` says how much to trust it.

    ``findings`` are all that is wrong, of which the verdict names the worst.
    """

    title: str
    verdict: str
    tone: Tone
    findings: tuple[Finding, ...]
    outcome: str
    outcome_tone: Tone
    facts: tuple[Fact, ...]


def headline_of(payload: NetworkPayload | ApplicationPayload) -> Headline:
    if isinstance(payload, NetworkPayload):
        return network_headline(payload)
    return application_headline(payload)


def network_headline(payload: NetworkPayload) -> Headline:
    findings = findings_of(payload)
    printers, tone = printers_verdict(payload)
    verdict, more = printers, tuple[Fact, ...]()
    if findings and findings[0].severity != "note":
        verdict, tone = verdict_of(findings), findings[0].tone
        more = (Fact("Printers", printers.removesuffix(".")),)
    outcome, outcome_tone = _outcome(payload)
    scope = _SCOPES.get(payload.scope) or shorten(payload.scope, NAME_LENGTH)
    return Headline(
        title=_title("network report", payload),
        verdict=verdict,
        tone=tone,
        findings=findings,
        outcome=outcome,
        outcome_tone=outcome_tone,
        facts=(*_facts(payload), Fact("Scope", scope), *more, *_found(payload)),
    )


def application_headline(payload: ApplicationPayload) -> Headline:
    counts = Counter(_statuses(payload))
    findings = findings_of(payload)
    verdict, tone = _without_findings(counts)
    if findings:
        verdict, tone = verdict_of(findings), findings[0].tone
    outcome, outcome_tone = _outcome(payload)
    return Headline(
        title=_title("application snapshot", payload),
        verdict=verdict,
        tone=tone,
        findings=findings,
        outcome=outcome,
        outcome_tone=outcome_tone,
        facts=(*_facts(payload), Fact("Facts", _counted(counts))),
    )


def _statuses(payload: ApplicationPayload) -> Iterator[FieldStatus]:
    snapshot = payload.snapshot
    yield from (field.status for field in snapshot.fields)
    yield from (field.status for link in snapshot.interfaces for field in link.fields)
    yield from (field.status for thing in snapshot.peripherals for field in thing.fields)
    yield from (field.status for field in payload.browser_fields)


def _without_findings(counts: Counter[FieldStatus]) -> tuple[str, Tone]:
    if not counts["available"]:
        return "Nothing could be read.", "muted"
    return "No problem was found.", "good"


def _counted(counts: Counter[FieldStatus]) -> str:
    parts = [f"{counts['available']} read"]
    if counts["collection-failed"]:
        parts.append(f"{counts['collection-failed']} failed")
    if counts["permission-denied"]:
        parts.append(f"{counts['permission-denied']} denied")
    rest = counts["unsupported"] + counts["not-applicable"]
    if rest:
        parts.append(f"{rest} not for this machine")
    return ", ".join(parts)


def _title(what: str, payload: Payload) -> str:
    name = machine_name(payload.identity.install_id)
    return f"{name}: {what}" if name else what.capitalize()


def _outcome(payload: Payload) -> tuple[str, Tone]:
    words, tone = _OUTCOMES[payload.completeness]
    count = len(payload.failures)
    if not count:
        return words, tone
    return f"{words} {count} step{'s' if count > 1 else ''} failed, see below.", "bad"


def _facts(payload: Payload) -> tuple[Fact, ...]:
    environment, install_id = payload.environment, payload.identity.install_id
    duration = duration_between(payload.started_at, payload.finished_at)
    version = environment.native_app_version
    facts = (
        ("Place", payload.identity.location_id),
        ("Organization", payload.identity.organization_id),
        ("Machine", "" if machine_name(install_id) else install_id),
        ("Started", moment_in_words(payload.started_at)),
        ("Took", duration),
        ("Agent", f"{version} on {environment.os_platform}" if version else environment.user_agent),
        ("Report", payload.report_id),
    )
    return tuple(Fact(label, shorten(value, NAME_LENGTH)) for label, value in facts if value)


def _found(payload: NetworkPayload) -> tuple[Fact, ...]:
    if payload.network_map is None:
        return ()
    system = payload.network_map.os
    words = shorten(f"{system.platform} {system.version or ''}", NAME_LENGTH)
    hosts = len(payload.network_map.hosts)
    endpoints = len(payload.endpoints) + payload.endpoints_omitted
    found = f"{hosts} host{'s'[: hosts != 1]}, {endpoints} endpoint{'s'[: endpoints != 1]}"
    return (Fact("System", words), Fact("Found", found))
