"""Applies the rules of application reports to facts, and returns the sentences of the findings."""

from agent.presentation.findings.findings import findings_of
from agent.rules.reports.application import application_report
from agent.rules.reports.context import ReportContext
from collectors.application.source import Reading
from collectors.contract import ApplicationFacts
from tests.fixtures.payloads import FINISHED_AT, REPORT_ID, environment, identity


def sentences_by_rule(*readings: Reading) -> dict[str, tuple[str, ...]]:
    """Return the sentences of the findings by the code of their rule."""
    return sentences_by_rule_of_facts(
        ApplicationFacts(
            started_at=FINISHED_AT,
            fields=tuple(field for reading in readings for field in reading.fields),
            interfaces=tuple(link for reading in readings for link in reading.interfaces),
            peripherals=tuple(
                peripheral for reading in readings for peripheral in reading.peripherals
            ),
        )
    )


def sentences_by_rule_of_facts(facts: ApplicationFacts) -> dict[str, tuple[str, ...]]:
    """Return the sentences of the findings by the code of their rule."""
    context = ReportContext(REPORT_ID, FINISHED_AT, identity(), environment())
    payload = application_report(facts, (), context)
    return {finding.code: finding.sentences for finding in findings_of(payload)}
