"""The findings of a report: problems and their fixes, derived from its payload alone."""

from typing import Final

from agent.presentation.findings.connectivity import CONNECTIVITY_RULES
from agent.presentation.findings.disks import DISK_RULES
from agent.presentation.findings.history import HISTORY_RULES
from agent.presentation.findings.kiosk import KIOSK_RULES
from agent.presentation.findings.local_network import LOCAL_NETWORK_RULES
from agent.presentation.findings.machine import MACHINE_RULES
from agent.presentation.findings.printers import PRINTER_RULES
from agent.presentation.findings.programs import PROGRAM_RULES
from agent.presentation.findings.rule import Finding, Rule, finding_of, match_rules
from agent.presentation.findings.snapshot_facts import SnapshotFacts, facts_of
from agent.presentation.findings.watched_devices import (
    WATCHED_NETWORK_RULES,
    WATCHED_SNAPSHOT_RULES,
)
from agent.presentation.humanize import with_more
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import NetworkPayload

APPLICATION_RULES: Final[tuple[Rule[SnapshotFacts], ...]] = (
    *PROGRAM_RULES,
    *WATCHED_SNAPSHOT_RULES,
    *KIOSK_RULES,
    *CONNECTIVITY_RULES,
    *HISTORY_RULES,
    *DISK_RULES,
    *MACHINE_RULES,
)
NETWORK_RULES: Final = (*PRINTER_RULES, *WATCHED_NETWORK_RULES, *LOCAL_NETWORK_RULES)
"""Findings of the same severity are listed in the order of their rules in these two tuples."""


def findings_of(payload: NetworkPayload | ApplicationPayload) -> tuple[Finding, ...]:
    """Return the findings of a report, most severe first; empty if there are none."""
    if isinstance(payload, NetworkPayload):
        return tuple(finding_of(*match) for match in match_rules(NETWORK_RULES, payload))
    return tuple(finding_of(*match) for match in match_rules(APPLICATION_RULES, facts_of(payload)))


def verdict_of(findings: tuple[Finding, ...]) -> str:
    """Return one sentence: the most severe finding and the number of further findings.

    Return "" if there are no findings.
    """
    if not findings:
        return ""
    more = sum(finding.count for finding in findings) - 1
    return with_more(findings[0].sentences[0], more, "finding")
