"""One collection: the child is run, and its facts answer one request or many."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from agent.adapters.clock import Clock
from agent.adapters.collector_process import CollectorProcess
from agent.adapters.storage.journal import Entry
from agent.adapters.storage.printer_memory import PrinterMemory
from agent.errors import CollectorError
from agent.rules.learned_printers import Memory, still_known, updated
from agent.rules.reports.sealing import Report, Sealed
from agent.tasks.health_board import HealthBoard
from agent.tasks.report_maker import Draft, ReportMaker
from agent.wire.vocabulary import Kind
from collectors.contract import Facts, Job, NetworkFacts, NetworkJob, Progress


@dataclass(frozen=True, slots=True)
class Finished:
    """A report and its seal, ready for the outbox."""

    report: Report
    sealed: Sealed


@dataclass(frozen=True, slots=True)
class CollectionResult:
    """What one collection came to. ``was_run`` is False where the kind is switched off."""

    draft: Draft
    was_run: bool
    maker: ReportMaker

    def answer(self, entry: Entry | None) -> Finished:
        """Make and seal the report for one request; ``entry`` is None for the schedule's."""
        report = self.maker.report(self.draft, entry)
        return Finished(report, self.maker.seal(report))


class Collection:
    """``on_activity`` is told in a few words what is being done."""

    def __init__(
        self,
        *,
        collectors: CollectorProcess,
        maker: ReportMaker,
        memory: PrinterMemory,
        health: HealthBoard,
        clock: Clock,
        on_activity: Callable[[str], None],
    ) -> None:
        self._collectors = collectors
        self._maker = maker
        self._memory = memory
        self._health = health
        self._clock = clock
        self._on_activity = on_activity

    async def gather(self, kind: Kind) -> CollectionResult:
        """Collect. However the collection goes, there is something to report."""
        job = self._maker.job(kind)
        if job is None:
            return self._gathered(self._maker.switched_off(kind, self._clock.now()), was_run=False)
        job, limitation = with_memory(job, self._memory.load, self._clock.now())
        self._on_activity(f"collecting {kind}")
        try:
            collected = await self._collectors.collect(job, self._note)
        except CollectorError as error:
            self._health.set("collector-failed", f"{kind}: {error}")
            return self._gathered(self._maker.failed(kind))
        if collected.error is not None:
            self._health.set("collector-failed", f"{kind}: {collected.error}")
        else:
            self._health.clear({"collector-failed"})
            self._remember(collected.facts)
        facts = with_limitation(collected.facts, limitation)
        return self._gathered(self._maker.finished(job, facts))

    def interrupted(self, entry: Entry) -> Finished:
        """Report that the collection died with the agent once too often."""
        return self._gathered(self._maker.interrupted(entry.kind)).answer(entry)

    def _remember(self, facts: Facts) -> None:
        """Keep what a whole collection has learned of the printers."""
        if isinstance(facts, NetworkFacts):
            # Read anew: somebody may have had a printer forgotten in the meantime.
            known, _ = self._memory.load()
            learned = updated(known, facts, self._clock.now())
            if learned != known:
                self._memory.write(learned)

    def _gathered(self, draft: Draft, *, was_run: bool = True) -> CollectionResult:
        return CollectionResult(draft, was_run, self._maker)

    def _note(self, progress: Progress) -> None:
        of = "" if progress.total is None else f" of {progress.total}"
        self._on_activity(f"collecting: {progress.step} {progress.done}{of}")


def with_memory(
    job: Job, read: Callable[[], tuple[Memory, str | None]], now: datetime
) -> tuple[Job, str | None]:
    """Give a network job what earlier reports learned, or say in words why it has none of it."""
    if not isinstance(job, NetworkJob):
        return job, None
    memory, limitation = read()
    return replace(job, learned=still_known(memory.printers, now)), limitation


def with_limitation(facts: Facts, limitation: str | None) -> Facts:
    return replace(facts, limitations=(*facts.limitations, *filter(None, (limitation,))))
