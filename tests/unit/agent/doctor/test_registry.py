"""Checks of doctor depend only on earlier checks. Each has a short name, a deadline and a fix."""

from agent.doctor.registry import CHECKS
from agent.doctor.runner import TOTAL_S


def test_checks_depend_only_on_earlier_checks() -> None:
    seen: set[str] = set()
    for check in CHECKS:
        assert {*check.depends_on, *check.after} <= seen, check.name
        seen.add(check.name)
    assert len(seen) == len(CHECKS)


def test_every_check_has_a_short_name_a_deadline_and_a_fix() -> None:
    for check in CHECKS:
        assert len(check.name) <= 15
        assert 0 < check.deadline_s < TOTAL_S <= 9.5
        assert check.fix
