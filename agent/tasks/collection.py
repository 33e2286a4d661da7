"""One collection from job to sealed report: the child is run, its facts become a payload."""

from collections.abc import Callable
from dataclasses import dataclass

from agent.adapters.clock import Clock
from agent.adapters.collector_process import CollectorProcess
from agent.adapters.journal import Entry
from agent.errors import CollectorError
from agent.rules.sealing import Report, Sealed
from agent.tasks.health_board import HealthBoard
from agent.tasks.report_maker import ReportMaker
from agent.wire.vocabulary import Kind
from collectors.contract import Progress


@dataclass(frozen=True, slots=True)
class Finished:
    """A report and its seal, ready for the outbox."""

    report: Report
    sealed: Sealed


class Collection:
    """``on_activity`` is told in a few words what is being done."""

    def __init__(
        self,
        *,
        collectors: CollectorProcess,
        maker: ReportMaker,
        health: HealthBoard,
        clock: Clock,
        on_activity: Callable[[str], None],
    ) -> None:
        self._collectors = collectors
        self._maker = maker
        self._health = health
        self._clock = clock
        self._on_activity = on_activity

    async def run(self, kind: Kind, entry: Entry | None) -> Finished:
        """Collect and report; ``entry`` is None for a report without a request.

        However the collection goes, there is a report.
        """
        return self._seal(await self._report(kind, entry))

    def interrupted(self, entry: Entry) -> Finished:
        """Report that the collection died with the agent once too often."""
        return self._seal(self._maker.interrupted(entry))

    async def _report(self, kind: Kind, entry: Entry | None) -> Report:
        job = self._maker.job(kind)
        if job is None:
            return self._maker.switched_off(kind, self._clock.now(), entry)
        self._on_activity(f"collecting {kind}")
        try:
            collected = await self._collectors.collect(job, self._note)
        except CollectorError as error:
            self._health.report("collector-failed", f"{kind}: {error}")
            return self._maker.failed(kind, entry)
        if collected.error is not None:
            self._health.report("collector-failed", f"{kind}: {collected.error}")
        else:
            self._health.clear({"collector-failed"})
        return self._maker.finished(job, collected.facts, entry)

    def _note(self, progress: Progress) -> None:
        of = "" if progress.total is None else f" of {progress.total}"
        self._on_activity(f"collecting: {progress.step} {progress.done}{of}")

    def _seal(self, report: Report) -> Finished:
        return Finished(report, self._maker.seal(report))
