"""A fake of the collector process, for tests of the agent's tasks. A test sets the outcomes."""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from agent.adapters.collector_process import CollectedFacts, OnProgress
from agent.errors import CollectorError
from collectors.contract import ApplicationFacts, Facts, Job, NetworkFacts, Progress, SourceState

SUCCEEDED = SourceState("succeeded")


def good_facts(kind: str) -> Facts:
    """Return facts of a collection in which everything succeeded."""
    if kind == "application":
        return ApplicationFacts(started_at="2026-11-20T19:00:00+00:00")
    return NetworkFacts(
        scope="device",
        os_platform="linux",
        os_version="12",
        started_at="2026-11-20T19:00:00+00:00",
        printers=(),
        interfaces_source=SUCCEEDED,
        mdns_source=SUCCEEDED,
        scan_source=SUCCEEDED,
    )


@dataclass(slots=True)
class FakeCollectors:
    """Each run takes its outcome from ``script``. If ``script`` is empty, the run succeeds.

    ``jobs`` has the job of each run. If ``waits_for_release`` is True, no run ends before
    ``release`` is set. ``at_once`` is the number of current runs, and ``most_at_once`` is its
    maximum.
    """

    jobs: list[Job] = field(default_factory=list)
    script: deque[CollectedFacts | Exception] = field(default_factory=deque)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    waits_for_release: bool = False
    at_once: int = 0
    most_at_once: int = 0

    async def collect(
        self, job: Job, on_progress: OnProgress, cancel: asyncio.Event | None = None
    ) -> CollectedFacts:
        self.jobs.append(job)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            on_progress(Progress("disks", 1, 2))
            on_progress(Progress("ports", 3))
            await (self.release.wait() if self.waits_for_release else asyncio.sleep(0))
        finally:
            self.at_once -= 1
        outcome = self.script.popleft() if self.script else CollectedFacts(good_facts(job.kind))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def no_facts_error() -> CollectorError:
    return CollectorError("the collector sent no facts")
