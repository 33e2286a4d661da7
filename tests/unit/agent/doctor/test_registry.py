"""Tests that each of doctor's checks has a name, a deadline and a fix, and needs only earlier
checks.
"""

from agent.doctor.registry import CHECKS
from agent.doctor.runner import TOTAL_S


def test_checks_depend_only_on_earlier_checks() -> None:
    names: set[str] = set()
    for check in CHECKS:
        assert {*check.depends_on, *check.after} <= names, check.name
        names.add(check.name)
    assert len(names) == len(CHECKS)


def test_every_check_has_a_short_name_a_deadline_and_a_fix() -> None:
    # doctor has to end within 10 s (docs/cli.md), of which its start and end need a part.
    assert TOTAL_S <= 9.5
    for check in CHECKS:
        assert len(check.name) <= 15
        assert 0 < check.deadline_s < TOTAL_S
        assert check.fix
