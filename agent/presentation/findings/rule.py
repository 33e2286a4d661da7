"""A rule detects one kind of problem in a report, and names what to do about it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Generic, TypeVar

from agent.presentation.plain_text import plain, shorten
from agent.presentation.severity import SEVERITY_ORDER, Severity

LABELS: Final[Mapping[Severity, str]] = {"bad": "problem", "warn": "warning", "muted": "note"}
"""Labels for users. "problem": something does not work. "warning": something works badly or will
fail soon. "note": for information."""
SENTENCES_MAX: Final = 5
"""Maximum number of a rule's matches that get a sentence each. Further matches are counted."""

Facts = TypeVar("Facts")
Values = Mapping[str, str]
"""Values for the placeholders in a rule's sentence."""
Detect = Callable[[Facts], Iterable[Values]]
"""Returns the values of each match."""

ONCE: Final[tuple[Values, ...]] = ({},)
"""The result of ``detect`` for one match of a rule without placeholders."""


@dataclass(frozen=True, slots=True)
class Rule(Generic[Facts]):
    """Base of the three kinds of rules, which differ in their severity.

    Args:
        fields: The fields that ``detect`` reads, for the documentation.
        condition: What ``detect`` checks, for the documentation.
        sentence: What is wrong, with placeholders for the values of one match.
        fix: What to do: an imperative without a full stop. It may have placeholders whose values
            are the same for all matches.
        explained_by: Codes of the rules that detect a cause of this problem. If one of them
            matches, this rule is left out.
    """

    severity: ClassVar[Severity]
    code: str
    fields: str
    condition: str
    sentence: str
    fix: str
    detect: Detect[Facts]
    explained_by: tuple[str, ...] = ()

    def sentence_of(self, values: Values) -> str:
        """Return the sentence of one match, in plain text."""
        return _fill_in(self.sentence, values)


class ProblemRule(Rule[Facts]):
    severity = "bad"


class WarningRule(Rule[Facts]):
    severity = "warn"


class NoteRule(Rule[Facts]):
    severity = "muted"


def _fill_in(text: str, values: Values) -> str:
    names = {name: shorten(value) for name, value in values.items()}
    return plain(text.format_map(names))


@dataclass(frozen=True, slots=True)
class Finding:
    """The matches of one rule.

    Each of the first `SENTENCES_MAX` matches has a sentence. ``more`` counts further matches.
    """

    code: str
    severity: Severity
    sentences: tuple[str, ...]
    fix: str
    more: int = 0

    @property
    def label(self) -> str:
        return LABELS[self.severity]

    @property
    def count(self) -> int:
        return len(self.sentences) + self.more

    @property
    def advice(self) -> str:
        """Return the fix as a sentence."""
        return f"{self.fix[:1].upper()}{self.fix[1:]}."


def match_rules(
    rules: Iterable[Rule[Facts]], facts: Facts
) -> list[tuple[Rule[Facts], tuple[Values, ...]]]:
    """Return the rules that match and their matches, most severe first.

    A rule is left out if a rule in its ``explained_by`` matches as well.
    """
    matches = [(rule, values) for rule in rules if (values := tuple(rule.detect(facts)))]
    codes = {rule.code for rule, _ in matches}
    matches = [match for match in matches if not codes.intersection(match[0].explained_by)]
    return sorted(matches, key=lambda match: SEVERITY_ORDER.index(match[0].severity))


def finding_of(rule: Rule[Facts], matches: tuple[Values, ...]) -> Finding:
    sentences = tuple(map(rule.sentence_of, matches[:SENTENCES_MAX]))
    fix = _fill_in(rule.fix, matches[0])
    return Finding(rule.code, rule.severity, sentences, fix, len(matches) - len(sentences))
