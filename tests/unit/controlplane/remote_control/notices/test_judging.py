"""From heartbeats to the webhook, by the database: each change is told once, and its end."""

import base64
import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from controlplane.devices.forgetting import forget_old
from sqlalchemy import select

from agent.wire import routes
from agent.wire.codec import encode
from controlplane.devices.locations.locations import add_maintenance, set_location
from controlplane.devices.locations.status import Maintenance
from controlplane.settings import Settings
from controlplane.storage.monitoring_tables import (
    Alert,
    AlertNotification,
    AlertState,
    OfflineInterval,
)
from controlplane.web.background import watch_fleet
from controlplane.web.webhooks.alerts import AlertOutbox, read_secret
from controlplane.web.webhooks.sending import BATCH, send_due
from tests.fixtures.payloads import bare_report
from tests.unit.controlplane.remote_control.test_tracker import Webhook
from tests.unit.controlplane.running_service import RunningService, beside
from tests.unit.controlplane.simulated_device import SimulatedDevice

pytestmark = pytest.mark.medium

SECRET = b"s" * 32
ORGANIZATION = "org-0001"
STEP_S = 60


@pytest.fixture
def settings() -> Settings:
    return Settings(rate_per_s=0, notify_url="http://hook.invalid/in", notify_secret=SECRET)


class Fleet:
    """Devices that beat once a minute unless they are in ``silent``, and a webhook."""

    def __init__(self, service: RunningService) -> None:
        self.service = service
        self.devices: list[SimulatedDevice] = []
        self.silent: set[SimulatedDevice] = set()
        self.webhook = Webhook(204)
        self.is_listening = True

    async def add(self, count: int, location: str = "loc-0001") -> list[SimulatedDevice]:
        added = [await self.service.device(location_id=location).enrolled() for _ in range(count)]
        self.devices += added
        return added

    async def run(self, minutes: float) -> list[dict[str, Any]]:
        """Let time pass. Returns the bodies that the webhook got meanwhile."""
        before = len(self.webhook.received)
        for _ in range(int(minutes * 60 / STEP_S)):
            self.service.clock.advance(STEP_S)
            if not self.is_listening:
                continue
            for device in self.devices:
                if device not in self.silent:
                    assert (await device.heartbeat()).status_code == 200
            await watch_fleet(self.service.core)
            await self.deliver()
        return [json.loads(each.content) for each in self.webhook.received[before:]]

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
    made = Fleet(service)
    await made.run(4)  # the service has just begun to listen
    return made


def kinds(bodies: list[dict[str, Any]]) -> list[tuple[str, str, bool]]:
    return [(each["type"], each["condition"], each["flapping"]) for each in bodies]


async def test_silence_is_told_once_and_so_is_its_end(fleet: Fleet) -> None:
    device, *_ = await fleet.add(4)
    assert await fleet.run(10) == []
    fleet.silent = {device}
    assert await fleet.run(3) == []
    (told,) = await fleet.run(60)
    assert kinds([told]) == [("notice.opened", "offline", False)]
    assert told["instanceId"] == device.instance_id
    assert told["text"].startswith("till-01 (loc-0001) is offline since 12:")
    fleet.silent = set()
    assert await fleet.run(4) == []
    (ended,) = await fleet.run(60)
    assert kinds([ended]) == [("notice.ended", "offline", False)]
    assert (ended["noticeId"], ended["since"]) == (told["noticeId"], told["since"])
    (notice,) = fleet.rows(Alert)
    assert notice.end_told_at is not None
    assert fleet.rows(AlertState) == []
    (gap,) = fleet.rows(OfflineInterval)
    assert gap.until is not None


async def test_what_is_sent_is_signed_and_named(fleet: Fleet) -> None:
    (device,) = await fleet.add(1)
    await fleet.run(2)
    fleet.silent = {device}
    await fleet.run(15)
    (request,) = fleet.webhook.received
    headers = request.headers
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.content
    mac = base64.b64encode(hmac.new(SECRET, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{mac}"
    assert headers["idempotency-key"] == headers["webhook-id"]


async def test_a_power_cut_is_one_notice(fleet: Fleet) -> None:
    await fleet.add(2, "loc-0002")
    fleet.silent = set(await fleet.add(5))
    assert kinds(await fleet.run(30)) == [("notice.opened", "dark", False)]
    fleet.silent = set()
    assert kinds(await fleet.run(30)) == [("notice.ended", "dark", False)]


async def test_outside_opening_hours_nothing_is_told(fleet: Fleet) -> None:
    device, other = await fleet.add(2)
    fleet.service.database.write(
        lambda session: set_location(
            session,
            (ORGANIZATION, "loc-0001"),
            "UTC",
            ["Mon-Sun 08:00-12:30", "Mon-Sun 15:00-20:00"],
        )
    )  # the clock stands at noon
    await fleet.run(24)
    fleet.silent = {device}
    assert await fleet.run(120) == []
    assert await states(fleet) == {device.instance_id: "closed", other.instance_id: "online"}
    fleet.silent = {device, other}
    assert kinds(await fleet.run(60)) == [("notice.opened", "dark", False)]
    assert set((await states(fleet)).values()) == {"offline"}


async def test_maintenance_tells_nothing_and_says_so(fleet: Fleet) -> None:
    device, _ = await fleet.add(2)
    now = fleet.service.clock()
    window = Maintenance(None, now, fleet.service.clock.now.replace(hour=14, minute=0))
    fleet.service.database.write(
        lambda session: add_maintenance(session, (ORGANIZATION, "loc-0001"), window, "new till")
    )
    fleet.silent = {device}
    assert await fleet.run(60) == []
    assert (await states(fleet))[device.instance_id] == "maintenance"
    assert kinds(await fleet.run(120)) == [("notice.opened", "offline", False)]


async def states(fleet: Fleet) -> dict[str, str]:
    reply = await fleet.service.post("/console/api/overview")
    return {row["device"]["instanceId"]: row["state"] for row in reply.json()["devices"]}


async def test_a_service_that_was_down_takes_nobody_for_offline(fleet: Fleet) -> None:
    await fleet.add(5)
    await fleet.run(10)
    fleet.is_listening = False
    await fleet.run(45)
    fleet.is_listening = True
    assert await fleet.run(60) == []
    (gap,) = fleet.rows(OfflineInterval)
    assert gap.device is None


async def test_flapping_is_told_once_and_ends_after_a_calm_hour(fleet: Fleet) -> None:
    device, *_ = await fleet.add(4)
    await fleet.run(5)
    told = []
    for _ in range(4):
        fleet.silent = {device}
        told += await fleet.run(5)
        fleet.silent = set()
        told += await fleet.run(4)
    assert kinds(told) == [("notice.opened", "offline", True)]
    assert kinds(await fleet.run(120)) == [("notice.ended", "offline", True)]


async def test_a_broken_report_is_told_until_a_good_one(fleet: Fleet) -> None:
    device, *_ = await fleet.add(2)
    assert (await device.submit()).status_code == 200
    (told,) = await fleet.run(30)
    assert kinds([told]) == [("notice.opened", "broken", False)]
    assert told["detail"] == "The device could report nothing."
    assert (await device.submit(json.loads(encode(bare_report())))).status_code == 200
    assert kinds(await fleet.run(30)) == [("notice.ended", "broken", False)]


async def test_a_revoked_device_ends_what_was_told_of_it(fleet: Fleet) -> None:
    device, other = await fleet.add(2)
    fleet.silent = {device}
    assert len(await fleet.run(30)) == 1
    await other.call(routes.REVOKE, instanceId=device.instance_id)
    fleet.devices.remove(device)
    assert kinds(await fleet.run(1)) == [("notice.ended", "offline", False)]


async def test_a_webhook_that_is_away_gets_all_in_order_and_nothing_twice(fleet: Fleet) -> None:
    device, *_ = await fleet.add(2)
    fleet.webhook = Webhook(*[httpx2.ConnectError("away")] * 20, 204)
    fleet.silent = {device}
    await fleet.run(30)
    fleet.silent = set()
    await fleet.run(200)
    taken = [json.loads(each.content) for each in fleet.webhook.received[20:]]
    assert kinds(taken) == [
        ("notice.opened", "offline", False),
        ("notice.ended", "offline", False),
    ]
    assert len({each.headers["webhook-id"] for each in fleet.webhook.received}) == 2
    assert {each.status for each in fleet.rows(AlertNotification)} == {"sent"}


async def test_what_is_over_is_forgotten_in_its_time(fleet: Fleet) -> None:
    device, *_ = await fleet.add(2)
    fleet.silent = {device}
    await fleet.run(30)
    fleet.silent = set()
    await fleet.run(30)
    database, now = fleet.service.database, fleet.service.clock()
    database.write(lambda session: forget_old(session, now + timedelta(days=30)))
    assert [len(fleet.rows(each)) for each in (OfflineInterval, Alert, AlertNotification)] == [
        1,
        1,
        2,
    ]
    database.write(lambda session: forget_old(session, now + timedelta(days=100)))
    assert [len(fleet.rows(each)) for each in (OfflineInterval, Alert, AlertNotification)] == [
        0,
        0,
        0,
    ]


async def test_two_services_on_one_database_tell_once(fleet: Fleet) -> None:
    device, *_ = await fleet.add(2)
    service = fleet.service
    fleet.silent = {device}
    async with beside(service.database, service.core.settings, service.clock) as other:
        for _ in range(20):
            await fleet.run(1)
            await watch_fleet(other.core)
    await fleet.run(1)
    assert len(fleet.webhook.received) == 1


def test_a_secret_is_whsec_and_base64() -> None:
    assert read_secret("whsec_" + base64.b64encode(SECRET).decode() + "\n") == SECRET
    for bad in ("", "whsec_", "whsec_!!!!", "whsec_c2hvcnQ="):
        with pytest.raises(ValueError, match=r"whsec_|24 to 64"):
            read_secret(bad)
