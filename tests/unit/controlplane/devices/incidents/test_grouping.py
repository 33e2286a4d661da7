"""Tests of groups of incidents and of their explanations, without a database."""

from typing import Any

import pytest

from agent.wire.payloads.history import PATH_CAUSES, Cause
from controlplane.devices.incidents.grouping import (
    Incident,
    Period,
    cause_of,
    explanation_of,
    groups_of,
    is_shared,
    observers_of,
)


def incident(device: int, began_s: int = 0, cause: Cause = "gateway-silent") -> Incident:
    return Incident(
        position=device, location_id="loc", device=device, cause=cause, began_s=began_s,
        ended_s=None, downtime_s=0, count=1, evidence="", correction_s=0,
    )  # fmt: skip


def group(*causes: Cause) -> Any:
    return tuple(incident(number, cause=cause) for number, cause in enumerate(causes, 1))


def test_a_group_ends_60_seconds_after_its_first_incident() -> None:
    rows = [incident(1, 100), incident(2, 160), incident(3, 161), incident(4, 221)]
    devices = [[each.device for each in members] for members in groups_of(reversed(rows))]
    assert devices == [[1, 2], [3, 4]]


def test_incidents_of_one_device_are_not_shared() -> None:
    (only,) = groups_of([incident(1, 0), incident(1, 50, "link-down")])
    assert not is_shared(only)
    assert explanation_of(only, 6) is None


def test_a_group_has_the_cause_that_most_of_its_devices_report() -> None:
    assert cause_of(group("link-down", "provider-down", "provider-down")) == "provider-down"
    # If causes have the same number of devices, the cause nearest to the devices is used.
    assert cause_of(group("provider-down", "gateway-silent")) == "gateway-silent"


def test_observers_have_the_incident_or_a_report_about_its_time() -> None:
    periods = (
        Period("loc", 2, 0, 100),
        Period("loc", 3, 101, 200),
        Period("loc", 4, 0, 99),
        Period("elsewhere", 5, 0, 200),
    )
    assert observers_of((incident(1, 100),), periods) == {1, 2}


@pytest.mark.parametrize(
    ("causes", "observers", "loss", "suspect"),
    [
        (["gateway-silent"] * 5, 6, "lost the gateway", "the router, not the tills"),
        (
            ["provider-down"] * 6,
            6,
            "lost the internet",
            "the provider or the router, not the tills",
        ),
        (["link-down"] * 3, 6, "lost their link", "a switch or access point, not the tills"),
        (
            ["gateway-silent"] * 3,
            6,
            "lost the gateway",
            "a switch or access point that they share; the other devices kept their connection",
        ),
        (
            ["gateway-silent"] * 4 + ["provider-down"],
            6,
            "were interrupted",
            "4 of them lost the gateway, so the router, not the tills",
        ),
        (["service-down"] * 2, 6, "lost the service", "the service, not the tills"),
    ],
)
def test_the_explanation_names_what_the_devices_share(
    causes: list[Cause], observers: int, loss: str, suspect: str
) -> None:
    assert explanation_of(group(*causes), observers) == (loss, suspect)


def test_every_cause_has_an_explanation() -> None:
    for cause in PATH_CAUSES:
        explanation = explanation_of(group(cause, cause), 2)
        assert explanation is not None
        assert explanation.loss
        assert explanation.suspect
