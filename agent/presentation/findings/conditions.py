"""Conditions on fields of the snapshot that several rules use.

Each function returns a function for `Rule.detect`, which matches if the condition holds.
"""

from collections.abc import Callable, Iterator

from agent.presentation.findings.rule import ONCE, Detect, Values
from agent.presentation.findings.snapshot_facts import Fields, SnapshotFacts
from agent.presentation.humanize import format_bytes


def once_if(condition: Callable[[Fields], bool | None]) -> Detect[SnapshotFacts]:
    """Match once if the condition holds for the machine's fields."""
    return lambda facts: ONCE if condition(facts.machine) else ()


def if_flag(key: str, expected: bool) -> Detect[SnapshotFacts]:
    return once_if(lambda machine: machine.flag(key) is expected)


def if_text(key: str, expected: str) -> Detect[SnapshotFacts]:
    return once_if(lambda machine: machine.text(key) == expected)


def at_least(
    key: str, limit: float, name: str, describe: Callable[[float], str]
) -> Detect[SnapshotFacts]:
    """Match if a number reaches the limit.

    In the rule's sentence, the result of ``describe`` replaces the placeholder ``name``.
    """

    def detect(facts: SnapshotFacts) -> Iterator[Values]:
        number = facts.machine.number(key)
        if number is not None and number >= limit:
            yield {name: describe(number)}

    return detect


def used_at_least(used_key: str, limit_key: str, share: float) -> Detect[SnapshotFacts]:
    """Match if a number of bytes reaches a share of its limit."""

    def detect(facts: SnapshotFacts) -> Iterator[Values]:
        used, limit = facts.machine.number(used_key), facts.machine.number(limit_key)
        if used is not None and limit and used / limit >= share:
            yield {"used": format_bytes(used), "limit": format_bytes(limit)}

    return detect
