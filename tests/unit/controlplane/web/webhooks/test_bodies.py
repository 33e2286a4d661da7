"""Tests of the bodies of notifications for Slack, Microsoft Teams and PagerDuty."""

import json
from typing import Any

from controlplane.web.webhooks.bodies import LISTED_MAX, TEAMS_BYTES_MAX, body_for, url_for

NAME = "<!channel> *till*_01_ [Acknowledge](https://evil.example) <at>all</at> & co"
ROUTING_KEY = "R0" * 16
URL = "https://venue.example/#/alerts/1"


def alert(text: str = f"{NAME} (loc-0001) is offline") -> dict[str, Any]:
    return {
        "type": "alert.firing", "text": text, "alertId": "1", "locationId": "loc-0001",
        "name": NAME, "condition": "offline", "severity": "warning",
        "since": "2026-11-22T12:02:30Z", "url": URL,
    }  # fmt: skip


def message_for(kind: str, *alerts: dict[str, Any]) -> Any:
    return json.loads(body_for(kind, ROUTING_KEY, alerts))


def card_texts(message: Any) -> list[str]:
    """Return the texts of a card. Only text runs are permitted: they do not render Markdown."""
    (attachment,) = message["attachments"]
    runs = []
    for block in attachment["content"]["body"]:
        assert block["type"] == "RichTextBlock"
        runs += block["inlines"]
    assert {run["type"] for run in runs} == {"TextRun"}
    return [run["text"] for run in runs]


def test_a_name_with_markup_neither_mentions_users_nor_adds_links_in_slack() -> None:
    body = message_for("slack", alert())
    assert body["text"].startswith("Firing: &lt;!channel&gt; ")
    line, link = (block["text"] for block in body["blocks"])
    assert line == {"type": "plain_text", "text": f"Firing (warning): {alert()['text']}"}
    assert link == {"type": "mrkdwn", "text": f"<{URL}|Acknowledge or silence>"}


def test_a_webhook_route_to_slack_sends_the_message_of_a_slack_route() -> None:
    for host in ("hooks.slack.com", "HOOKS.SLACK.COM:443", "hooks.slack-gov.com"):
        content = body_for("webhook", f"https://{host}/services/T0/B0/x", [alert()])
        assert json.loads(content) == message_for("slack", alert())
    for url in ("https://hooks.slack.com/triggers/T0/1/x", "https://hooks.example.com/services/x"):
        assert json.loads(body_for("webhook", url, [alert()])) == alert()


def test_a_slack_message_has_no_interactive_elements() -> None:
    types = {block["type"] for block in message_for("slack", alert(), alert())["blocks"]}
    assert types == {"section"}


def test_a_name_with_markup_is_plain_text_in_teams() -> None:
    title, line = card_texts(message_for("teams", alert()))
    assert title == f"Firing: {alert()['text']}"
    assert line == f"Firing (warning): {alert()['text']}"


def test_a_teams_message_with_long_texts_lists_fewer_alerts() -> None:
    alerts = [alert(f"till-{number} has a finding: {'ā' * 600}") for number in range(100)]
    body = body_for("teams", "", alerts)
    assert len(body) <= TEAMS_BYTES_MAX
    _title, *lines, more = card_texts(json.loads(body))
    assert 1 <= len(lines) < LISTED_MAX
    assert more == f"and {100 - len(lines)} more"


def test_a_teams_message_with_short_texts_lists_as_many_alerts_as_a_slack_message() -> None:
    alerts = [alert(f"till-{number} (loc-0001) is offline") for number in range(100)]
    assert len(card_texts(message_for("teams", *alerts))) == LISTED_MAX + 2


def test_pagerduty_accounts_in_the_eu_region_have_a_separate_address() -> None:
    assert url_for("pagerduty", ROUTING_KEY) == "https://events.pagerduty.com/v2/enqueue"
    assert url_for("pagerduty", f"eu:{ROUTING_KEY}") == "https://events.eu.pagerduty.com/v2/enqueue"
    for target in (ROUTING_KEY, f"eu:{ROUTING_KEY}"):
        event = json.loads(body_for("pagerduty", target, [alert()]))
        assert event["routing_key"] == ROUTING_KEY
