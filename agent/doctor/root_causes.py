"""Finds the root causes of results: a result that another check explains is marked as skipped."""

from collections.abc import Iterable
from dataclasses import replace

from agent.doctor.check import CheckResult


def cause_of(results: Iterable[CheckResult]) -> str | None:
    """Return the name of the check that failed; None if none did.

    If a result was skipped because of another check, return the name of that check.
    """
    for result in results:
        if result.because is not None and result.status != "unseen":
            return result.because
        if result.status == "fail":
            return result.name
    return None


def hidden_by(results: Iterable[CheckResult]) -> str | None:
    """Return the name of the first check that is "unseen". Return None if no check is "unseen".

    If another check made the first check "unseen", return the name of the other check.
    """
    return next(
        (result.because or result.name for result in results if result.status == "unseen"), None
    )


def mark_explained(results: tuple[CheckResult, ...]) -> tuple[CheckResult, ...]:
    """Return the results. A result that another check explains is marked as skipped.

    The other check has failed, or is a warning with ``may_cause``. Such a warning becomes a failure
    if it explains a failure.
    """
    for index in range(len(results)):
        effect = results[index]
        if effect.status not in {"warn", "fail"}:
            continue
        causes = {result.name for result in results if _is_cause(result)}
        if cause := next((name for name in effect.explained_by if name in causes), None):
            results = tuple(_with_cause(result, effect, cause) for result in results)
    return results


def _is_cause(result: CheckResult) -> bool:
    return result.status == "fail" or (result.status == "warn" and result.may_cause)


def _with_cause(result: CheckResult, effect: CheckResult, cause: str) -> CheckResult:
    """Return ``result``, updated because the check ``cause`` explains ``effect``."""
    if result.name == cause and effect.status == "fail":
        return replace(result, status="fail")
    if effect.name in (result.name, result.because):
        detail = f"because of {cause}"
        if result.name == effect.name:
            detail += f": {effect.detail}"
        return replace(result, status="skipped", detail=detail, fix="", because=cause)
    return result


def all_visible(results: Iterable[CheckResult]) -> bool:
    """Return whether this user can see every result."""
    return all(result.status != "unseen" for result in results)


def any_failed(results: Iterable[CheckResult]) -> bool:
    """Return whether a check failed. Warnings are not failures."""
    return any(result.status == "fail" for result in results)
