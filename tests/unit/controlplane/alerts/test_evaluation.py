"""Tests of alerts, from heartbeats to webhook: each alert fires once and resolves once."""

import base64
import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx2
import pytest
from sqlalchemy import select

from agent.wire import routes
from agent.wire.codec import encode
from agent.wire.device_operations import HeartbeatReply, HeartbeatRequest
from controlplane.devices.locations.locations import add_maintenance, set_zone_and_hours
from controlplane.devices.locations.status import Maintenance
from controlplane.devices.retention import delete_old_monitoring
from controlplane.remote_control.heartbeats import DeviceHeartbeat, store_heartbeats
from controlplane.settings import Settings
from controlplane.storage.monitoring_tables import (
    Alert,
    AlertState,
    Notification,
    OfflineInterval,
)
from controlplane.web.background import watch_fleet
from controlplane.web.webhooks.alerts import AlertOutbox, read_secret
from controlplane.web.webhooks.sending import BATCH, send_due
from tests.fixtures.payloads import bare_report
from tests.unit.controlplane.running_service import RunningService, service_on
from tests.unit.controlplane.simulated_device import SimulatedDevice
from tests.unit.controlplane.web.webhooks.test_tracker import Webhook

pytestmark = pytest.mark.medium

SECRET = b"s" * 32
ORGANIZATION = "org-0001"
STEP_S = 60


@pytest.fixture
def settings() -> Settings:
    return Settings(rate_per_s=0, notify_url="http://hook.invalid/in", notify_secret=SECRET)


class Fleet:
    """A webhook and devices. Devices that are not in ``offline`` send a heartbeat every minute.

    While ``is_service_running`` is false, the service receives no heartbeats and evaluates nothing.
    """

    def __init__(self, service: RunningService) -> None:
        self.service = service
        self.caller = service.caller(service.write_key)
        self.devices: list[SimulatedDevice] = []
        self.offline: set[SimulatedDevice] = set()
        self.webhook = Webhook(204)
        self.is_service_running = True

    async def add(self, count: int, location: str = "loc-0001") -> list[SimulatedDevice]:
        added = [await self.service.device(location_id=location).enrolled() for _ in range(count)]
        self.devices += added
        return added

    async def run(self, minutes: float) -> list[dict[str, Any]]:
        """Advance the time. Return the bodies that the webhook received in that time."""
        before = len(self.webhook.received)
        for _ in range(int(minutes * 60 / STEP_S)):
            self.service.clock.advance(STEP_S)
            if not self.is_service_running:
                continue
            await self.send_heartbeats()
            await watch_fleet(self.service.core)
            await self.deliver()
        return [json.loads(each.content) for each in self.webhook.received[before:]]

    async def send_heartbeats(self) -> None:
        """Store a heartbeat of each online device in one batch, as the heartbeat endpoint does."""
        core, caller = self.service.core, self.caller
        heartbeats = [
            DeviceHeartbeat(
                caller, HeartbeatRequest(binding_id=UUID(device.binding_id), foreground=False)
            )
            for device in self.devices
            if device not in self.offline
        ]
        result = await core.write(
            lambda session: store_heartbeats(session, heartbeats, core.clock(), core.settings)
        )
        assert all(isinstance(reply, HeartbeatReply) for reply in result.replies)
        assert len(result.replies) == len(heartbeats)

    async def deliver(self) -> None:
        outbox = AlertOutbox(self.service.core.settings)
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(self.webhook)) as http:
            while await send_due(self.service.core, http, outbox) == BATCH:
                pass

    def rows(self, table: Any) -> list[Any]:
        return list(
            self.service.database.read(lambda session: session.scalars(select(table)).all())
        )


@pytest.fixture
async def fleet(service: RunningService) -> Fleet:
    fleet = Fleet(service)
    await fleet.run(4)  # in the first 3 min of monitoring, no device counts as offline
    return fleet


def kinds(bodies: list[dict[str, Any]]) -> list[tuple[str, str, bool]]:
    """Return the type, the condition, and whether the condition is flapping, of each body."""
    return [(each["type"], each["condition"], each["flapping"]) for each in bodies]


async def test_an_offline_device_causes_one_alert_that_resolves(fleet: Fleet) -> None:
    device, *_ = await fleet.add(4)
    assert await fleet.run(5) == []
    fleet.offline = {device}
    assert await fleet.run(3) == []
    (firing,) = await fleet.run(25)
    assert kinds([firing]) == [("alert.firing", "offline", False)]
    assert firing["instanceId"] == device.instance_id
    assert firing["text"].startswith("till-01 (loc-0001) has been offline since 20 Nov 12:")
    fleet.offline = set()
    assert await fleet.run(4) == []
    (resolved,) = await fleet.run(60)
    assert kinds([resolved]) == [("alert.resolved", "offline", False)]
    assert (resolved["alertId"], resolved["since"]) == (firing["alertId"], firing["since"])
    (alert,) = fleet.rows(Alert)
    assert alert.resolved_at is not None
    assert fleet.rows(AlertState) == []
    (interval,) = fleet.rows(OfflineInterval)
    assert interval.until is not None


async def test_notifications_are_signed(fleet: Fleet) -> None:
    (device,) = await fleet.add(1)
    await fleet.run(2)
    fleet.offline = {device}
    await fleet.run(10)
    (request,) = fleet.webhook.received
    headers = request.headers
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.content
    signature = base64.b64encode(hmac.new(SECRET, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{signature}"
    assert headers["idempotency-key"] == headers["webhook-id"]


async def test_a_power_cut_causes_one_alert(fleet: Fleet) -> None:
    await fleet.add(2, "loc-0002")
    fleet.offline = set(await fleet.add(5))
    assert kinds(await fleet.run(15)) == [("alert.firing", "site_outage", False)]
    fleet.offline = set()
    assert kinds(await fleet.run(15)) == [("alert.resolved", "site_outage", False)]


async def test_a_closed_location_causes_no_alert_until_it_opens(fleet: Fleet) -> None:
    device, other = await fleet.add(2)
    fleet.service.database.write(
        lambda session: set_zone_and_hours(
            session,
            (ORGANIZATION, "loc-0001"),
            "UTC",
            ["Mon-Sun 08:00-12:30", "Mon-Sun 13:15-20:00"],
            fleet.service.clock(),
        )
    )  # it is 12:04 UTC
    await fleet.run(24)
    fleet.offline = {device}
    assert await fleet.run(40) == []
    assert await states(fleet) == {device.instance_id: "closed", other.instance_id: "online"}
    fleet.offline = {device, other}
    assert kinds(await fleet.run(30)) == [("alert.firing", "site_outage", False)]
    assert set((await states(fleet)).values()) == {"offline"}


async def test_a_device_in_maintenance_causes_no_alert_and_has_the_state_maintenance(
    fleet: Fleet,
) -> None:
    device, _ = await fleet.add(2)
    now = fleet.service.clock()
    window = Maintenance(None, now, fleet.service.clock.now.replace(hour=13, minute=0))
    fleet.service.database.write(
        lambda session: add_maintenance(session, (ORGANIZATION, "loc-0001"), window, "new till")
    )
    fleet.offline = {device}
    assert await fleet.run(40) == []
    assert (await states(fleet))[device.instance_id] == "maintenance"
    assert kinds(await fleet.run(40)) == [("alert.firing", "offline", False)]


@pytest.mark.parametrize("is_online", [True, False])
async def test_a_device_in_maintenance_does_not_count_in_a_site_outage(
    fleet: Fleet, *, is_online: bool
) -> None:
    maintained, *others = await fleet.add(4)
    assert await fleet.run(1) == []
    now = fleet.service.clock()
    window = Maintenance(UUID(maintained.instance_id), now, now + timedelta(hours=2))
    fleet.service.database.write(
        lambda session: add_maintenance(session, (ORGANIZATION, "loc-0001"), window, "new till")
    )
    fleet.offline = set() if is_online else {maintained}
    assert await fleet.run(5) == []
    fleet.offline |= set(others)  # all devices except the one in maintenance
    assert kinds(await fleet.run(20)) == [("alert.firing", "site_outage", False)]


async def states(fleet: Fleet) -> dict[str, str]:
    reply = await fleet.service.post("/console/api/overview")
    return {row["device"]["instanceId"]: row["state"] for row in reply.json()["devices"]}


async def test_an_outage_of_the_service_causes_no_offline_alerts(fleet: Fleet) -> None:
    await fleet.add(5)
    await fleet.run(5)
    fleet.is_service_running = False
    await fleet.run(45)
    fleet.is_service_running = True
    assert await fleet.run(20) == []
    (interval,) = fleet.rows(OfflineInterval)
    assert interval.device is None  # the service itself was not running in this interval


async def test_flapping_causes_one_alert_that_resolves_after_a_stable_hour(fleet: Fleet) -> None:
    device, *_ = await fleet.add(4)
    await fleet.run(5)
    received = []
    for _ in range(4):
        fleet.offline = {device}
        received += await fleet.run(5)
        fleet.offline = set()
        received += await fleet.run(4)
    assert kinds(received) == [("alert.firing", "offline", True)]
    assert kinds(await fleet.run(70)) == [("alert.resolved", "offline", True)]


async def test_the_alert_of_a_faulty_report_resolves_with_a_report_without_faults(
    fleet: Fleet,
) -> None:
    device, *_ = await fleet.add(2)
    assert (await device.submit()).status_code == 200
    (firing,) = await fleet.run(15)
    assert kinds([firing]) == [("alert.firing", "broken", False)]
    assert firing["detail"] == "The device could not report anything."
    assert (await device.submit(json.loads(encode(bare_report())))).status_code == 200
    assert kinds(await fleet.run(15)) == [("alert.resolved", "broken", False)]


async def test_the_alerts_of_a_revoked_device_resolve(fleet: Fleet) -> None:
    device, other = await fleet.add(2)
    fleet.offline = {device}
    assert len(await fleet.run(15)) == 1
    await other.call(routes.REVOKE, instanceId=device.instance_id)
    fleet.devices.remove(device)
    assert kinds(await fleet.run(1)) == [("alert.resolved", "offline", False)]


async def test_a_webhook_receives_each_notification_once_and_in_order_after_its_outage(
    fleet: Fleet,
) -> None:
    device, *_ = await fleet.add(2)
    fleet.webhook = Webhook(*[httpx2.ConnectError("away")] * 20, 204)
    fleet.offline = {device}
    await fleet.run(30)
    fleet.offline = set()
    await fleet.run(200)
    bodies = [json.loads(each.content) for each in fleet.webhook.received[20:]]
    assert kinds(bodies) == [
        ("alert.firing", "offline", False),
        ("alert.resolved", "offline", False),
    ]
    assert len({each.headers["webhook-id"] for each in fleet.webhook.received}) == 2
    assert {each.status for each in fleet.rows(Notification)} == {"sent"}


async def test_old_monitoring_data_is_deleted(fleet: Fleet) -> None:
    device, *_ = await fleet.add(2)
    fleet.offline = {device}
    await fleet.run(15)
    fleet.offline = set()
    await fleet.run(15)
    database, now = fleet.service.database, fleet.service.clock()
    database.write(lambda session: delete_old_monitoring(session, now + timedelta(days=30)))
    assert [len(fleet.rows(each)) for each in (OfflineInterval, Alert, Notification)] == [
        1,
        1,
        2,
    ]
    database.write(lambda session: delete_old_monitoring(session, now + timedelta(days=100)))
    assert [len(fleet.rows(each)) for each in (OfflineInterval, Alert, Notification)] == [
        0,
        0,
        0,
    ]


async def test_two_services_on_one_database_send_one_notification(fleet: Fleet) -> None:
    device, *_ = await fleet.add(2)
    service = fleet.service
    fleet.offline = {device}
    async with service_on(service.database, service.core.settings, service.clock) as other:
        for _ in range(20):
            await fleet.run(1)
            await watch_fleet(other.core)
    await fleet.run(1)
    assert len(fleet.webhook.received) == 1


def test_a_webhook_secret_is_base64_with_the_prefix_whsec() -> None:
    assert read_secret("whsec_" + base64.b64encode(SECRET).decode() + "\n") == SECRET
    for bad in ("", "whsec_", "whsec_!!!!", "whsec_c2hvcnQ="):
        with pytest.raises(ValueError, match=r"whsec_|24 to 64"):
            read_secret(bad)
