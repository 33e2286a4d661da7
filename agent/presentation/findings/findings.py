"""Everything that the rules find in a report, what is worst first. One table a kind of report."""

from collections.abc import Iterable
from typing import Final

from agent.presentation.findings.connectivity import CONNECTIVITY_RULES
from agent.presentation.findings.disks import DISK_RULES
from agent.presentation.findings.kiosk import KIOSK_RULES
from agent.presentation.findings.local_network import LOCAL_NETWORK_RULES
from agent.presentation.findings.machine import MACHINE_RULES
from agent.presentation.findings.printers import PRINTER_RULES
from agent.presentation.findings.programs import PROGRAM_RULES
from agent.presentation.findings.rule import Facts, Finding, Rule, Severity, found_by
from agent.presentation.findings.snapshot_facts import SnapshotFacts, facts_of
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import NetworkPayload

APPLICATION_RULES: Final[tuple[Rule[SnapshotFacts], ...]] = (
    *PROGRAM_RULES,
    *KIOSK_RULES,
    *CONNECTIVITY_RULES,
    *DISK_RULES,
    *MACHINE_RULES,
)
NETWORK_RULES: Final = (*PRINTER_RULES, *LOCAL_NETWORK_RULES)
"""Both in the order in which findings of one severity are listed."""

_ORDER: Final[tuple[Severity, ...]] = ("problem", "warning", "note")


def findings_of(payload: NetworkPayload | ApplicationPayload) -> tuple[Finding, ...]:
    """Return what is wrong by a report, what is worst first; nothing where all is well."""
    if isinstance(payload, NetworkPayload):
        return _found(NETWORK_RULES, payload)
    return _found(APPLICATION_RULES, facts_of(payload))


def verdict_of(findings: tuple[Finding, ...]) -> str:
    """Return one sentence: what is worst, and how much more there is; "" for no finding."""
    if not findings:
        return ""
    more = sum(finding.count for finding in findings) - 1
    worst = findings[0].sentences[0]
    return f"{worst} And {more} more finding{'s'[: more != 1]}." if more else worst


def _found(rules: Iterable[Rule[Facts]], facts: Facts) -> tuple[Finding, ...]:
    found = [(rule, finding) for rule in rules if (finding := found_by(rule, facts)) is not None]
    codes = {rule.code for rule, _ in found}
    told = [finding for rule, finding in found if not codes.intersection(rule.explained_by)]
    return tuple(sorted(told, key=lambda finding: _ORDER.index(finding.severity)))
