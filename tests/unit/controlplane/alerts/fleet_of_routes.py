"""A fleet whose organization has routes, and helpers that set its rules, routes and silences."""

import json
from typing import Any, Final

import httpx2

from controlplane.settings import Settings, Smtp
from controlplane.web.background import send_to_organizations
from controlplane.web.webhooks.alerts import Receivers
from tests.unit.controlplane.accounts.people import MEMORY_KIB, PASSES, Browser, make_user
from tests.unit.controlplane.alerts.test_evaluation import Fleet
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.web.webhooks.test_tracker import Webhook

PREFIX = "/console/api/alerts"
Json = dict[str, Any]
RECEIVERS: Final[tuple[Receivers, ...]] = ("webhooks", "mail")
"""The kinds of receivers that an organization can have. Each kind has an outbox of its own."""
SETTINGS = Settings(
    rate_per_s=0,
    argon2_memory_kib=MEMORY_KIB,
    argon2_passes=PASSES,
    refusal_delay_s=0,
    origin="http://service",
    smtp=Smtp(host="127.0.0.1", port=9, sender="alerts@venue.example"),
)
ROUTE: Json = {
    "id": None, "name": "On call", "kind": "webhook", "target": "https://hooks.example.com/in",
    "severities": [], "locations": [], "groupMinutes": 0, "digest": False, "enabled": True,
}  # fmt: skip
RULE: Json = {
    "condition": "offline", "argument": "", "locationId": None, "severity": "warning",
    "forMinutes": None, "enabled": True,
}  # fmt: skip
SILENCE: Json = {
    "locationId": None, "instanceId": None, "rule": None, "since": None,
    "until": "2026-11-20T18:00", "reason": "works on the network",
}  # fmt: skip


class RoutedFleet(Fleet):
    """A fleet, and the browser of an owner of its organization.

    ``route_webhook`` receives the notifications of all routes. The inherited ``webhook`` belongs to
    the operator.
    """

    def __init__(self, service: RunningService, owner: Browser) -> None:
        super().__init__(service)
        self.owner = owner
        self.route_webhook = Webhook(204)

    async def deliver(self) -> None:
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(self.route_webhook)) as http:
            for receivers in RECEIVERS:
                await send_to_organizations(self.service.core, http, receivers)

    async def run_and_receive(self, minutes: float) -> list[Json]:
        """Advance the time. Return the bodies that the routes received in that time."""
        earlier_count = len(self.route_webhook.received)
        await self.run(minutes)
        return [json.loads(each.content) for each in self.route_webhook.received[earlier_count:]]

    async def call(self, path: str, body: Json | None = None) -> Json:
        reply = await self.owner.post(f"{PREFIX}{path}", body or {})
        assert reply.status_code == 200, reply.text
        result: Json = reply.json()
        return result

    async def refusal(self, path: str, body: Json) -> tuple[int, str]:
        """Make a call that the service refuses. Return the status and the code."""
        reply = await self.owner.post(f"{PREFIX}{path}", body)
        return reply.status_code, reply.json()["code"]

    async def set_route(self, **changes: Any) -> Json:
        return await self.call("/routes/set", ROUTE | changes)

    async def set_rule(self, **changes: Any) -> Json:
        return await self.call("/rules/set", RULE | changes)


async def routed_fleet(service: RunningService) -> RoutedFleet:
    make_user(service)
    browser = Browser(service)
    assert (await browser.sign_in("ada@example.com")).status_code == 200
    fleet = RoutedFleet(service, browser)
    await fleet.run(4)  # in the first 3 min of monitoring, no device counts as offline
    return fleet
