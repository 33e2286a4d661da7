"""What follows from what: which findings only repeat another, and the verdict on the whole. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from agent.doctor.check import Outcome


def cause_of(outcomes: Iterable[Outcome]) -> str | None:
    """Return the check to blame when one of ``outcomes`` failed or was skipped for a cause."""
    for outcome in outcomes:
        if outcome.because is not None:
            return outcome.because
        if outcome.status == "fail":
            return outcome.name
    return None


def explained(outcomes: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
    """Take back findings that another bad one explains, and blame that one for all of it.

    A warning that may be a cause becomes the failure when it is one.
    """
    for outcome in outcomes:
        bad = {o.name for o in outcomes if o.status == "fail" or o.may_cause}
        cause = next((name for name in outcome.explained_by if name in bad), None)
        if cause is not None and outcome.status in {"warn", "fail"}:
            outcomes = tuple(_blamed(o, outcome, cause) for o in outcomes)
    return outcomes


def _blamed(outcome: Outcome, effect: Outcome, cause: str) -> Outcome:
    if outcome.name == cause and effect.status == "fail":
        return replace(outcome, status="fail")
    if effect.name in (outcome.name, outcome.because):
        detail = f"because of {cause}"
        if outcome.name == effect.name:
            detail += f": {effect.detail}"
        return replace(outcome, status="skipped", detail=detail, fix="", because=cause)
    return outcome


def is_well(outcomes: Iterable[Outcome]) -> bool:
    """Tell whether nothing failed; warnings are no failure."""
    return all(outcome.status != "fail" for outcome in outcomes)
