"""Findings that are new, resolved, or changed in severity between two reports."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Generic

from agent.presentation.changes.change import NOT_CHECKED, Change, change, differences
from agent.presentation.findings.rule import Facts, Rule, Values, match_rules
from agent.presentation.severity import SEVERITY_ORDER, Severity

_SUBJECT_PLACEHOLDERS: Final = (
    "printer", "queue", "program", "service", "mount", "drive", "device", "interface", "gateway",
    "address", "step", "mac",
)  # fmt: skip
"""Placeholders of a rule's sentence that identify the subject of a match. All other placeholders
stand for measured values."""
_NOT_COMPARED: Final = frozenset(
    {
        "printer-moved",
        "printer-unreachable",
        "printer-not-judged",
        "program-missing",
        "report-unfinished",
        "report-cut",
    }
)
"""Codes of the rules whose findings this module does not compare. The rules ``report-unfinished``
and ``report-cut`` are about the report itself. The other rules are about printers and programs,
which other modules of this package compare directly."""
_DEGREES: Final = {
    "disk-nearly-full": "disk-full",
    "drive-doubtful": "drive-failing",
    "print-queue-stopped": "print-queue-stuck",
    "certificate-expiring": "certificate-expired",
}
"""The rule for a mild degree of a problem, and the rule for its severe degree. If a problem moves
from one degree to the other, this is one change: worse or better."""


@dataclass(frozen=True, slots=True)
class Match(Generic[Facts]):
    """One match of a rule. ``subject`` identifies what the match is about, such as a printer."""

    rule: Rule[Facts]
    subject: str
    sentence: str


WasChecked = Callable[[Match[Facts]], bool]
"""Returns whether a report checked everything that it needed to detect the problem of a match."""


def finding_changes(
    rules: Iterable[Rule[Facts]],
    facts: tuple[Facts, Facts],
    was_checked: tuple[WasChecked[Facts], WasChecked[Facts]],
) -> list[Change]:
    """Compare the matches of the rules in the ``facts`` of two reports, the earlier one first.

    ``was_checked`` has a function for each of the two reports, in the same order.
    """
    rules = tuple(rules)
    before, after = (_matches(rules, facts_of_report) for facts_of_report in facts)
    return [
        _change_of(key, old, new, match, was_checked)
        for key, old, new in differences(before, after)
        # If both matches are of the same rule, only measured values differ: this is no change.
        if (match := new or old) and not (old and new and old.rule.code == new.rule.code)
    ]


def _matches(
    rules: tuple[Rule[Facts], ...], facts: Facts
) -> Mapping[tuple[str, str], Match[Facts]]:
    """Return the matches by rule and subject; of two degrees of a problem, the severe one."""
    matches: dict[tuple[str, str], Match[Facts]] = {}
    for rule, values_of_matches in match_rules(rules, facts):
        if rule.code not in _NOT_COMPARED:
            for values in values_of_matches:
                key = f"finding {_DEGREES.get(rule.code, rule.code)}", _subject(values)
                matches.setdefault(key, Match(rule, key[1], rule.sentence_of(values)))
    return matches


def _subject(values: Values) -> str:
    return next((values[name] for name in _SUBJECT_PLACEHOLDERS if name in values), "")


def _change_of(
    key: tuple[str, str],
    old: Match[Facts] | None,
    new: Match[Facts] | None,
    match: Match[Facts],
    was_checked: tuple[WasChecked[Facts], WasChecked[Facts]],
) -> Change:
    """Return a change. ``match`` is ``new``, or ``old`` if ``new`` is None."""
    severity: Severity = match.rule.severity
    if old is None:
        is_new = was_checked[0](match)
        label = "New" if is_new else "New, or not checked before"
        states = "" if is_new else NOT_CHECKED, match.sentence
    elif new is None:
        is_resolved = was_checked[1](match)
        label = "Resolved" if is_resolved else "Not checked this time"
        states = match.sentence, "" if is_resolved else NOT_CHECKED
        severity = "good" if is_resolved and severity != "muted" else "muted"
    else:
        is_worse = _rank(new) <= _rank(old)
        label, severity = ("Worse", severity) if is_worse else ("Better", "good")
        states = old.sentence, new.sentence
    return change(*key, states, severity, f"{label}: {match.sentence}")


def _rank(match: Match[Facts]) -> int:
    """Return the position of the match's severity. 0 is the most severe one."""
    return SEVERITY_ORDER.index(match.rule.severity)
