"""Messages of the operations for alerts."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from agent.wire.base import Absent, Array, Exact, MaxItems, Timestamp, Tolerant, Uuid
from agent.wire.text import Cursor
from controlplane.alerts.rule import Condition, Severity
from controlplane.devices.locations.messages import LocalTime, Location, Name
from controlplane.operation.storable_text import NAME_MAX, STORABLE

PAGE_DEFAULT = 50
PAGE_MAX = 200
MINUTES_MAX = 24 * 60
LISTED_MAX = 500
"""Maximum number of silences in a reply, and of locations that a route selects."""
RouteKind = Literal["webhook", "email", "slack", "teams", "pagerduty"]
Size = Absent[Annotated[int, Field(ge=1, le=PAGE_MAX)]]
RuleName = Annotated[str, Field(min_length=1, max_length=200), *STORABLE]
Argument = Annotated[str, StringConstraints(strip_whitespace=True, max_length=150), *STORABLE]
Minutes = Annotated[int, Field(ge=0, le=MINUTES_MAX)]


class AlertsRequest(Exact):
    """Filters and page. ``open`` true selects the alerts that have not resolved."""

    id: Absent[Uuid] = None
    open: Absent[bool] = None
    location: Absent[Location] = None
    cursor: Absent[Cursor] = None
    size: Size = None


class AlertRecord(Tolerant):
    """An alert.

    Attributes:
        instance_id: null for an alert of the location itself.
        name: name of the device, or id of the location.
        rule: name of the rule, such as ``offline`` or ``finding:queue-stopped``.
        flapping: whether the alert is about a condition that is flapping.
        detail: further text for users, often empty.
        started_at: when the condition became active. The alert fired later, at ``fired_at``.
        silenced: whether a silence prevented its notifications.
    """

    id: Uuid
    location_id: str
    instance_id: Uuid | None
    name: str
    rule: str
    severity: Severity
    flapping: bool
    detail: str
    started_at: Timestamp
    fired_at: Timestamp
    resolved_at: Timestamp | None
    silenced: bool
    acknowledged_at: Timestamp | None
    acknowledged_by: str | None


class AlertsReply(Tolerant):
    """A page of alerts, newest first. ``can_write`` is whether the caller may acknowledge them."""

    alerts: Array[AlertRecord]
    next_cursor: str | None
    can_write: bool


class AcknowledgeRequest(Exact):
    alert_id: Uuid


class SilenceRecord(Tolerant):
    """A silence. Its matchers are ``location_id``, ``instance_id`` and ``rule``, a rule's name.

    A null matcher matches everything.
    """

    id: Uuid
    location_id: str | None
    instance_id: Uuid | None
    rule: str | None
    since: Timestamp
    until: Timestamp
    reason: str
    created_by: str


class SilencesReply(Tolerant):
    """The current and planned silences, ordered by their end.

    ``can_write`` is whether the caller may add and end silences.
    """

    silences: Array[SilenceRecord]
    can_write: bool


class SilenceRequest(Exact):
    """A silence, with the matchers of `SilenceRecord`. ``since`` null means now."""

    location_id: Location | None
    instance_id: Uuid | None
    rule: RuleName | None
    since: LocalTime | None
    until: LocalTime
    reason: Annotated[str, Field(max_length=NAME_MAX), *STORABLE]


class SilenceEndRequest(Exact):
    silence_id: Uuid


class RuleRecord(Tolerant):
    """A rule.

    Attributes:
        argument: see `controlplane.alerts.rule.Rule`.
        location_id: null for a rule of the whole organization.
        for_minutes: how many minutes the condition must be active before the alert fires. null
            means the duration that the operator has set.
        is_default: whether this is a default rule that the organization has not changed.
    """

    name: str
    condition: Condition
    argument: str
    location_id: str | None
    severity: Severity
    for_minutes: int | None
    enabled: bool
    is_default: bool


class RulesReply(Tolerant):
    """The rules, those of the whole organization first.

    ``can_write`` is whether the caller may set and remove rules.
    """

    rules: Array[RuleRecord]
    can_write: bool


class RuleRequest(Exact):
    """A rule. It replaces the rule with the same condition and location.

    A rule for ``finding`` or ``incident`` replaces only a rule that has the same argument as well.
    """

    condition: Condition
    argument: Argument
    location_id: Location | None
    severity: Severity
    for_minutes: Minutes | None
    enabled: bool


class RuleRemoveRequest(Exact):
    name: RuleName
    location_id: Location | None


class RouteRecord(Tolerant):
    """A route. ``receiver`` is the part of its target that is not a secret.

    ``group_minutes`` is the shortest time between two notifications about alerts of the same rule
    and location. With ``digest``, all alerts are collected for one e-mail a day.
    """

    id: str
    name: str
    kind: RouteKind
    receiver: str
    severities: Array[Severity]
    locations: Array[str]
    group_minutes: int
    digest: bool
    enabled: bool


class RoutesReply(Tolerant):
    """The routes, ordered by name. ``has_mail`` is whether the service can send e-mail."""

    routes: Array[RouteRecord]
    has_mail: bool


class RouteRequest(Exact):
    """A route. A null ``id`` adds a route. A null ``target`` keeps the target of an existing route.

    ``target`` depends on the kind: a URL for a webhook, Slack or Teams; e-mail addresses, separated
    by commas; or the routing key of PagerDuty. The prefix ``eu:`` of a routing key selects the
    service region EU. Empty ``severities`` match every severity, and
    empty ``locations`` every location.
    """

    id: Annotated[str, Field(min_length=1, max_length=64), *STORABLE] | None
    name: Name
    kind: RouteKind
    target: (
        Annotated[str, StringConstraints(strip_whitespace=True, max_length=2048), *STORABLE] | None
    )
    severities: Annotated[tuple[Severity, ...], MaxItems(3)]
    locations: Annotated[tuple[Location, ...], MaxItems(LISTED_MAX)]
    group_minutes: Minutes
    digest: bool
    enabled: bool


class RouteReply(Tolerant):
    """``secret`` is null unless the request has set the target of a webhook.

    The service signs the notifications to this target with the secret. No other reply contains the
    secret.
    """

    route: RouteRecord
    secret: str | None


class RouteIdRequest(Exact):
    route_id: Annotated[str, Field(min_length=1, max_length=64), *STORABLE]


class RemoveReply(Tolerant):
    removed: bool


class RouteTestReply(Tolerant):
    """``notification_id`` names the delivery in the log."""

    notification_id: str


class AlertWebhookRequest(Exact):
    url: Annotated[str, StringConstraints(strip_whitespace=True, max_length=2048), *STORABLE]


class AlertWebhookReply(Tolerant):
    """``host`` is null if the organization has no webhook of its own."""

    host: str | None


class NewAlertWebhookReply(Tolerant):
    """``secret`` signs the notifications. No other reply contains it."""

    host: str
    secret: str


class DeliveriesRequest(Exact):
    cursor: Absent[Cursor] = None
    size: Size = None


class DeliveryRecord(Tolerant):
    """A notification in the delivery log.

    ``error`` is why it was not sent. It is empty before the first attempt, and after success.
    ``route`` is the name of the route, ``operator`` for the operator's webhook, or the id of a
    route that was removed. ``texts`` has a sentence about each of the first alerts in the
    notification. ``due_at`` is the time of the next attempt, or null.
    """

    id: str
    route: str
    status: Literal["pending", "sent", "failed"]
    attempts: int
    error: str
    texts: Array[str]
    created_at: Timestamp
    updated_at: Timestamp
    due_at: Timestamp | None


class DeliveriesReply(Tolerant):
    """A page of the delivery log, newest first."""

    deliveries: Array[DeliveryRecord]
    next_cursor: str | None
