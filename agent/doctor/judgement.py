"""Root causes: which findings only repeat another, and what they all come to. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from agent.doctor.check import Outcome


def cause_of(outcomes: Iterable[Outcome]) -> str | None:
    """Return the check to blame when one of ``outcomes`` failed or was skipped for a cause."""
    for outcome in outcomes:
        if outcome.because is not None and outcome.status != "unseen":
            return outcome.because
        if outcome.status == "fail":
            return outcome.name
    return None


def hidden_by(outcomes: Iterable[Outcome]) -> str | None:
    """Return the check to name when one of ``outcomes`` is closed to this user."""
    return next((o.because or o.name for o in outcomes if o.status == "unseen"), None)


def explained(outcomes: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
    """Take back findings that another bad one explains, and blame that one for all of it.

    A warning that may be a cause becomes the failure when it is one.
    """
    for index in range(len(outcomes)):
        effect = outcomes[index]
        if effect.status not in {"warn", "fail"}:
            continue
        causes = {o.name for o in outcomes if _is_cause(o)}
        if cause := next((name for name in effect.explained_by if name in causes), None):
            outcomes = tuple(_blamed(o, effect, cause) for o in outcomes)
    return outcomes


def _is_cause(outcome: Outcome) -> bool:
    return outcome.status == "fail" or (outcome.status == "warn" and outcome.may_cause)


def _blamed(outcome: Outcome, effect: Outcome, cause: str) -> Outcome:
    if outcome.name == cause and effect.status == "fail":
        return replace(outcome, status="fail")
    if effect.name in (outcome.name, outcome.because):
        detail = f"because of {cause}"
        if outcome.name == effect.name:
            detail += f": {effect.detail}"
        return replace(outcome, status="skipped", detail=detail, fix="", because=cause)
    return outcome


def all_visible(outcomes: Iterable[Outcome]) -> bool:
    """Tell whether this user was shown everything."""
    return all(outcome.status != "unseen" for outcome in outcomes)


def none_failed(outcomes: Iterable[Outcome]) -> bool:
    """Tell whether nothing failed; warnings are no failure."""
    return all(outcome.status != "fail" for outcome in outcomes)
