"""What a change is: one thing that is otherwise than in the report before."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from agent.presentation.plain_text import plain
from agent.presentation.tone import Tone

NOT_LOOKED_AT: Final = "not looked at"
"""Stands for a state that a report does not tell because it did not look, or not as far."""
SHOWN_MAX: Final = 20
"""Changes that are listed where a person reads them; the rest is counted."""

_ORDER: Final[tuple[Tone, ...]] = ("bad", "warn", "good", "muted")


@dataclass(frozen=True, slots=True)
class Change:
    """``code`` and ``thing`` say what it is about, the same whichever report is the earlier.

    ``before`` and ``after`` are its two states, "" where it was not there, `NOT_LOOKED_AT` where
    nobody looked. ``tone`` is bad or warn for what became worse, good for what became better,
    muted for what only became otherwise. ``sentence`` is plain text.
    """

    code: str
    thing: str
    before: str
    after: str
    tone: Tone
    sentence: str


@dataclass(frozen=True, slots=True)
class Changes:
    """``since`` is when the earlier report was begun, an ISO 8601 date-time as it tells it.

    ``not_compared`` says in sentences what one of the two reports did not look at.
    """

    since: str
    changes: tuple[Change, ...]
    not_compared: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Return one sentence: what is worst, and how much more there is."""
        if not self.changes:
            return "Nothing that was compared changed." if self.not_compared else "Nothing changed."
        more = len(self.changes) - 1
        worst = self.changes[0].sentence
        return f"{worst} And {more} more change{'s'[: more != 1]}." if more else worst

    @property
    def tone(self) -> Tone:
        return self.changes[0].tone if self.changes else "muted"

    @property
    def shown(self) -> tuple[Change, ...]:
        return self.changes[:SHOWN_MAX]

    @property
    def more(self) -> int:
        """Return how many changes `shown` leaves out."""
        return max(0, len(self.changes) - SHOWN_MAX)


def change(code: str, thing: str, states: tuple[str, str], tone: Tone, sentence: str) -> Change:
    """Make a change of ``states``: before and after."""
    return Change(code, thing, *states, tone, plain(sentence))


def worst_first(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return them by tone; within one as they come."""
    return tuple(sorted(changes, key=lambda each: _ORDER.index(each.tone)))
