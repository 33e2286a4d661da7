"""Tests of an organization's own webhook for alerts, which the owners set in the console."""

import base64
import hashlib
import hmac
import json
import uuid
from datetime import datetime
from typing import Any

import httpx2
import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.alerts.notifications import new_notification
from controlplane.alerts.operations.registry import ALERT_WEBHOOK, ALERTS
from controlplane.alerts.operations.routes import WEBHOOK
from controlplane.devices.locations.operations import PREFIX as LOCATIONS
from controlplane.settings import Settings
from controlplane.storage.audit_tables import AuditEntry
from controlplane.storage.monitoring_tables import AlertRoute, NotifiedAlert
from controlplane.web.background import send_to_organizations
from controlplane.web.webhooks.alerts import AlertOutbox, read_secret
from controlplane.web.webhooks.public_addresses import PublicAddressTransport
from controlplane.web.webhooks.sending import BATCH
from tests.unit.controlplane.accounts.people import MEMORY_KIB, PASSES, Browser, make_user
from tests.unit.controlplane.alerts.fleet_of_routes import ROUTE
from tests.unit.controlplane.alerts.test_evaluation import Fleet, kinds
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.web.webhooks.test_tracker import Webhook

pytestmark = pytest.mark.medium

URL = "https://hooks.example.com/services/T0/secret-path"
PUBLIC_ADDRESS = "93.184.215.14"


@pytest.fixture
def settings() -> Settings:
    return Settings(
        rate_per_s=0,
        argon2_memory_kib=MEMORY_KIB,
        argon2_passes=PASSES,
        refusal_delay_s=0,
        notify_url="https://operator.example.net/in",
    )


async def sign_in(service: RunningService, email: str = "ada@example.com") -> Browser:
    browser = Browser(service)
    assert (await browser.sign_in(email)).status_code == 200
    return browser


@pytest.fixture
async def owner(service: RunningService) -> Browser:
    make_user(service)
    return await sign_in(service)


async def set_webhook(owner: Browser) -> str:
    """Set the webhook. Return its secret."""
    reply = await owner.post(f"{ALERT_WEBHOOK}/set", {"url": f" {URL} "})
    assert reply.status_code == 200, reply.text
    assert reply.json()["host"] == "hooks.example.com"
    return str(reply.json()["secret"])


async def test_an_owner_sets_and_removes_the_webhook(
    service: RunningService, owner: Browser
) -> None:
    assert (await owner.post(ALERT_WEBHOOK)).json() == {"host": None}
    secret = await set_webhook(owner)
    reply = await owner.post(ALERT_WEBHOOK)
    assert reply.json() == {"host": "hooks.example.com"}
    assert (await owner.post(f"{ALERT_WEBHOOK}/remove")).json() == {"host": None}
    assert (await owner.post(ALERT_WEBHOOK)).json() == {"host": None}
    query = select(AuditEntry.operation, AuditEntry.detail)
    entries = service.database.read(lambda session: [tuple(row) for row in session.execute(query)])
    for operation in ("alert_webhook.set", "alert_webhook.remove"):
        assert (operation, "hooks.example.com") in entries
    for text in (reply.text, str(entries)):
        assert "secret-path" not in text
        assert secret not in text


async def test_members_see_whose_webhook_gets_the_alerts_but_not_its_host(
    service: RunningService, owner: Browser
) -> None:
    make_user(service, "bob@example.com", role="manager")
    manager = await sign_in(service, "bob@example.com")
    before = await manager.post(LOCATIONS)
    assert before.json()["alertsTo"] == "operator"
    await set_webhook(owner)
    after = await manager.post(LOCATIONS)
    assert after.json()["alertsTo"] == "organization"
    assert "example." not in before.text + after.text
    for path, body in (
        (ALERT_WEBHOOK, {}),
        (f"{ALERT_WEBHOOK}/set", {"url": URL}),
        (f"{ALERT_WEBHOOK}/remove", {}),
    ):
        refused = await manager.post(path, body)
        assert (refused.status_code, refused.json()["code"]) == (403, "owner_required")


async def test_the_kind_of_the_alert_webhook_cannot_change(owner: Browser) -> None:
    await set_webhook(owner)
    changes = {"id": WEBHOOK, "kind": "slack"}
    reply = await owner.post(f"{ALERTS}/routes/set", ROUTE | changes)
    assert (reply.status_code, list(reply.json()["errors"])) == (400, ["kind"])
    reply = await owner.post(f"{ALERTS}/routes/set", ROUTE | {"id": WEBHOOK})
    assert reply.status_code == 200, reply.text


FORM = "must be an address like https://hooks.example.com/alerts"
PRIVATE = "must be an address of the public internet"
NO_USER = "must not have spaces or a user name"
"""The three error messages for an address that cannot be the webhook."""


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", FORM),
        ("hooks.example.com", FORM),
        ("http://hooks.example.com/in", FORM),
        ("https:///in", FORM),
        ("https://hooks.example.com:99999/in", FORM),
        ("https://hööks.example.com/in", FORM),
        ("https://hooks.example.com/a b", NO_USER),
        ("https://ada:pass@hooks.example.com/in", NO_USER),
        ("https://localhost/in", PRIVATE),
        ("https://service.localhost/in", PRIVATE),
        ("https://localhost./in", PRIVATE),
        (f"https://{'a' * 64}.example.com/in", PRIVATE),
        ("https://a..example.com/in", PRIVATE),
        ("https://127.0.0.1/in", PRIVATE),
        ("https://10.0.0.1/in", PRIVATE),
        ("https://169.254.169.254/latest", PRIVATE),
        ("https://100.64.0.1/in", PRIVATE),
        ("https://[::1]/in", PRIVATE),
        ("https://[::ffff:10.0.0.1]/in", PRIVATE),
        ("https://[64:ff9b::a00:1]/in", PRIVATE),
        ("https://[2002:a00:1::1]/in", PRIVATE),
    ],
)
async def test_an_invalid_or_private_address_is_refused(
    owner: Browser, url: str, problem: str
) -> None:
    reply = await owner.post(f"{ALERT_WEBHOOK}/set", {"url": url})
    assert (reply.status_code, reply.json()["errors"]) == (400, {"url": [problem]})


class FleetWithWebhooks(Fleet):
    """A fleet whose organization may have a webhook: ``organization_webhook``. The inherited
    ``webhook`` belongs to the operator.
    """

    def __init__(self, service: RunningService) -> None:
        super().__init__(service)
        self.organization_webhook = Webhook(204)

    async def deliver(self) -> None:
        await super().deliver()
        async with httpx2.AsyncClient(
            transport=httpx2.MockTransport(self.organization_webhook)
        ) as http:
            await send_to_organizations(self.service.core, http, "webhooks")


async def test_the_webhook_of_the_organization_replaces_the_webhook_of_the_operator(
    service: RunningService, owner: Browser
) -> None:
    fleet = FleetWithWebhooks(service)
    await fleet.run(4)
    device, *_ = await fleet.add(3)
    secret = await set_webhook(owner)
    await fleet.run(5)
    fleet.offline = {device}
    assert await fleet.run(12) == []
    (request,) = fleet.organization_webhook.received
    assert str(request.url) == URL
    body: dict[str, Any] = json.loads(request.content)
    assert kinds([body]) == [("alert.firing", "offline", False)]
    headers = request.headers
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.content
    signature = base64.b64encode(hmac.digest(read_secret(secret), signed, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{signature}"
    await owner.post(f"{ALERT_WEBHOOK}/remove")
    fleet.offline = set()
    assert kinds(await fleet.run(12)) == [("alert.resolved", "offline", False)]
    assert len(fleet.organization_webhook.received) == 1


def add_notifications(session: Session, now: datetime, organization_id: str, count: int) -> None:
    """Add undelivered notifications of an organization, and a webhook if it has none."""
    url, secret = f"https://{organization_id}.example.com/in", "whsec_" + "A" * 32
    if session.get(AlertRoute, (organization_id, WEBHOOK)) is None:
        session.add(
            AlertRoute(
                organization_id=organization_id, id=WEBHOOK, name="", kind="webhook", target=url,
                secret=secret, severities=[], locations=[], group_minutes=0, is_digest=False,
                is_enabled=True,
            )
        )  # fmt: skip
    for number in range(count):
        notification = new_notification(organization_id, WEBHOOK, str(number), now, now)
        notification.id = f"msg_{organization_id}_{number}"
        alert = NotifiedAlert(
            notification=notification.id, route=WEBHOOK, alert_id=uuid.uuid4(), is_resolved=False,
            body="{}",
        )  # fmt: skip
        session.add_all((alert, notification))


async def test_undelivered_notifications_are_not_sent_after_the_webhook_is_removed(
    service: RunningService, owner: Browser
) -> None:
    await set_webhook(owner)
    service.database.write(
        lambda session: add_notifications(session, service.clock(), DEFAULT_ORGANIZATION, 1)
    )
    own = Webhook(500)
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(own)) as http:
        for _ in range(2):
            assert await send_to_organizations(service.core, http, "webhooks") == 1
            service.clock.advance(60)
        await owner.post(f"{ALERT_WEBHOOK}/remove")
        await set_webhook(owner)
        assert await send_to_organizations(service.core, http, "webhooks") == 0
    assert {str(each.url) for each in own.received} == {URL}


async def test_notifications_of_one_organization_do_not_delay_other_organizations(
    service: RunningService,
) -> None:
    now = service.clock()
    for organization_id, count in (("org-a", 2 * BATCH), ("org-b", 1)):
        service.database.write(
            lambda session, of=organization_id, count=count: add_notifications(
                session, now, of, count
            )
        )
    outbox = AlertOutbox(service.core.settings, "webhooks")
    claims = service.database.write(lambda session: outbox.claim(session, now))
    assert {each.id for each in claims} == {"msg_org-a_0", "msg_org-b_0"}
    own = Webhook(204)
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(own)) as http:
        assert await send_to_organizations(service.core, http, "webhooks") == 2 * BATCH - 1


class FakeResolver:
    """Resolves every name to the given addresses. Without addresses, every name is unknown."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)

    async def __call__(self, host: str, port: int) -> list[str]:
        if not self.addresses:
            raise OSError("Name or service not known")
        return self.addresses


async def post_through(resolver: FakeResolver, webhook: Webhook) -> None:
    transport = PublicAddressTransport(httpx2.MockTransport(webhook), resolver)
    async with httpx2.AsyncClient(transport=transport) as http:
        await http.post(URL)


async def test_a_notification_goes_to_the_address_that_was_checked() -> None:
    webhook = Webhook(204)
    await post_through(FakeResolver(PUBLIC_ADDRESS), webhook)
    (request,) = webhook.received
    assert request.url.host == PUBLIC_ADDRESS
    assert request.headers["host"] == "hooks.example.com"
    assert request.extensions["sni_hostname"] == "hooks.example.com"


@pytest.mark.parametrize(
    "addresses",
    [
        (),
        ("127.0.0.1",),
        (PUBLIC_ADDRESS, "10.0.0.1"),
        ("fd00::1",),
        ("::ffff:192.168.0.1",),
        ("fe80::1%2",),
    ],
    ids=["unknown", "loopback", "mixed", "ula", "mapped", "link-local"],
)
async def test_no_connection_is_made_to_an_unknown_name_or_a_private_address(
    addresses: tuple[str, ...],
) -> None:
    webhook = Webhook(204)
    with pytest.raises(httpx2.ConnectError, match=r"^hooks\.example\.com"):
        await post_through(FakeResolver(*addresses), webhook)
    assert webhook.received == []
