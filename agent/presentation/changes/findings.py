"""Findings that came and went: what the rules see in one report and not in the other."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Generic

from agent.presentation.changes.change import NOT_LOOKED_AT, Change, change
from agent.presentation.findings.rule import (
    SEVERITY_TONES,
    Facts,
    Rule,
    Severity,
    Sighting,
    in_words,
)

_NAMES: Final = (
    "printer", "queue", "program", "service", "mount", "drive", "device", "interface", "gateway",
    "address", "what", "mac",
)  # fmt: skip
"""Words of a rule's sentence that say which thing it is about; the others are measured."""
_TOLD_OTHERWISE: Final = frozenset(
    {
        "printer-moved",
        "printer-unreachable",
        "printer-not-judged",
        "program-missing",
        "report-unfinished",
        "report-cut",
    }
)
"""Rules whose subject is compared itself, or that judge the report rather than the place."""
_DEGREES: Final = {
    "disk-nearly-full": "disk-full",
    "drive-doubtful": "drive-failing",
    "print-queue-stopped": "print-queue-stuck",
    "certificate-expiring": "certificate-expired",
}
"""Rules that see less of what another sees: where one follows the other, that is one change."""
_WORST_FIRST: Final[tuple[Severity, ...]] = ("problem", "warning", "note")


@dataclass(frozen=True, slots=True)
class Seen(Generic[Facts]):
    """One thing that a rule sees."""

    rule: Rule[Facts]
    thing: str
    sentence: str


WasLookedAt = Callable[[Seen[Facts]], bool]
"""Tells whether a report would have seen this, were it so there."""


def finding_changes(
    rules: Iterable[Rule[Facts]],
    facts: tuple[Facts, Facts],
    was_looked_at: tuple[WasLookedAt[Facts], WasLookedAt[Facts]],
) -> list[Change]:
    """Compare what the rules see in the ``facts`` of the two reports, the earlier first."""
    rules = tuple(rules)
    before, after = (_seen(rules, each) for each in facts)
    looked_before, looked_after = was_looked_at
    found = [_gone(each, looked_after(each)) for key, each in before.items() if key not in after]
    found += [_new(each, looked_before(each)) for key, each in after.items() if key not in before]
    found += [
        _other(before[key], each)
        for key, each in after.items()
        if key in before and each.rule.code != before[key].rule.code
    ]
    return found


def _seen(rules: tuple[Rule[Facts], ...], facts: Facts) -> Mapping[tuple[str, str], Seen[Facts]]:
    """Return what the rules see, by rule and thing, but for what another of them explains."""
    found = [(rule, words) for rule in rules for words in rule.see(facts)]
    codes = {rule.code for rule, _ in found}
    found.sort(key=lambda each: _WORST_FIRST.index(each[0].severity))
    seen: dict[tuple[str, str], Seen[Facts]] = {}
    for rule, words in found:
        if rule.code not in _TOLD_OTHERWISE and not codes.intersection(rule.explained_by):
            one = Seen(rule, _thing(words), in_words(rule.sentence, words))
            seen.setdefault(_key(one), one)
    return seen


def _thing(words: Sighting) -> str:
    return next((words[name] for name in _NAMES if name in words), "")


def _key(seen: Seen[Facts]) -> tuple[str, str]:
    return f"finding {_DEGREES.get(seen.rule.code, seen.rule.code)}", seen.thing


def _new(seen: Seen[Facts], was_looked_at: bool) -> Change:
    before = "" if was_looked_at else NOT_LOOKED_AT
    words = "New" if was_looked_at else "New, or not looked at before"
    tone = SEVERITY_TONES[seen.rule.severity]
    return change(*_key(seen), (before, seen.sentence), tone, f"{words}: {seen.sentence}")


def _gone(seen: Seen[Facts], was_looked_at: bool) -> Change:
    if not was_looked_at:
        states = seen.sentence, NOT_LOOKED_AT
        return change(*_key(seen), states, "muted", f"Not looked at this time: {seen.sentence}")
    tone = SEVERITY_TONES[seen.rule.severity]
    return change(
        *_key(seen),
        (seen.sentence, ""),
        "muted" if tone == "muted" else "good",
        f"No longer: {seen.sentence}",
    )


def _other(before: Seen[Facts], after: Seen[Facts]) -> Change:
    """Return that a thing is in another degree of the same trouble."""
    states = before.sentence, after.sentence
    if _rank(after) <= _rank(before):
        tone = SEVERITY_TONES[after.rule.severity]
        return change(*_key(after), states, tone, f"Worse: {after.sentence}")
    return change(*_key(after), states, "good", f"Better: {after.sentence}")


def _rank(seen: Seen[Facts]) -> int:
    return _WORST_FIRST.index(seen.rule.severity)
