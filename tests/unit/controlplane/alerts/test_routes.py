"""Tests of routes: matchers, grouping, message bodies for each kind of route, and delivery log."""

import json
from typing import Final

import pytest

from controlplane.alerts import notifications
from controlplane.settings import Settings
from tests import sizes
from tests.unit.controlplane.accounts.people import make_locations
from tests.unit.controlplane.alerts.fleet_of_routes import (
    PREFIX,
    ROUTE,
    SETTINGS,
    Json,
    RoutedFleet,
    routed_fleet,
)
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.web.webhooks.test_tracker import Webhook

pytestmark = pytest.mark.medium
ROUTING_KEY = "R0" * 16


@pytest.fixture
def settings() -> Settings:
    return SETTINGS


@pytest.fixture
async def fleet(service: RunningService) -> RoutedFleet:
    return await routed_fleet(service)


async def test_a_route_gets_the_alerts_that_its_matchers_select(fleet: RoutedFleet) -> None:
    await fleet.add(3, "loc-0002")
    await fleet.set_route(severities=["critical"], target="https://a.example.com/critical")
    await fleet.set_route(locations=["loc-0002"], target="https://b.example.com/second")
    device_at_loc_0001, *_ = await fleet.add(5)
    fleet.offline = {device_at_loc_0001, *fleet.devices[:3]}
    bodies = await fleet.run_and_receive(15)
    requests = zip(fleet.route_webhook.received, bodies, strict=True)
    assert sorted(
        (each.url.host, body["condition"], body["locationId"]) for each, body in requests
    ) == [
        ("a.example.com", "site_outage", "loc-0002"),
        ("b.example.com", "site_outage", "loc-0002"),
    ]


async def test_alerts_of_a_location_and_rule_are_grouped(fleet: RoutedFleet) -> None:
    first, second, third, fourth, *_ = await fleet.add(10)
    await fleet.set_route(groupMinutes=30)
    fleet.offline = {first, second}
    (group,) = await fleet.run_and_receive(10)
    assert group["type"] == "alert.group"
    assert group["text"] == "2 alerts firing and 0 resolved at loc-0001"
    assert {each["instanceId"] for each in group["alerts"]} == {
        first.instance_id, second.instance_id,
    }  # fmt: skip
    fleet.offline |= {third}
    assert await fleet.run_and_receive(4) == []
    fleet.offline |= {fourth}
    fleet.offline -= {first}
    # These changes are sent when 30 minutes have passed since the previous notification.
    (later,) = await fleet.run_and_receive(40)
    assert sorted((each["type"], each["instanceId"]) for each in later["alerts"]) == sorted([
        ("alert.firing", third.instance_id),
        ("alert.firing", fourth.instance_id),
        ("alert.resolved", first.instance_id),
    ])  # fmt: skip


async def test_a_digest_is_one_mail_a_day(fleet: RoutedFleet) -> None:
    device, *_ = await fleet.add(3)
    await fleet.set_route(kind="email", target="ada@example.com, bob@example.com", digest=True)
    for _ in range(2):
        fleet.offline = {device}
        await fleet.run(15)
        fleet.offline = set()
        await fleet.run(70)
    (delivery,) = (await fleet.call("/deliveries"))["deliveries"]
    assert (delivery["status"], delivery["dueAt"]) == ("pending", "2026-11-21T07:00:00Z")
    assert len(delivery["texts"]) == 4
    # The mail is sent on the next day, so the text contains the date.
    assert "till-01 (loc-0001) has been offline since 20 Nov 12:" in delivery["texts"][0]


async def test_a_digest_with_too_many_alerts_has_a_second_mail(
    fleet: RoutedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "GROUP_MAX", 1)
    device, *_ = await fleet.add(3)
    await fleet.set_route(kind="email", target="ada@example.com", digest=True)
    fleet.offline = {device}
    await fleet.run(15)
    fleet.offline = set()
    await fleet.run(70)
    deliveries = (await fleet.call("/deliveries"))["deliveries"]
    assert [each["dueAt"] for each in deliveries] == ["2026-11-21T07:00:00Z"] * 2
    assert [len(each["texts"]) for each in deliveries] == [1, 1]


async def test_slack_teams_and_pagerduty_each_get_bodies_in_their_own_format(
    fleet: RoutedFleet,
) -> None:
    device, *_ = await fleet.add(3)
    await fleet.set_route(kind="slack", target="https://hooks.slack.example.com/x")
    await fleet.set_route(kind="teams", target="https://teams.example.com/x")
    await fleet.set_route(kind="pagerduty", target=ROUTING_KEY)
    fleet.offline = {device}
    await fleet.run(15)
    by_host = {each.url.host: json.loads(each.content) for each in fleet.route_webhook.received}
    slack = by_host["hooks.slack.example.com"]
    assert slack["text"].startswith("Firing: till-01 (loc-0001) has been offline since 20 Nov 12:")
    assert [each["type"] for each in slack["blocks"]] == ["section", "section"]
    (attachment,) = by_host["teams.example.com"]["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    (action,) = attachment["content"]["actions"]
    link = f"<{action['url']}|Acknowledge or silence>"
    assert slack["blocks"][-1]["text"] == {"type": "mrkdwn", "text": link}
    event = by_host["events.pagerduty.com"]
    assert (event["routing_key"], event["event_action"]) == (ROUTING_KEY, "trigger")
    assert action["url"] == f"http://service/#/alerts/{event['dedup_key']}"
    assert event["payload"]["severity"] == "warning"
    fleet.offline = set()
    await fleet.run(15)
    last = {each.url.host: json.loads(each.content) for each in fleet.route_webhook.received}
    assert last["events.pagerduty.com"] == {
        "routing_key": ROUTING_KEY, "event_action": "resolve", "dedup_key": event["dedup_key"],
    }  # fmt: skip


async def test_a_route_that_becomes_a_pagerduty_route_sends_each_alert_that_waited_in_a_group(
    fleet: RoutedFleet,
) -> None:
    first, second, third, *_ = await fleet.add(10)
    route = (await fleet.set_route(kind="slack", groupMinutes=60))["route"]
    fleet.offline = {first}
    assert len(await fleet.run_and_receive(10)) == 1
    fleet.offline |= {second, third}
    assert await fleet.run_and_receive(10) == []
    await fleet.set_route(id=route["id"], kind="pagerduty", target=ROUTING_KEY)
    events = await fleet.run_and_receive(1)
    assert [each["event_action"] for each in events] == ["trigger", "trigger"]
    names = {each["payload"]["custom_details"]["instanceId"] for each in events}
    assert names == {second.instance_id, third.instance_id}
    log = (await fleet.call("/deliveries"))["deliveries"]
    # The group that waited has failed, without texts. Its two alerts were sent one by one.
    assert [each["status"] for each in log] == ["sent", "sent", "failed", "sent"]
    assert [len(each["texts"]) for each in log] == [1, 1, 0, 1]


async def test_a_route_that_is_no_longer_a_digest_sends_the_start_of_an_alert_before_its_end(
    fleet: RoutedFleet,
) -> None:
    device, *_ = await fleet.add(3)
    route = (await fleet.set_route(kind="email", target="ada@example.com", digest=True))["route"]
    fleet.offline = {device}
    assert await fleet.run_and_receive(10) == []
    await fleet.set_route(id=route["id"], kind="pagerduty", target=ROUTING_KEY)
    fleet.offline = set()
    events = await fleet.run_and_receive(20)
    assert [each["event_action"] for each in events] == ["trigger", "resolve"]
    assert len({each["dedup_key"] for each in events}) == 1


async def test_a_pagerduty_route_to_the_region_eu_displays_only_the_end_of_its_key(
    fleet: RoutedFleet,
) -> None:
    route = (await fleet.set_route(kind="pagerduty", target=f"eu:{ROUTING_KEY}"))["route"]
    assert route["receiver"] == "…R0R0"
    await fleet.call("/routes/test", {"routeId": route["id"]})
    await fleet.deliver()
    (request,) = fleet.route_webhook.received
    assert request.url.host == "events.eu.pagerduty.com"


OUTAGE_MINUTES: Final = sizes.amount(medium=3 * 60, large=24 * 60)


async def test_a_receiver_gets_each_notification_once_and_in_order_after_its_outage(
    fleet: RoutedFleet,
) -> None:
    device, *_ = await fleet.add(3)
    await fleet.set_route()
    fleet.route_webhook = Webhook(503)
    fleet.offline = {device}
    await fleet.run(15)
    fleet.offline = set()
    await fleet.run(OUTAGE_MINUTES)
    fleet.route_webhook = Webhook(204)
    bodies = await fleet.run_and_receive(30)
    assert [each["type"] for each in bodies] == ["alert.firing", "alert.resolved"]
    log = (await fleet.call("/deliveries"))["deliveries"]
    assert [(each["status"], each["error"]) for each in log] == [("sent", ""), ("sent", "")]
    assert await fleet.run_and_receive(30) == []


async def test_the_delivery_log_has_the_error_and_the_next_attempt(fleet: RoutedFleet) -> None:
    device, *_ = await fleet.add(3)
    await fleet.set_route()
    fleet.route_webhook = Webhook(503)
    fleet.offline = {device}
    await fleet.run(9)
    (delivery,) = (await fleet.call("/deliveries"))["deliveries"]
    assert (delivery["route"], delivery["status"]) == ("On call", "pending")
    assert delivery["attempts"] >= 1
    assert delivery["error"] == "the organization's route answered 503"
    assert delivery["dueAt"] > delivery["updatedAt"]


@pytest.mark.parametrize(
    ("retry_after", "wait_s"),
    [("600", 600), ("86400", 3600), ("9" * 5000, 3600)],
    ids=["10 min", "a day", "5000 digits"],
)
async def test_a_receiver_gets_no_message_before_the_time_in_its_retry_after(
    fleet: RoutedFleet, service: RunningService, retry_after: str, wait_s: int
) -> None:
    route = (await fleet.set_route(kind="slack"))["route"]
    fleet.route_webhook = Webhook(429)
    fleet.route_webhook.headers["Retry-After"] = retry_after
    for _ in range(2):
        await fleet.call("/routes/test", {"routeId": route["id"]})
    await fleet.deliver()
    service.clock.advance(wait_s - 1)
    await fleet.deliver()
    # The wait concerns all notifications of the route, not only the one that was refused.
    assert len(fleet.route_webhook.received) == 1
    fleet.route_webhook = Webhook(200)
    service.clock.advance(2)
    await fleet.deliver()
    assert len(fleet.route_webhook.received) == 2


async def test_the_delivery_log_has_pages_of_different_sizes(fleet: RoutedFleet) -> None:
    route = (await fleet.set_route())["route"]
    for _ in range(5):
        await fleet.call("/routes/test", {"routeId": route["id"]})
    delivery_ids, cursor = [], {}
    for size in (2, 1, 2):
        reply = await fleet.call("/deliveries", {"size": size, **cursor})
        assert len(reply["deliveries"]) == size
        delivery_ids += [each["id"] for each in reply["deliveries"]]
        cursor = {"cursor": reply["nextCursor"]}
        if reply["nextCursor"] is not None:
            # The cursor of the log is not valid for the list of alerts.
            invalid = await fleet.refusal("", {"cursor": reply["nextCursor"]})
            assert invalid == (400, "invalid_cursor")
    assert cursor == {"cursor": None}
    assert len(set(delivery_ids)) == 5


async def test_a_test_notification_is_sent_at_once_and_signed(fleet: RoutedFleet) -> None:
    reply = await fleet.set_route(groupMinutes=60)
    assert reply["secret"].startswith("whsec_")
    queued = await fleet.call("/routes/test", {"routeId": reply["route"]["id"]})
    await fleet.deliver()
    (request,) = fleet.route_webhook.received
    assert json.loads(request.content)["type"] == "alert.test"
    assert request.headers["webhook-id"] == queued["notificationId"]
    assert request.headers["webhook-signature"].startswith("v1,")


async def test_a_changed_route_keeps_its_target_and_a_disabled_route_sends_nothing(
    fleet: RoutedFleet,
) -> None:
    route = (await fleet.set_route())["route"]
    assert route["receiver"] == "hooks.example.com"
    changed = await fleet.set_route(id=route["id"], target=None, name="Second")
    assert (changed["secret"], changed["route"]["receiver"]) == (None, "hooks.example.com")
    await fleet.call("/routes/test", {"routeId": route["id"]})
    await fleet.set_route(id=route["id"], target=None, enabled=False)
    await fleet.deliver()
    assert fleet.route_webhook.received == []
    (delivery,) = (await fleet.call("/deliveries"))["deliveries"]
    assert (delivery["status"], delivery["error"]) == (
        "failed",
        "the route was removed or disabled",
    )
    refusal = await fleet.refusal("/routes/test", {"routeId": route["id"]})
    assert refusal == (409, "route_disabled")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"target": "https://10.0.0.1/in"}, "target"),
        ({"kind": "slack", "target": "http://hooks.example.com/in"}, "target"),
        ({"kind": "teams", "target": None}, "target"),
        ({"kind": "pagerduty", "target": "short"}, "target"),
        ({"kind": "pagerduty", "target": f"us:{ROUTING_KEY}"}, "target"),
        ({"kind": "pagerduty", "target": ROUTING_KEY, "groupMinutes": 5}, "groupMinutes"),
        ({"kind": "email", "target": "ada"}, "target"),
        ({"kind": "email", "target": ",".join(f"a{n}@example.com" for n in range(11))}, "target"),
        ({"digest": True}, "digest"),
    ],
)
async def test_an_invalid_route_is_refused(fleet: RoutedFleet, changes: Json, field: str) -> None:
    reply = await fleet.owner.post(f"{PREFIX}/routes/set", ROUTE | changes)
    assert (reply.status_code, list(reply.json()["errors"])) == (400, [field])
    assert (await fleet.call("/routes"))["routes"] == []


async def test_a_route_to_an_unknown_location_is_refused(
    fleet: RoutedFleet, service: RunningService
) -> None:
    body = ROUTE | {"locations": ["loc-0009"]}
    assert await fleet.refusal("/routes/set", body) == (404, "location_not_found")
    make_locations(service, "loc-0009")
    await fleet.call("/routes/set", body)
