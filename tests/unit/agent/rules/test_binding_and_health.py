from uuid import UUID

import pytest

from agent.rules.binding import BindingVerdict, compare_bindings
from agent.rules.health import CONDITIONS, Problem, visible_problems
from agent.wire.device_operations import EnrollmentRecord

OWN_ID, OTHER_ID = UUID(int=1), UUID(int=2)


def record(instance: UUID, binding: UUID) -> EnrollmentRecord:
    return EnrollmentRecord(
        instance_id=instance,
        location_id="loc-0001",
        legacy_install_id="install-1",
        app_version=None,
        capabilities=(),
        binding_id=binding,
        organization_id="org-0001",
    )


@pytest.mark.parametrize(
    ("current", "verdict"),
    [
        (None, BindingVerdict.GONE),
        (record(OWN_ID, OWN_ID), BindingVerdict.KEEP),
        (record(OWN_ID, OTHER_ID), BindingVerdict.ADOPT),
        (record(OTHER_ID, OWN_ID), BindingVerdict.SHARED),
        (record(OTHER_ID, OTHER_ID), BindingVerdict.SHARED),
    ],
)
def test_the_reply_to_current_determines_the_verdict_on_the_binding(
    current: EnrollmentRecord | None, verdict: BindingVerdict
) -> None:
    assert compare_bindings(current, record(OWN_ID, OWN_ID)) is verdict


def problem(code: str) -> Problem:
    condition = CONDITIONS[code]
    return Problem(
        code=code,
        severity=condition.severity,
        title=condition.title,
        detail="seen",
        fix=condition.fix,
        since="2026-11-20T19:00:00+00:00",
    )


def visible_codes(*codes: str) -> set[str]:
    return {p.code for p in visible_problems(map(problem, codes))}


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        ("", ""),
        ("timeout", "timeout"),
        ("timeout reports-waiting not-enrolled", "timeout"),
        ("credential-refused not-enrolled reports-waiting", "credential-refused"),
        ("credential-refused tls", "tls"),
        ("not-enrolled reports-waiting", "not-enrolled reports-waiting"),
        ("revoked timeout clock-skew", "revoked timeout clock-skew"),
    ],
)
def test_consequences_of_another_condition_are_hidden(present: str, expected: str) -> None:
    assert visible_codes(*present.split()) == set(expected.split())


def test_conditions_are_complete_and_depend_on_known_conditions() -> None:
    for code, condition in CONDITIONS.items():
        assert condition.title
        assert condition.fix
        assert set(condition.depends_on) <= CONDITIONS.keys() - {code}


@pytest.mark.parametrize("code", CONDITIONS)
def test_no_condition_hides_itself(code: str) -> None:
    assert visible_codes(code) == {code}


def test_if_every_condition_holds_only_consequences_are_hidden() -> None:
    assert visible_codes(*CONDITIONS) != set()
    assert not visible_codes(*CONDITIONS) & {
        "not-enrolled",
        "credential-refused",
        "reports-waiting",
    }
