"""A change: one difference from the previous report."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from agent.presentation.humanize import with_more
from agent.presentation.plain_text import plain
from agent.presentation.severity import SEVERITY_ORDER, Severity
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import NetworkPayload
from agent.wire.payloads.watched_devices import parse_watched

NOT_CHECKED: Final = "not checked"
"""The state of a subject in a report that did not check it."""
LISTED_MAX: Final = 12
"""Maximum number of changes that are listed for users. Further changes are only counted."""

_NUMBERS: Final = re.compile(r"\d+")
Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Args:
        code: The kind of change.
        subject: Identifies what changed, such as a host or a printer. It does not depend on which
            report is the earlier one.
        before: The earlier state; "" if the subject did not exist, or `NOT_CHECKED` if the earlier
            report did not check the subject.
        after: The later state, in the same form.
        severity: bad or warn if the subject became worse, good if better, otherwise muted.
        sentence: Plain text.
    """

    code: str
    subject: str
    before: str
    after: str
    severity: Severity
    sentence: str


@dataclass(frozen=True, slots=True)
class Changes:
    """All differences between two reports.

    Args:
        since: The start time that the earlier report contains (ISO 8601).
        changes: The differences, most severe first.
        not_compared: Sentences about subjects that one of the reports did not check.
    """

    since: str
    changes: tuple[Change, ...]
    not_compared: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Return one sentence: the most severe change and the number of further changes."""
        if not self.changes:
            return "No change in what was compared." if self.not_compared else "Nothing changed."
        return with_more(self.changes[0].sentence, len(self.changes) - 1, "change")

    @property
    def severity(self) -> Severity:
        return self.changes[0].severity if self.changes else "muted"

    @property
    def listed(self) -> tuple[Change, ...]:
        return self.changes[:LISTED_MAX]

    @property
    def more(self) -> int:
        """Return how many changes are not `listed`."""
        return max(0, len(self.changes) - LISTED_MAX)


def change(
    code: str, subject: str, states: tuple[str, str], severity: Severity, sentence: str
) -> Change:
    """Create a change from the states before and after."""
    return Change(code, subject, *states, severity, plain(sentence))


def most_severe_first(changes: Iterable[Change]) -> tuple[Change, ...]:
    return tuple(sorted(changes, key=lambda change_: SEVERITY_ORDER.index(change_.severity)))


def differences(
    before: Mapping[Key, Value], after: Mapping[Key, Value]
) -> Iterator[tuple[Key, Value | None, Value | None]]:
    """Yield each key whose value changed, with both values; None for a missing key."""
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key), after.get(key)
        if old != new:
            yield key, old, new


def covers(
    one: NetworkPayload | ApplicationPayload, other: NetworkPayload | ApplicationPayload
) -> bool:
    """Return whether ``one`` checked everything that ``other`` checked.

    If it did, a subject that only ``other`` contains did not exist when ``one`` was created. A
    complete report covers every other report; a partial report covers none. A limited report covers
    ``other`` if each limitation of the limited report is a limitation of ``other`` as well. So
    reports can be compared on a machine with restricted rights, where every report is limited.
    """
    if one.completeness == "complete":
        return True
    return one.completeness == "limited" and _limits(one) <= _limits(other)


def _limits(payload: NetworkPayload | ApplicationPayload) -> frozenset[str]:
    """Return a report's limitations, without the lines about watched devices.

    Each number in a limitation is replaced by ``#``, because such numbers can vary.
    """
    if isinstance(payload, ApplicationPayload):
        inner_limitations = payload.snapshot.limitations
    else:
        inner_limitations = payload.network_map.limitations if payload.network_map else ()
    lines = (
        limitation
        for limitation in (*payload.limitations, *inner_limitations)
        if parse_watched(limitation) is None
    )
    return frozenset(_NUMBERS.sub("#", line) for line in lines)
