"""Runs checks beside each other, each within its deadline, all of them within the whole's.

A check may hang in a system call that nothing interrupts (a dead mount, a resolver), so each has
a thread of its own that is left behind when its time is up.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from agent.doctor.check import Check, CheckResult, Finding, fail, unseen
from agent.doctor.context import Context
from agent.doctor.judgement import cause_of, explained, hidden_by
from agent.errors import AgentError
from agent.redaction.known import redact, redactor

TOTAL_S: Final = 9.0
THREAD_PREFIX: Final = "check "
_FIX_NAMED: Final = "do what is named, then run doctor again"

OnResult = Callable[[CheckResult], None]


def run_checks(
    checks: Sequence[Check],
    context: Context,
    *,
    total_s: float = TOTAL_S,
    on_outcome: OnResult = lambda _: None,
    known: Sequence[CheckResult] = (),
) -> tuple[CheckResult, ...]:
    """Return the outcome of each check, in the order of ``checks``, after ``total_s`` at most.

    What is ``known`` from an earlier call is not looked at again.
    """
    results = _Runner(checks, context, total_s, on_outcome, known).run()
    return explained(tuple(results[check.name] for check in checks))


class _Runner:
    def __init__(
        self,
        checks: Sequence[Check],
        context: Context,
        total_s: float,
        on_outcome: OnResult,
        known: Sequence[CheckResult],
    ) -> None:
        self._done: dict[str, CheckResult] = {result.name: result for result in known}
        self._waiting = [check for check in checks if check.name not in self._done]
        self._running: dict[str, tuple[Check, float]] = {}
        self._context = context
        self._ends_at = time.monotonic() + total_s
        self._on_outcome = on_outcome
        self._findings: queue.SimpleQueue[tuple[str, Finding]] = queue.SimpleQueue()

    def run(self) -> dict[str, CheckResult]:
        while self._waiting or self._running:
            self._start_ready()
            if self._running:
                self._take_finding()
        return self._done

    def _start_ready(self) -> None:
        for check in tuple(self._waiting):
            if any(name not in self._done for name in (*check.depends_on, *check.after)):
                continue
            self._waiting.remove(check)
            needed = [self._done[name] for name in check.depends_on]
            if cause := cause_of(needed):
                self._end(check, Finding("skipped", f"because of {cause}"), 0.0, because=cause)
            elif not check.looks_from_outside and (cause := hidden_by(needed)):
                self._end(check, unseen(f"because of {cause}"), 0.0, because=cause)
            else:
                self._running[check.name] = (check, time.monotonic())
                threading.Thread(
                    target=self._run_check,
                    args=(check,),
                    name=THREAD_PREFIX + check.name,
                    daemon=True,
                ).start()

    def _run_check(self, check: Check) -> None:
        try:
            finding = check.run(self._context)
        except AgentError as error:
            finding = fail(str(error).replace("\n", "; "), _FIX_NAMED)
        except Exception as error:  # noqa: BLE001 - the runner's boundary: told as a finding
            finding = fail(f"the check broke: {type(error).__name__}: {error}", check.fix)
        self._findings.put((check.name, finding))

    def _take_finding(self) -> None:
        """Take one finding, or give up what has run out of time."""
        now = time.monotonic()
        limits = {name: self._limit(*running) for name, running in self._running.items()}
        try:
            name, finding = self._findings.get(timeout=max(0.0, min(limits.values()) - now))
        except queue.Empty:
            now = time.monotonic()
            for late in [name for name, limit in limits.items() if limit <= now]:
                check, began = self._running.pop(late)
                self._end(check, fail(f"no end after {now - began:.1f} s", check.fix), now - began)
            return
        if name in self._running:  # else it was given up before
            check, began = self._running.pop(name)
            self._end(check, finding, time.monotonic() - began)

    def _limit(self, check: Check, began: float) -> float:
        return min(began + check.deadline_s, self._ends_at)

    def _end(
        self, check: Check, finding: Finding, duration_s: float, because: str | None = None
    ) -> None:
        result = CheckResult(
            check.name, check.group, finding.status,
            redact(finding.detail), redactor().without_known(finding.fix),
            because, duration_s, finding.explained_by, finding.may_cause,
        )  # fmt: skip
        self._done[check.name] = result
        self._on_outcome(result)
