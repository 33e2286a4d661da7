"""Tests of the sentences in notifications of alerts."""

from datetime import UTC, datetime

import pytest

from controlplane.alerts.messages import text_of
from controlplane.storage.monitoring_tables import Alert

STARTED_AT = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)
NEXT_DAY = datetime(2026, 11, 21, 0, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "sent_at", "since"),
    [
        (None, STARTED_AT, "23:30 UTC"),
        (None, NEXT_DAY, "20 Nov 23:30 UTC"),
        ("Europe/Riga", NEXT_DAY, "01:30"),
        ("America/New_York", NEXT_DAY, "18:30"),
        ("Europe/Riga", None, "21 Nov 01:30"),
    ],
)
def test_an_alert_that_began_on_another_day_shows_its_date(
    zone: str | None, sent_at: datetime | None, since: str
) -> None:
    alert = Alert(
        location_id="loc-0001", instance="till", condition="offline", is_flapping=False,
        started_at=STARTED_AT, ended_at=None, detail="",
    )  # fmt: skip
    text = text_of(alert, "till-01", zone, sent_at, is_resolved=False)
    assert text == f"till-01 (loc-0001) is offline since {since}"
