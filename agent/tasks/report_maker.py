"""Makes jobs from the configuration, and sealed reports from facts.

Together with what it imports (payload models, the collector's facts) this costs some megabytes;
the idle daemon does without until the first report is wanted (`app.App`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

from agent.adapters.clock import Clock
from agent.adapters.storage.journal import Entry
from agent.config.model import LocalConfig, Printer
from agent.redaction.known import redact
from agent.redaction.userinfo import address_of
from agent.rules.reports.application import application_report
from agent.rules.reports.context import ReportContext, identity_of
from agent.rules.reports.network import network_report, outcome_of, switched_off_report
from agent.rules.reports.redacted_facts import redacted
from agent.rules.reports.sealing import Payload, Report, Sealed, seal
from agent.tasks.session.binding_state import BindingState
from agent.wire.payloads.common import Environment
from agent.wire.vocabulary import FailureReason, Kind, Outcome
from collectors.contract import (
    ApplicationFacts,
    ApplicationJob,
    ConfiguredPrinter,
    Facts,
    Field,
    Job,
    NetworkFacts,
    NetworkJob,
)

SWITCHED_OFF = "switched off in this machine's configuration"

AgentFields = Callable[[], Iterable[Field]]


def application_job(config: LocalConfig) -> ApplicationJob:
    """Return the bounds of an application snapshot as the configuration sets them."""
    return ApplicationJob(
        max_duration_s=config.application.max_duration_seconds,
        watch_processes=config.application.watch_processes,
        kiosk_debug_url=config.application.kiosk_debug_url,
        service_url="" if config.service is None else config.service.base_url,
    )


def network_job(config: LocalConfig) -> NetworkJob:
    """Return the bounds of a network report as the configuration sets them."""
    network = config.network
    return NetworkJob(
        ports=network.ports,
        max_hosts=network.max_hosts,
        max_services=network.max_services,
        max_duration_s=network.max_duration_seconds,
        subnets=network.subnets,
        exclude=network.exclude,
        mdns_service_types=network.mdns_service_types,
        printers=tuple(
            ConfiguredPrinter(p.id, p.name, p.transport, _address(p)) for p in config.printers
        ),
        device_only=network.device_only,
        enrich=network.enrich,
        snmp_community=network.snmp_community,
    )


def _address(printer: Printer) -> str | None:
    """Return where a printer is, without a password: a collector never sees a secret."""
    if printer.transport != "network" or printer.address is None:
        return printer.address
    return address_of(printer.address)


def payload_of(
    job: Job, facts: Facts, agent_fields: Iterable[Field], context: ReportContext
) -> Payload:
    """Build the payload of the kind that the facts are of, without any secret."""
    facts = redacted(facts, redact)
    if isinstance(facts, NetworkFacts) and isinstance(job, NetworkJob):
        return network_report(facts, job, context)
    if isinstance(facts, ApplicationFacts) and isinstance(job, ApplicationJob):
        return application_report(facts, agent_fields, context)
    raise TypeError(f"facts of the kind {facts.kind} came from a {job.kind} job")


@dataclass(frozen=True, slots=True)
class Draft:
    """What a report says, before it is one: of no request yet, and without an id of its own."""

    kind: Kind
    outcome: Outcome
    payload: Payload | None
    failure_reason: FailureReason | None = None


class ReportMaker:
    """Every report gets its id here, once; what is sealed never changes."""

    def __init__(
        self,
        *,
        config: LocalConfig,
        binding_state: BindingState,
        clock: Clock,
        environment: Environment,
        agent_fields: AgentFields,
    ) -> None:
        self._config = config
        self._binding_state = binding_state
        self._clock = clock
        self._environment = environment
        self._agent_fields = agent_fields

    def job(self, kind: Kind) -> Job | None:
        """Return the collector's job, or None when this kind is switched off."""
        if kind == "network":
            return network_job(self._config) if self._config.network.enabled else None
        return application_job(self._config) if self._config.application.enabled else None

    def finished(self, job: Job, facts: Facts) -> Draft:
        """Say what a collection found."""
        return _draft(job.kind, payload_of(job, facts, self._agent_fields(), self._context()))

    def switched_off(self, kind: Kind, started_at: datetime) -> Draft:
        """Answer for a kind that the configuration does not allow: a report that says so."""
        context = self._context()
        started = started_at.isoformat()
        if kind == "network":
            payload = switched_off_report(f"network reports are {SWITCHED_OFF}", started, context)
            return _draft(kind, payload)
        line = f"application snapshots are {SWITCHED_OFF}"
        empty = ApplicationFacts(started_at=started, limitations=(line,))
        return _draft(kind, application_report(empty, self._agent_fields(), context))

    def failed(self, kind: Kind) -> Draft:
        """Answer for a collection that told nothing at all."""
        return Draft(kind, "failed", None, "collection-failed")

    def interrupted(self, kind: Kind) -> Draft:
        """Answer for a collection that died with the agent once too often."""
        return Draft(kind, "failed", None, "execution-interrupted")

    def report(self, draft: Draft, entry: Entry | None) -> Report:
        """Make the report of a draft for one request; ``entry`` is None without a request."""
        report_id = uuid4()
        payload = draft.payload
        return Report(
            report_id=report_id,
            binding_id=self._binding_id(entry),
            kind=draft.kind,
            outcome=draft.outcome,
            payload=None
            if payload is None
            else payload.model_copy(update={"report_id": str(report_id)}),
            request_id=None if entry is None else entry.request_id,
            failure_reason=draft.failure_reason,
        )

    def seal(self, report: Report) -> Sealed:
        return seal(report, self._config.limits.max_report_bytes)

    def _binding_id(self, entry: Entry | None) -> UUID:
        if entry is not None:
            return entry.binding_id
        if self._binding_state.binding_id is None:
            raise RuntimeError("a report is made without a binding")
        return self._binding_state.binding_id

    def _context(self) -> ReportContext:
        binding = self._binding_state.binding
        return ReportContext(
            report_id=str(uuid4()),
            finished_at=self._clock.now().isoformat(),
            identity=identity_of(
                organization_id=None if binding is None else binding.organization_id,
                location_id=None if binding is None else binding.location_id,
                install_id=self._binding_state.record.legacy_install_id,
            ),
            environment=self._environment,
        )


def _draft(kind: Kind, payload: Payload) -> Draft:
    return Draft(kind, outcome_of(payload.completeness), payload)
