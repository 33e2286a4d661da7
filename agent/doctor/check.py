"""What a check is: a name, what it depends on, and a function that looks and says what it found.

Three things keep the answer short. A check whose dependency failed is not run. A finding may name
other checks that would explain it; where one of those is bad too, only that one is named. And a
finding always carries what to do about it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from agent.doctor.context import Context

Status = Literal["ok", "warn", "fail", "skipped", "unseen"]
Group = Literal["configuration", "this machine", "the agent", "network", "service", "application"]

DEADLINE_S: Final = 4.0


@dataclass(frozen=True, slots=True)
class Finding:
    """``explained_by`` names checks that, if they are bad, are the cause of this.

    ``may_cause`` marks a warning that is harmless by itself, and a failure if it explains one.
    """

    status: Status
    detail: str
    fix: str = ""
    explained_by: tuple[str, ...] = ()
    may_cause: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """``run`` may block for ``deadline_s``; what takes longer counts as failed.

    ``depends_on`` names checks that must not have failed, ``after`` those that must have ended,
    good or bad. What they could not see this one cannot see either, unless it
    ``looks_from_outside``. ``fix`` is for a check that hangs or breaks: else the finding has its
    own.
    """

    name: str
    group: Group
    run: Callable[[Context], Finding]
    depends_on: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    fix: str = "run `venue-agent doctor` again; if it persists, send the bundle to support"
    deadline_s: float = DEADLINE_S
    looks_from_outside: bool = False


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A check and what came of it. ``because`` is the check that made it needless to ask."""

    name: str
    group: Group
    status: Status
    detail: str
    fix: str = ""
    because: str | None = None
    duration_s: float = 0.0
    explained_by: tuple[str, ...] = ()
    may_cause: bool = False


def ok(detail: str) -> Finding:
    return Finding("ok", detail)


def warn(
    detail: str, fix: str, *, explained_by: tuple[str, ...] = (), may_cause: bool = False
) -> Finding:
    return Finding("warn", detail, fix, explained_by, may_cause)


def fail(detail: str, fix: str, *, explained_by: tuple[str, ...] = ()) -> Finding:
    return Finding("fail", detail, fix, explained_by)


def unseen(detail: str) -> Finding:
    """Closed to this user: neither good nor bad may be said of it."""
    return Finding("unseen", f"not visible to you: {detail}")


def skipped(detail: str) -> Finding:
    """Not applicable here; what depends on it goes on."""
    return Finding("skipped", detail)
