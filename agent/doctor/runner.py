"""Runs checks in parallel. Each check has its own deadline, and all of them have a common one.

A check can hang in a system call that cannot be interrupted, such as access to an unreachable
network disk, or a name look-up. Therefore each check has its own thread, which is abandoned after
the deadline.
"""

import queue
import threading
import time
from collections.abc import Sequence
from typing import Final

from agent.doctor.check import Check, CheckResult, Outcome, fail, fail_by, unseen
from agent.doctor.context import Context
from agent.doctor.root_causes import cause_of, hidden_by, mark_explained
from agent.errors import AgentError
from agent.redaction.known import redact, redactor

TOTAL_S: Final = 9.0
THREAD_PREFIX: Final = "check "


def run_checks(
    checks: Sequence[Check],
    context: Context,
    *,
    total_s: float = TOTAL_S,
    known_results: Sequence[CheckResult] = (),
) -> tuple[CheckResult, ...]:
    """Return the result of each check, in the order of ``checks``, within ``total_s``.

    Checks with a result in ``known_results``, from an earlier call, are not run again.
    """
    results = _Runner(checks, context, total_s, known_results).run()
    return mark_explained(tuple(results[check.name] for check in checks))


class _Runner:
    def __init__(
        self,
        checks: Sequence[Check],
        context: Context,
        total_s: float,
        known_results: Sequence[CheckResult],
    ) -> None:
        self._results: dict[str, CheckResult] = {result.name: result for result in known_results}
        self._waiting = [check for check in checks if check.name not in self._results]
        self._running: dict[str, tuple[Check, float]] = {}
        self._context = context
        self._ends_at = time.monotonic() + total_s
        self._outcomes: queue.SimpleQueue[tuple[str, Outcome]] = queue.SimpleQueue()

    def run(self) -> dict[str, CheckResult]:
        while self._waiting or self._running:
            self._start_ready()
            if self._running:
                self._wait_for_outcome()
        return self._results

    def _start_ready(self) -> None:
        for check in tuple(self._waiting):
            if any(name not in self._results for name in (*check.depends_on, *check.after)):
                continue
            self._waiting.remove(check)
            prerequisites = [self._results[name] for name in check.depends_on]
            if cause := cause_of(prerequisites):
                self._end(check, Outcome("skipped", f"because of {cause}"), 0.0, because=cause)
            elif not check.uses_public_facts and (cause := hidden_by(prerequisites)):
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
            outcome = check.run(self._context)
        except AgentError as error:
            outcome = fail_by(error)
        except Exception as error:  # noqa: BLE001 - the runner's boundary: reported as an outcome
            outcome = fail(f"the check raised {type(error).__name__}: {error}", check.fix)
        self._outcomes.put((check.name, outcome))

    def _wait_for_outcome(self) -> None:
        """Wait for one outcome. If none arrives in time, fail the checks past their deadline."""
        now = time.monotonic()
        deadlines = {
            name: min(start_s + check.deadline_s, self._ends_at)
            for name, (check, start_s) in self._running.items()
        }
        try:
            name, outcome = self._outcomes.get(timeout=max(0.0, min(deadlines.values()) - now))
        except queue.Empty:
            now = time.monotonic()
            for late_name in [name for name, ends_at in deadlines.items() if ends_at <= now]:
                check, start_s = self._running.pop(late_name)
                self._end(
                    check, fail(f"no result after {now - start_s:.1f} s", check.fix), now - start_s
                )
            return
        if name in self._running:  # otherwise the check exceeded its deadline and has a result
            check, start_s = self._running.pop(name)
            self._end(check, outcome, time.monotonic() - start_s)

    def _end(
        self, check: Check, outcome: Outcome, duration_s: float, because: str | None = None
    ) -> None:
        result = CheckResult(
            check.name, check.group, outcome.status,
            redact(outcome.detail), redactor().mask_known(outcome.fix),
            because, duration_s, outcome.explained_by, outcome.may_cause,
        )  # fmt: skip
        self._context.add(outcome.facts)
        self._results[check.name] = result
