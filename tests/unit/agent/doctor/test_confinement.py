"""Tests of doctor's outcomes for the sandbox that the collector reports."""

from typing import Any

import pytest

from agent.doctor.checks.network import confinement
from agent.doctor.context import Context
from collectors.contract import Confinement, NetworkFacts


@pytest.mark.parametrize(
    ("reported", "status", "expected_text"),
    [
        (Confinement("confined"), "ok", "write nothing"),
        (Confinement("refused", "this kernel is old"), "warn", "this kernel is old"),
        (Confinement("not-offered", "not on this system"), "skipped", "not on this system"),
    ],
)
def test_doctor_reports_the_confinement_of_the_collector(
    reported: Confinement, status: str, expected_text: str
) -> None:
    facts: dict[str, Any] = {"os_platform": "linux", "os_version": None, "started_at": ""}
    context = Context(network_facts=NetworkFacts(scope="device", confinement=reported, **facts))
    outcome = confinement(context)
    assert outcome.status == status
    assert expected_text in outcome.detail
    assert bool(outcome.fix) == (status == "warn")
