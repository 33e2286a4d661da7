"""Tests of the schemas of figures in `tests/fakes/schemas`.

The schemas refuse values that the contract does not permit.
"""

import copy
from typing import Any

import httpx2
import pytest

from tests.fakes.schemas import figures as schema

NO_FIGURES: dict[str, Any] = {"windows": [], "currencies": []}
POINTS = [{"cents": -1}]
PULSE: dict[str, Any] = {
    "venues": [
        {
            "locationId": "loc-0001",
            "activityComplete": False,
            "currencies": [
                {
                    "currency": "AED",
                    "todayCents": 1,
                    "yesterdayCents": 2**53 - 1,
                    "complete": True,
                    "comparisonComplete": True,
                    "deltaPercent": None,
                    "points": POINTS,
                    "peakPoints": [],
                }
            ],
            "activity": [{"weekday": 7, "hour": 23, "orderCount": 0}],
        }
    ]
}


def reply(name: str, body: Any, status: int = 200, method: str = "POST") -> httpx2.Response:
    request = httpx2.Request(method, f"http://service/api/public/v1/{name}")
    return httpx2.Response(status, json=body, request=request)


def pulse(*path: str | int, to: Any) -> httpx2.Response:
    """Return a reply with a valid pulse in which ``to`` replaces the value at ``path``."""
    body = copy.deepcopy(PULSE)
    parent: Any = body
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = to
    return reply("analytics/venueFinancialPulse", body)


@pytest.mark.parametrize(
    "valid_reply",
    [
        reply("analytics/venueFinancialPulse", PULSE),
        reply(
            "reports/financialSummary", {"current": NO_FIGURES, "previous": NO_FIGURES, "more": 1}
        ),
        # The contract does not define the reply of this operation, so any value is valid.
        reply("analytics/chart", {"any": "value"}),
        # Refusals and the replies of remoteControl are not checked.
        reply("analytics/chart", {"any": "value"}, 400),
        reply("remoteControl/current", None),
    ],
)
def test_valid_replies_fit_the_schema(valid_reply: httpx2.Response) -> None:
    schema.require_fitting(valid_reply)


VENUE = ("venues", 0)
CURRENCY = (*VENUE, "currencies", 0)
"""Paths of the only venue and the only currency in `PULSE`."""


@pytest.mark.parametrize(
    "invalid_reply",
    [
        reply("analytics/venueFinancialPulse", {}),
        reply("analytics/venueFinancialPulse", PULSE, 201),
        reply("analytics/venueFinancialPulse", PULSE, method="GET"),
        reply("reports/financialSummary", {"current": NO_FIGURES}),
        reply("reports/financialSummary", {"current": {"windows": []}, "previous": NO_FIGURES}),
        pulse("more", to=1),
        pulse(*VENUE, "activityComplete", to=None),
        pulse(*VENUE, "activity", 0, "weekday", to=0),
        pulse(*VENUE, "activity", 0, "weekday", to=8),
        pulse(*VENUE, "activity", 0, "hour", to=24),
        pulse(*VENUE, "activity", 0, "orderCount", to=-1),
        pulse(*CURRENCY, "todayCents", to=1.5),
        pulse(*CURRENCY, "todayCents", to=2**53),
        pulse(*CURRENCY, "todayCents", to="1"),
        pulse(*CURRENCY, "deltaPercent", to="1"),
        pulse(*CURRENCY, "points", to=[1]),
    ],
)
def test_replies_that_violate_the_schema_do_not_fit(invalid_reply: httpx2.Response) -> None:
    with pytest.raises(schema.NotFittingError):
        schema.require_fitting(invalid_reply)


@pytest.mark.parametrize(
    ("name", "body", "fits"),
    [
        ("chart", {"locationId": "a", "period": "custom", "from": "2026-11-01"}, True),
        ("chart", {"locationId": ""}, False),
        ("chart", {"locationId": "a", "from": "2026-02-30"}, False),
        ("chart", {"locationId": "a", "paymentTypes": ["cash"]}, False),
        ("sales", {"locationId": "a", "paymentTypes": ["cash"]}, True),
        ("sales", {"locationId": "a", "paymentTypes": []}, False),
        ("venuePulse", {"locationId": "a", "period": "today"}, False),
    ],
)
def test_request_bodies_are_validated(name: str, body: Any, fits: bool) -> None:
    assert (not list(schema.mistakes(f"analytics/{name}", body, is_request=True))) is fits
