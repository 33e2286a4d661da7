"""Single rules of alerts, without a database."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from controlplane.alerts.facts import Seen, facts_of
from controlplane.alerts.rules import (
    Change,
    Facts,
    Key,
    Rules,
    Value,
    Watch,
    advance,
    judge,
)
from controlplane.devices.locations.status import Maintenance, Place

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
DEVICE = UUID(int=1)
OFFLINE = Key(DEVICE, "offline")


def test_a_moment_that_cannot_be_judged_does_not_delay_the_end_of_an_alert() -> None:
    resolving = Watch(is_told=True, gone_at=NOW)
    watch, _ = advance(OFFLINE, resolving, Value.UNKNOWN, NOW + MINUTE, Rules(), may_begin=True)
    _, told = advance(OFFLINE, watch, Value.GONE, NOW + 5 * MINUTE, Rules(), may_begin=True)
    assert told == [Change(OFFLINE, False, True, NOW)]


def test_a_device_in_maintenance_counts_neither_as_bound_nor_as_online() -> None:
    place = Place(maintenance=(Maintenance(DEVICE, NOW - HOUR, NOW + HOUR),))
    seen = [Seen(DEVICE, NOW, is_broken=False), Seen(UUID(int=2), NOW, is_broken=False)]
    facts = facts_of(place, seen, NOW, 3 * MINUTE)
    assert (facts.devices, facts.heard) == (1, 1)


def test_no_device_is_reported_offline_while_the_outage_of_its_location_is_firing() -> None:
    watches = {
        Key(None, "dark"): Watch(is_told=True, gone_at=NOW),
        OFFLINE: Watch(holds=True, began_at=NOW - HOUR, changes=(NOW - HOUR,)),
    }
    facts = Facts(devices=9, heard=8, offline={DEVICE: NOW - HOUR}, silent=frozenset({DEVICE}))
    assert judge(watches, facts, NOW + MINUTE, Rules())[1] == []
