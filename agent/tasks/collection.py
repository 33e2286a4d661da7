"""One collection: runs the collector, and makes a report of its facts for each request.

This module imports the payload models and the collector's facts, which need some megabytes of
memory. Therefore the daemon does not import this module before its first report (`app.App`).
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import uuid4

from agent.adapters.clock import Clock
from agent.adapters.collector_process import CollectorProcess
from agent.adapters.storage.journal import Entry
from agent.adapters.storage.printer_memory import PrinterMemory
from agent.config.model import LocalConfig
from agent.errors import CollectorError
from agent.rules.learned_printers import RememberedPrinters, still_known, update_memory
from agent.rules.reports.context import ReportContext, identity_of
from agent.rules.reports.jobs import is_enabled, job_of
from agent.rules.reports.network import outcome_of
from agent.rules.reports.payload import payload_of, switched_off_payload
from agent.rules.reports.sealed_report import SealedReport
from agent.rules.reports.sealing import LAST_TIER, seal
from agent.tasks.health_board import HealthBoard
from agent.tasks.session.binding_state import BindingState
from agent.wire.device_operations import SubmitResultRequest
from agent.wire.payloads.by_kind import ReportPayload
from agent.wire.payloads.common import Environment
from agent.wire.vocabulary import FailureReason, Kind, Outcome
from collectors.contract import Facts, Field, Job, NetworkFacts, NetworkJob, Progress

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CollectionResult:
    """The content of a report, which can answer many requests.

    ``was_run`` is False if the configuration disables the kind.
    """

    kind: Kind
    outcome: Outcome
    payload: ReportPayload | None = None
    failure_reason: FailureReason | None = None
    was_run: bool = True


@dataclass(kw_only=True, slots=True, eq=False)
class Collection:
    """Runs collections and makes their reports.

    Args:
        agent_fields: returns the daemon's facts about itself.
        on_activity: is called with a short description of the current activity.
    """

    config: LocalConfig
    binding_state: BindingState
    environment: Environment
    agent_fields: Callable[[], Iterable[Field]]
    collectors: CollectorProcess
    memory: PrinterMemory
    health: HealthBoard
    clock: Clock
    on_activity: Callable[[str], None]

    async def collect(self, kind: Kind) -> CollectionResult:
        """Collect the facts of ``kind``. A failed collection also returns a result."""
        job = job_of(self.config, kind)
        if not is_enabled(self.config, kind):
            started_at = self.clock.now().isoformat()
            payload = switched_off_payload(job, started_at, self.agent_fields(), self._context())
            return CollectionResult(kind, outcome_of(payload.completeness), payload, was_run=False)
        job, limitation = with_memory(job, self.memory.load, self.clock.now())
        self.on_activity(f"collecting {kind}")
        try:
            result = await self.collectors.collect(job, self._show_progress)
        except CollectorError as error:
            self.health.set("collector-failed", f"{kind}: {error}")
            return CollectionResult(kind, "failed", failure_reason="collection-failed")
        if result.error is not None:
            self.health.set("collector-failed", f"{kind}: {result.error}")
        else:
            self.health.clear({"collector-failed"})
            self._remember(result.facts)
        facts = with_limitation(result.facts, limitation)
        payload = payload_of(job, facts, self.agent_fields(), self._context())
        return CollectionResult(kind, outcome_of(payload.completeness), payload)

    def interrupted_report(self, entry: Entry) -> SealedReport:
        """Return a failed report for a request whose collection ended with a crash of the agent."""
        result = CollectionResult(entry.kind, "failed", failure_reason="execution-interrupted")
        return self.report(result, entry)

    def report(self, result: CollectionResult, entry: Entry | None) -> SealedReport:
        """Make the report for one request. ``entry`` is None for a scheduled report.

        Each call creates a new report id.
        """
        binding_id = self.binding_state.binding_id if entry is None else entry.binding_id
        if binding_id is None:
            raise RuntimeError("a report needs a binding")
        report_id, payload = uuid4(), result.payload
        if payload is not None:
            payload = payload.model_copy(update={"report_id": str(report_id)})
        request = SubmitResultRequest(
            binding_id=binding_id,
            report_id=report_id,
            kind=result.kind,
            outcome=result.outcome,
            request_id=None if entry is None else entry.request_id,
            report=payload,
            failure_reason=result.failure_reason,
        )
        max_bytes = self.config.limits.max_report_bytes
        report = seal(request, max_bytes)
        if payload is not None and report.tier == LAST_TIER:
            log.warning(
                "the %s report is larger than limits.max_report_bytes (%d) even without most of its"
                " content: a failed report is sent instead; raise this limit",
                result.kind,
                max_bytes,
            )
        return report

    def _remember(self, facts: Facts) -> None:
        """Update the stored details of printers and watched devices from ``facts``."""
        if isinstance(facts, NetworkFacts) or facts.learned or facts.strangers:
            # The memory is loaded again: a user can remove a printer from it during a collection.
            memory, _ = self.memory.load()
            updated_memory = update_memory(memory, facts, self.clock.now())
            if updated_memory != memory:
                self.memory.write(updated_memory)

    def _show_progress(self, progress: Progress) -> None:
        total_text = "" if progress.total is None else f" of {progress.total}"
        self.on_activity(f"collecting: {progress.step} {progress.done}{total_text}")

    def _context(self) -> ReportContext:
        install_id = self.binding_state.record.legacy_install_id
        return ReportContext(
            report_id=str(uuid4()),
            finished_at=self.clock.now().isoformat(),
            identity=identity_of(self.binding_state.binding, install_id),
            environment=self.environment,
        )


def with_memory(
    job: Job, read_memory: Callable[[], tuple[RememberedPrinters, str | None]], now: datetime
) -> tuple[Job, str | None]:
    """Add the details of printers and devices from earlier reports to a job.

    Returns the job, and a limitation if the stored details cannot be read.
    """
    if not isinstance(job, NetworkJob) and not job.devices:
        return job, None
    memory, limitation = read_memory()
    return replace(job, learned=still_known(memory.printers, now)), limitation


def with_limitation(facts: Facts, limitation: str | None) -> Facts:
    """Return ``facts`` with ``limitation`` added, unless it is None."""
    if limitation is None:
        return facts
    return replace(facts, limitations=(*facts.limitations, limitation))
