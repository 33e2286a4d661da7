"""Builds the payload of a network or application report from its facts, without secrets."""

from collections.abc import Iterable
from typing import Final

from agent.redaction.known import redact
from agent.rules.reports.application import application_report
from agent.rules.reports.context import ReportContext
from agent.rules.reports.network import network_report, switched_off_report
from agent.rules.reports.redacted_facts import redacted
from agent.wire.payloads.by_kind import ReportPayload
from collectors.contract import ApplicationFacts, Facts, Field, Job, NetworkFacts, NetworkJob

SWITCHED_OFF: Final = "switched off in this machine's configuration"


def payload_of(
    job: Job, facts: Facts, agent_fields: Iterable[Field], context: ReportContext
) -> ReportPayload:
    """Build the payload of a job's facts."""
    facts = redacted(facts, redact)
    if isinstance(facts, NetworkFacts) and isinstance(job, NetworkJob):
        return network_report(facts, job, context)
    if isinstance(facts, ApplicationFacts) and not isinstance(job, NetworkJob):
        return application_report(facts, agent_fields, context)
    raise TypeError(f"a {job.kind} job returned {facts.kind} facts")


def switched_off_payload(
    job: Job, started_at: str, agent_fields: Iterable[Field], context: ReportContext
) -> ReportPayload:
    """Build the payload of a kind of report that the configuration disables."""
    if isinstance(job, NetworkJob):
        return switched_off_report(f"network reports are {SWITCHED_OFF}", started_at, job, context)
    line = f"application snapshots are {SWITCHED_OFF}"
    empty = ApplicationFacts(started_at=started_at, limitations=(line,))
    return application_report(empty, agent_fields, context)
