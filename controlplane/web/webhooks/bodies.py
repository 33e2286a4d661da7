"""The bodies of notifications for webhooks, Slack, Microsoft Teams and PagerDuty.

Sources: the reference of Slack's incoming webhooks, the schema of Adaptive Cards 1.4, and the
documentation of PagerDuty's Events API v2.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from agent.presentation.humanize import counted

Bodies = Sequence[Mapping[str, Any]]
"""The alerts of a notification, as `alerts.messages.body_of` describes them."""
PAGERDUTY_URL: Final = "https://events.pagerduty.com/v2/enqueue"
PAGERDUTY_EU_URL: Final = "https://events.eu.pagerduty.com/v2/enqueue"
"""The address for PagerDuty accounts in the service region EU. Both addresses are constants, so
that the owner of a route cannot choose the host that receives the routing key."""
PAGERDUTY_EU: Final = "eu:"
"""The prefix that marks the routing key of a PagerDuty account in the service region EU."""
SLACK_HOSTS: Final = frozenset({"hooks.slack.com", "hooks.slack-gov.com"})
SLACK_PATH: Final = "/services/"
"""The start of the paths of Slack's incoming webhooks. Slack's workflows have other paths."""
SLACK_TEXT_MAX: Final = 3000
PAGERDUTY_SUMMARY_MAX: Final = 1024
CARD_SCHEMA: Final = "http://adaptivecards.io/schemas/adaptive-card.json"
TITLES: Final = {
    "alert.firing": "Firing",
    "alert.resolved": "Resolved",
    "alert.test": "Test",
    "alert.group": "Alerts",
}
LISTED_MAX: Final = 40
"""Maximum number of alerts in one message for users. Slack permits 50 blocks."""
TEAMS_BYTES_MAX: Final = 20_000
"""Maximum size of a body for Teams.

Teams converts a body to its own form, which may have at most 28,672 bytes. In a test, a body of
24,453 bytes had 28,897 bytes after this conversion. A workflow replies 202 before it checks the
size, so the reply does not show that a body is too large.
"""


def body_for(kind: str, target: str, bodies: Bodies) -> bytes:
    """Return the JSON body for a kind of route.

    For PagerDuty, ``target`` is the routing key, with or without `PAGERDUTY_EU`. For every other
    kind, it is the URL.
    """
    return json.dumps(BUILDERS[kind](target, bodies)).encode()


def url_for(kind: str, target: str) -> str:
    if kind != "pagerduty":
        return target
    return PAGERDUTY_EU_URL if target.startswith(PAGERDUTY_EU) else PAGERDUTY_URL


def summary_of(bodies: Bodies) -> str:
    """Return one line about all alerts of a notification."""
    if len(bodies) == 1:
        return f"{TITLES[bodies[0]['type']]}: {bodies[0]['text']}"
    firing_count = sum(each["type"] == "alert.firing" for each in bodies)
    firing, resolved_count = counted(firing_count, "alert"), len(bodies) - firing_count
    locations = sorted({each["locationId"] for each in bodies})
    where = locations[0] if len(locations) == 1 else f"{len(locations)} locations"
    return f"{firing} firing and {resolved_count} resolved at {where}"


def lines_of(bodies: Bodies, listed_max: int = LISTED_MAX) -> list[str]:
    """Return one line for each of the first ``listed_max`` alerts, the firing ones first."""
    # In alphabetical order, "alert.firing" comes before "alert.resolved".
    ordered = sorted(bodies, key=lambda each: str(each["type"]))
    lines = [f"{TITLES[each['type']]} ({each['severity']}): {each['text']}" for each in ordered]
    more = len(lines) - listed_max
    return [*lines[:listed_max], f"and {more} more"] if more > 0 else lines


def link_of(bodies: Bodies) -> str | None:
    """Return the console's URL for the first alert, or None if no origin is configured."""
    return next((each["url"] for each in bodies if each.get("url")), None)


def _webhook(target: str, bodies: Bodies) -> Mapping[str, Any]:
    """Return the body that docs/alerts.md describes.

    An incoming webhook of Slack gets the body for Slack instead, because Slack would execute the
    mentions in ``text``, such as ``<!channel>`` in the name of a device.
    """
    url = urlsplit(target)
    if url.hostname in SLACK_HOSTS and url.path.startswith(SLACK_PATH):
        return _slack(target, bodies)
    if len(bodies) == 1:
        return bodies[0]
    return {"type": "alert.group", "text": summary_of(bodies), "alerts": list(bodies)}


def _slack(_target: str, bodies: Bodies) -> Mapping[str, Any]:
    """Return the body for an incoming webhook of Slack.

    Text of alerts is only in ``plain_text`` or escaped, so that names of devices can neither notify
    users nor add links. The link is not a button: a click on a button also calls the Slack app, and
    Slack displays a warning if the app has no address for that.
    """
    blocks: list[Any] = [
        {"type": "section", "text": {"type": "plain_text", "text": line[:SLACK_TEXT_MAX]}}
        for line in lines_of(bodies)
    ]
    link = link_of(bodies)
    if link is not None:
        text = f"<{_escaped(link)}|Acknowledge or silence>"
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": text}})
    return {"text": _escaped(summary_of(bodies)), "blocks": blocks}


def _escaped(text: str) -> str:
    """Escape the characters that have a special meaning in Slack's text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _teams(_target: str, bodies: Bodies) -> Mapping[str, Any]:
    """Return the body for a workflow of Teams, with fewer alerts if it would be too large."""
    listed_max = LISTED_MAX
    while True:
        message = _teams_message(bodies, listed_max)
        if listed_max == 1 or len(json.dumps(message)) <= TEAMS_BYTES_MAX:
            return message
        listed_max -= 1


def _teams_message(bodies: Bodies, listed_max: int) -> Mapping[str, Any]:
    title = _teams_text(summary_of(bodies), weight="Bolder")
    link = link_of(bodies)
    actions = [{"type": "Action.OpenUrl", "title": "Acknowledge or silence", "url": link}]
    card = {
        "$schema": CARD_SCHEMA,
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [title, *map(_teams_text, lines_of(bodies, listed_max))],
        "actions": actions if link is not None else [],
    }
    kind = "application/vnd.microsoft.card.adaptive"
    attachment = {"contentType": kind, "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _teams_text(text: str, **style: str) -> Mapping[str, Any]:
    """Return a block of plain text.

    A ``TextBlock`` would render Markdown, so that the name of a device could contain a link, and a
    name with underscores would lose them.
    """
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **style}]}


def _pagerduty(target: str, bodies: Bodies) -> Mapping[str, Any]:
    body = bodies[-1]  # notifications of this kind are not grouped
    is_resolved = body["type"] == "alert.resolved"
    event: dict[str, Any] = {
        "routing_key": target.removeprefix(PAGERDUTY_EU),
        "event_action": "resolve" if is_resolved else "trigger",
        "dedup_key": body["alertId"],
    }
    if is_resolved:
        return event
    event["payload"] = {
        "summary": body["text"][:PAGERDUTY_SUMMARY_MAX],
        "source": body["name"] or body["locationId"],
        "severity": body["severity"],
        "timestamp": body["since"],
        "component": body["condition"],
        "group": body["locationId"],
        "custom_details": dict(body),
    }
    if body.get("url"):
        event["links"] = [{"href": body["url"], "text": "Acknowledge or silence"}]
    return event


BUILDERS: Final[Mapping[str, Callable[[str, Bodies], Mapping[str, Any]]]] = {
    "webhook": _webhook,
    "slack": _slack,
    "teams": _teams,
    "pagerduty": _pagerduty,
}
