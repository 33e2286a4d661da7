"""Tests of doctor's outcomes for the facts that the collector reports."""

from typing import Any

import pytest

from agent.doctor.checks.network import confinement, gateway
from agent.doctor.context import Context
from collectors.contract import Confinement, NetworkFacts, Unavailable

PLATFORM: dict[str, Any] = {"os_platform": "linux", "os_version": None, "started_at": ""}


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
    facts = NetworkFacts(scope="device", confinement=reported, **PLATFORM)
    context = Context(network_facts=facts)
    outcome = confinement(context)
    assert outcome.status == status
    assert expected_text in outcome.detail
    assert bool(outcome.fix) == (status == "warn")


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("this machine has no default route", "warn"),
        ("the default route through wg0 needs no gateway", "skipped"),
        ("the routing table cannot be read: EPERM", "skipped"),
    ],
)
def test_doctor_reports_why_there_is_no_gateway(reason: str, status: str) -> None:
    facts = NetworkFacts(scope="device", unavailable=Unavailable(gateway=reason), **PLATFORM)
    assert gateway(Context(network_facts=facts)).status == status
