"""The problems that exist now (rules.health). Each change is logged once."""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from agent.adapters.clock import Clock
from agent.redaction.known import redact
from agent.rules.health import CONDITIONS, Problem, visible_problems
from agent.rules.reports.fit import clip

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class HealthBoard:
    """The current problems. ``on_change`` is called after each change."""

    clock: Clock
    on_change: Callable[[], None]
    _problems: dict[str, Problem] = field(default_factory=dict)

    def problems(self) -> tuple[Problem, ...]:
        """Return the current problems, except those that another problem causes."""
        return visible_problems(self._problems.values())

    def is_set(self, code: str) -> bool:
        return code in self._problems

    def set(self, code: str, detail: str) -> None:
        """Add the problem of the condition ``code`` (rules.health), or change its detail."""
        condition = CONDITIONS[code]
        detail = clip(redact(detail))  # the detail can contain text from the service
        problem = self._problems.get(code)
        if problem is not None and problem.detail == detail:
            return
        since = problem.since if problem else self.clock.now().isoformat(timespec="seconds")
        self._problems[code] = Problem(
            code=code,
            severity=condition.severity,
            title=condition.title,
            detail=detail,
            fix=condition.fix,
            since=since,
        )
        if problem is None:
            level = logging.ERROR if condition.severity == "error" else logging.WARNING
            log.log(level, "%s: %s (%s)", condition.title, detail, condition.fix)
        else:
            log.info("%s: now %s", condition.title, detail)
        self.on_change()

    def clear(self, codes: Collection[str]) -> None:
        """Remove the problems of these conditions."""
        resolved_codes = [code for code in codes if self._problems.pop(code, None) is not None]
        for code in resolved_codes:
            log.info("resolved: %s", CONDITIONS[code].title)
        if resolved_codes:
            self.on_change()
