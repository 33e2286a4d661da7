"""Tests of the sentences in notifications of alerts."""

from datetime import UTC, datetime

import pytest

from controlplane.alerts.messages import text_of
from controlplane.storage.monitoring_tables import Alert

STARTED_AT = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "since"),
    [
        (None, "20 Nov 23:30 UTC"),
        ("Europe/Riga", "21 Nov 01:30"),
        ("America/New_York", "20 Nov 18:30"),
    ],
)
def test_the_text_of_an_alert_has_date_and_time_of_the_location(
    zone: str | None, since: str
) -> None:
    alert = Alert(
        location_id="loc-0001", instance="till", condition="offline", is_flapping=False,
        started_at=STARTED_AT, ended_at=None, detail="",
    )  # fmt: skip
    text = text_of(alert, "till-01", zone, is_resolved=False)
    assert text == f"till-01 (loc-0001) has been offline since {since}"
