"""What a rule is: where it looks, from when on it is worth saying, and what to do then."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from agent.presentation.plain_text import NAME_LENGTH, plain, shorten
from agent.presentation.tone import Tone

Severity = Literal["problem", "warning", "note"]
"""Something does not work; something will not for long, or not well; something is to be known."""

SEVERITY_TONES: Final[Mapping[Severity, Tone]] = {
    "problem": "bad",
    "warning": "warn",
    "note": "muted",
}
SENTENCES_MAX: Final = 5
"""Things of one rule that have a sentence each; the rest is counted."""

Facts = TypeVar("Facts")
Sighting = Mapping[str, str]
"""What stands for the names in a rule's sentence."""

HERE: Final[tuple[Sighting, ...]] = ({},)
"""Seen once, with nothing to name."""


@dataclass(frozen=True, slots=True)
class Rule(Generic[Facts]):
    """``looks_at`` and ``when`` say in words, for the documentation, what ``see`` does.

    ``see`` gives the words of one sentence for each thing that the rule holds for. ``explained_by``
    names rules that, where they see something, are the cause of it: then this one is not shown.
    """

    code: str
    severity: Severity
    looks_at: str
    when: str
    sentence: str
    fix: str
    see: Callable[[Facts], Iterable[Sighting]]
    explained_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule saw: a sentence for each thing, and ``more`` that have none."""

    code: str
    severity: Severity
    sentences: tuple[str, ...]
    fix: str
    more: int = 0

    @property
    def count(self) -> int:
        return len(self.sentences) + self.more

    @property
    def advice(self) -> str:
        """Return what to do, as a sentence."""
        return f"{self.fix[:1].upper()}{self.fix[1:]}."

    @property
    def tone(self) -> Tone:
        return SEVERITY_TONES[self.severity]


def found_by(rule: Rule[Facts], facts: Facts) -> Finding | None:
    """Return what ``rule`` sees in ``facts``, in plain text; None where that is nothing."""
    seen = tuple(rule.see(facts))
    if not seen:
        return None
    shown = tuple(in_words(rule.sentence, words) for words in seen[:SENTENCES_MAX])
    return Finding(rule.code, rule.severity, shown, rule.fix, len(seen) - len(shown))


def in_words(sentence: str, words: Sighting) -> str:
    """Return a rule's sentence of one thing, in plain text."""
    return plain(sentence.format_map({k: shorten(v, NAME_LENGTH) for k, v in words.items()}))
