"""An alert rule: a condition, its severity, and how long it must be active.

A rule that an organization sets replaces the default rule with the same name. At a location, a rule
of the location replaces the organization's rule with the same name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, get_args

from agent.wire.payloads.history import PATH_CAUSES

Condition = Literal[
    "offline", "broken", "site_outage", "finding", "incident", "version_older_than", "no_report_for"
]
Severity = Literal["info", "warning", "critical"]
CONDITIONS: Final[tuple[Condition, ...]] = get_args(Condition)
WITH_ARGUMENT_IN_NAME: Final = frozenset({"finding", "incident"})
"""Conditions for which an organization can have several rules, with different arguments."""
HOURS_MAX: Final = 24 * 365
"""Maximum argument of the condition ``no_report_for``."""
HOURS_DIGITS: Final = len(str(HOURS_MAX))


@dataclass(frozen=True, slots=True)
class Rule:
    """An alert rule.

    Attributes:
        argument: the id of a finding, the cause of an incident, a version, or a number of hours
            without a report. Empty for other conditions.
        fire_after: how long the condition is active before the alert fires. None means the duration
            that the operator has set.
        location_id: empty for a rule of the whole organization.
    """

    condition: Condition
    argument: str = ""
    severity: Severity = "warning"
    fire_after: timedelta | None = None
    is_enabled: bool = True
    location_id: str = ""

    @property
    def name(self) -> str:
        return name_of(self.condition, self.argument)


DEFAULT_RULES: Final[Mapping[str, Rule]] = {
    "offline": Rule("offline"),
    "broken": Rule("broken"),
    "site_outage": Rule("site_outage", severity="critical"),
}
"""The default rules by name. A rule that an organization sets replaces the one of the same name."""


def name_of(condition: str, argument: str) -> str:
    """Return the name of a rule, such as ``offline`` or ``finding:queue-stopped``."""
    return f"{condition}:{argument}" if condition in WITH_ARGUMENT_IN_NAME else condition


def parse_name(name: str) -> tuple[str, str]:
    """Split a rule's name into its condition and its argument, which can be empty."""
    condition, _, argument = name.partition(":")
    return condition, argument


def rules_at(rules: Iterable[Rule], location_id: str) -> dict[str, Rule]:
    """Return the enabled rules of a location by name.

    Args:
        rules: all rules that the organization of the location has set.
    """
    # The rules of the whole organization come first, so that rules of the location replace them.
    ordered_rules = sorted(rules, key=lambda rule: rule.location_id)
    by_name = dict(DEFAULT_RULES)
    by_name |= {rule.name: rule for rule in ordered_rules if rule.location_id in {"", location_id}}
    return {name: rule for name, rule in by_name.items() if rule.is_enabled}


def check_argument(condition: Condition, argument: str) -> None:
    """Raise ValueError, with a text for users, if the condition cannot have the argument."""
    if condition == "incident" and argument not in PATH_CAUSES:
        raise ValueError(
            f"must be one of {', '.join(PATH_CAUSES)}; for other faults, set a rule for a finding"
        )
    if condition == "finding" and not argument:
        raise ValueError("must be the id of a finding")
    if condition == "version_older_than" and not parse_version(argument):
        raise ValueError("must be a version such as 1.2.0")
    is_short_number = argument.isdecimal() and argument.isascii() and len(argument) <= HOURS_DIGITS
    if condition == "no_report_for" and not (is_short_number and 1 <= int(argument) <= HOURS_MAX):
        raise ValueError(f"must be a number of hours from 1 to {HOURS_MAX}")
    if condition in {"offline", "broken", "site_outage"} and argument:
        raise ValueError("must be empty for this condition")


def parse_version(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: (1, 2) for ``1.2rc1`` or ``1.2.0``.

    Zeros at the end are left out, so that ``1.2`` and ``1.2.0`` are equal. Returns () if the text
    does not begin with a number.
    """
    numbers: list[int] = []
    for part in text.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits[:9]))  # int() refuses thousands of digits
        if digits != part:
            break
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
