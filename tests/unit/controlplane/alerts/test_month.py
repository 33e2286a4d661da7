"""Tests with simulated weeks of a fleet: exactly the expected notifications are delivered.

The service evaluates the fleet each minute of a virtual clock, with its database, its outbox and a
webhook for each route. `make test-month` simulates four weeks of 500 devices.
"""

import json
import os
import random
import uuid
from collections import Counter
from datetime import timedelta

import httpx2
import pytest
from sqlalchemy import bindparam, update
from sqlalchemy.orm import Session

from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.alerts.evaluation import evaluate_fleet
from controlplane.devices.liveness import end_offline_intervals
from controlplane.devices.locations.locations import add_maintenance, set_zone_and_hours
from controlplane.devices.priority import Priority
from controlplane.settings import Settings
from controlplane.storage.monitoring_tables import AlertRoute, AlertSilence
from controlplane.storage.tables import Device
from controlplane.web.background import send_to_organizations
from tests.unit.controlplane.alerts.fleet_of_routes import RECEIVERS, SETTINGS
from tests.unit.controlplane.alerts.notification_oracle import (
    Notification,
    WeekRoute,
    WeekSilence,
    expected_notifications,
)
from tests.unit.controlplane.alerts.oracle import expected_events
from tests.unit.controlplane.alerts.week import (
    BEGINS,
    DEVICES,
    SECONDS,
    Week,
    WeekDevice,
    last_at_each,
    simulated_week,
    time_at,
)
from tests.unit.controlplane.running_service import RunningService

WEEKS = int(os.environ.get("MONTH_WEEKS", "0"))
"""The number of weeks that `make test-month` simulates; 0 in other runs."""
STEP_S = 60
UNTIL_S = SECONDS if WEEKS else 10 * 3600
"""The end of each simulation, in seconds since `BEGINS`."""
SEEDS = range(1, 1 + (WEEKS or 1))
ONLINE_WINDOW_S = 180
HEARTBEATS = (
    update(Device)
    .where(Device.position == bindparam("key"))
    .values(
        last_seen_at=bindparam("at"),
        severity=bindparam("new_severity"),
        priority=bindparam("new_priority"),
    )
)
"""Stores heartbeats of devices, and whether their newest reports have a fault."""
pytestmark = pytest.mark.medium


@pytest.fixture
def settings() -> Settings:
    return SETTINGS


class SimulatedFleet:
    """The fleet of a simulated week, stored in the database of the service.

    ``last_heartbeats`` has, for each device and tick, the time of the last heartbeat. ``stored``
    has, for each device, what the database contains: the last heartbeat, and whether the newest
    report has a fault.
    """

    def __init__(self, service: RunningService, week: Week, ticks: list[float]) -> None:
        self.service = service
        self.week = week
        self.devices = [device for location in week.locations for device in location.devices]
        self.last_heartbeats = [
            last_at_each(device.heartbeats(week.service_downs), ticks) for device in self.devices
        ]
        self.stored: list[tuple[float, bool] | None] = [None] * len(self.devices)
        self.received: Counter[Notification] = Counter()
        self.now_s = 0.0

    def add(self, session: Session, routes: list[WeekRoute]) -> None:
        position = 0
        for location in self.week.locations:
            key = (DEFAULT_ORGANIZATION, location.name)
            set_zone_and_hours(session, key, location.zone, location.lines or None, BEGINS)
            for window in location.schedule().maintenance:
                add_maintenance(session, key, window, "")
            for device in location.devices:
                position += 1
                session.add(_row(device, location.name, position))
        for route in routes:
            session.add(
                AlertRoute(
                    organization_id=DEFAULT_ORGANIZATION, id=route.name, name=route.name,
                    kind="webhook", target=f"https://{route.name}.example.com/in", secret="",
                    severities=list(route.severities), locations=list(route.locations),
                    group_minutes=route.interval_s // 60, is_digest=False, is_enabled=True,
                )
            )  # fmt: skip

    def step(self, session: Session, index: int, at: float) -> None:
        """Store the newest heartbeats and reports, and evaluate the fleet.

        ``index`` is the number of the tick, and ``at`` is its time in seconds since `BEGINS`.
        """
        online: list[dict[str, object]] = []
        for number, (device, last) in enumerate(
            zip(self.devices, self.last_heartbeats, strict=True)
        ):
            is_broken = any(start <= at < end for start, end in device.broken)
            before, now = self.stored[number], (last[index], is_broken)
            if before == now:
                continue
            self.stored[number] = now
            severity = "bad" if is_broken else ""
            if at - last[index] > ONLINE_WINDOW_S:
                statement = update(Device).where(Device.position == number + 1)
                session.execute(
                    statement.values(last_seen_at=time_at(last[index]), severity=severity)
                )
                continue
            priority = int(Priority.BROKEN if is_broken else Priority.OK)
            online.append(
                {
                    "key": number + 1,
                    "at": time_at(last[index]),
                    "new_severity": severity,
                    "new_priority": priority,
                }
            )
            if before is not None and last[index] - before[0] > ONLINE_WINDOW_S:
                end_offline_intervals(session, [number + 1], time_at(at))
        if online:
            session.connection().execute(HEARTBEATS, online)
        evaluate_fleet(session, time_at(at), self.service.core.settings)

    def receive(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        alerts = sorted(
            (
                (each["locationId"], each["instanceId"] or "", each["condition"], each["flapping"]),
                each["type"] == "alert.resolved",
            )
            for each in body.get("alerts", [body])
        )
        self.received[self.now_s, request.url.host.partition(".")[0], tuple(alerts)] += 1
        return httpx2.Response(204)


def _row(device: WeekDevice, location: str, position: int) -> Device:
    before = BEGINS - timedelta(days=1)
    return Device(
        position=position, instance_id=device.instance_id, binding_id=uuid.UUID(int=position),
        key_id=uuid.UUID(int=1), organization_id=DEFAULT_ORGANIZATION, location_id=location,
        legacy_install_id=f"till-{position}", app_version=None, capabilities=[], platform="linux",
        public_key="", user_id="", foreground=False, created_at=before, enrolled_at=before,
        last_seen_at=BEGINS, revoked_at=None, priority=Priority.OK, severity=None,
        network_report=None, application_report=None,
    )  # fmt: skip


def _silences(week: Week, chance: random.Random) -> list[WeekSilence]:
    """Return silences at six locations, and a silence of all offline alerts."""
    results = []
    for location in chance.sample(week.locations, 6):
        start = 60 * chance.randint(0, UNTIL_S // 60)
        device = chance.choice([str(location.devices[0].instance_id), ""])
        rule = chance.choice(["", "offline", "broken"])
        end = start + 60 * chance.randint(60, 720)
        results.append(WeekSilence(start, end, location.name, device, rule))
    return [*results, WeekSilence(6 * 3600, 10 * 3600, rule="offline")]


@pytest.mark.parametrize("seed", SEEDS)
async def test_exactly_the_expected_notifications_are_delivered(
    service: RunningService, seed: int
) -> None:
    week, chance = simulated_week(seed), random.Random(seed)
    assert len([device for location in week.locations for device in location.devices]) == DEVICES
    ticks = [at for at in week.ticks(STEP_S) if at < UNTIL_S]
    names = tuple(each.name for each in week.locations[::2])
    routes = [
        WeekRoute("every"),
        WeekRoute("grouped", interval_s=1800),
        WeekRoute("critical", severities=("critical",), interval_s=300),
        WeekRoute("half", locations=names),
    ]
    silences = _silences(week, chance)
    fleet = SimulatedFleet(service, week, ticks)

    def prepare(session: Session) -> None:
        fleet.add(session, routes)
        for each in silences:
            session.add(
                AlertSilence(
                    id=uuid.uuid4(), organization_id=DEFAULT_ORGANIZATION,
                    location_id=each.location, instance=each.device, rule=each.rule,
                    since=time_at(each.start), until=time_at(each.end), reason="", created_by="",
                )
            )  # fmt: skip

    service.database.write(prepare)
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(fleet.receive)) as http:
        for index, at in enumerate(ticks):
            service.clock.now, fleet.now_s = time_at(at), at
            service.database.write(
                lambda session, index=index, at=at: fleet.step(session, index, at)
            )
            for receivers in RECEIVERS:
                await send_to_organizations(service.core, http, receivers)
    expected_counts = expected_notifications(expected_events(week, ticks), routes, silences, ticks)
    count = sum(expected_counts.values())
    print(f"seed {seed}: {count} notifications are expected in {len(ticks)} minutes")
    assert not fleet.received - expected_counts
    assert not expected_counts - fleet.received
    assert max(fleet.received.values()) == 1
    assert {name for _, name, _ in expected_counts} == {route.name for route in routes}
    assert any(len(sent) > 1 for _, _, sent in expected_counts), "no notification was grouped"
