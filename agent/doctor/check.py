"""A check: a name, its dependencies, and a function that returns an outcome.

A check whose dependency failed is not run. An outcome may name checks that explain it. If one of
them failed as well, only the explaining check is shown as a problem. Each problem has a fix.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from agent.doctor.context import Context
from agent.errors import AgentError

Status = Literal["ok", "warn", "fail", "skipped", "unseen"]
Group = Literal["configuration", "this machine", "the agent", "network", "service", "application"]

DEADLINE_S: Final = 4.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check returns.

    Args:
        detail: What is wrong, or the normal state.
        fix: What to do; empty if nothing is to be done.
        explained_by: Names of other checks. If one of them failed, it is the cause of the outcome.
        may_cause: Whether this warning can be the cause of another check's failure. A warning that
            is the cause of a failure becomes a failure itself.
        facts: Values for fields of `Context`, by the field's name. The runner stores them for the
            checks that depend on this check.
    """

    status: Status
    detail: str
    fix: str = ""
    explained_by: tuple[str, ...] = ()
    may_cause: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def with_facts(self, **facts: Any) -> "Outcome":
        return replace(self, facts=facts)


@dataclass(frozen=True, slots=True)
class Check:
    """A check.

    Args:
        group: The heading under which the check is listed.
        run: May block for ``deadline_s``; after that the check counts as failed.
        depends_on: Checks that must not have failed. If the outcome of one of them is "unseen",
            this check is not run, and its outcome is "unseen" as well. A check with
            ``uses_public_facts`` is run nevertheless.
        after: Checks that must have ended, whatever their outcome.
        fix: What to do if ``run`` hangs or raises. If it returns, the fix of its outcome is used.
        uses_public_facts: Whether ``run`` also works with only the facts that every user can see.
    """

    name: str
    group: Group
    run: Callable[[Context], Outcome]
    depends_on: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    fix: str = (
        "run `venue-agent doctor` again; if the problem persists, give support the file that"
        " `venue-agent doctor --bundle FILE.zip` writes"
    )
    deadline_s: float = DEADLINE_S
    uses_public_facts: bool = False


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check. ``because`` names the check that explains this result, if any."""

    name: str
    group: Group
    status: Status
    detail: str
    fix: str = ""
    because: str | None = None
    duration_s: float = 0.0
    explained_by: tuple[str, ...] = ()
    may_cause: bool = False


def ok(detail: str) -> Outcome:
    return Outcome("ok", detail)


def warn(
    detail: str, fix: str, *, explained_by: tuple[str, ...] = (), may_cause: bool = False
) -> Outcome:
    return Outcome("warn", detail, fix, explained_by, may_cause)


def fail(detail: str, fix: str, *, explained_by: tuple[str, ...] = ()) -> Outcome:
    return Outcome("fail", detail, fix, explained_by)


def fail_by(error: AgentError) -> Outcome:
    """Return the failure that an error of the agent describes."""
    fix = "fix the named problem, then run doctor again"
    return fail(str(error).replace("\n", "; "), fix)


def unseen(detail: str) -> Outcome:
    """Return the outcome "unseen": this user is not permitted to see what the check examines."""
    return Outcome("unseen", f"not visible to you: {detail}")


def skipped(detail: str) -> Outcome:
    """Return the outcome of a check that does not apply. Checks that depend on it are run."""
    return Outcome("skipped", detail)
