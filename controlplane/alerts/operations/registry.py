"""The console's operations for alerts, and for their silences, rules and routes."""

from functools import partial
from typing import Final

from controlplane.alerts.operations import alerts, routes, rules, silences
from controlplane.operation.operation import procedure

ALERTS: Final = "/console/api/alerts"
ALERT_WEBHOOK: Final = "/console/api/alert-webhook"
_write = partial(procedure, writes=True, requires_session=True)
_silence = partial(procedure, writes=True, refusals=("foreign_location", "manager_required"))

ALERT_OPERATIONS: Final = (
    procedure(ALERT_WEBHOOK, routes.alert_webhook, requires_session=True),
    _write(f"{ALERT_WEBHOOK}/set", routes.set_alert_webhook),
    _write(f"{ALERT_WEBHOOK}/remove", routes.remove_alert_webhook),
    procedure(ALERTS, alerts.alerts),
    procedure(
        f"{ALERTS}/acknowledge", alerts.acknowledge, writes=True, refusals=("foreign_location",)
    ),
    procedure(f"{ALERTS}/deliveries", alerts.deliveries, requires_session=True),
    procedure(f"{ALERTS}/silences", silences.silences),
    _silence(f"{ALERTS}/silences/add", silences.add_silence),
    _silence(f"{ALERTS}/silences/end", silences.end_silence),
    procedure(f"{ALERTS}/rules", rules.rules),
    _write(f"{ALERTS}/rules/set", rules.set_rule),
    _write(f"{ALERTS}/rules/remove", rules.remove_rule),
    procedure(f"{ALERTS}/routes", routes.routes, requires_session=True),
    _write(f"{ALERTS}/routes/set", routes.set_route),
    _write(f"{ALERTS}/routes/remove", routes.remove_route),
    _write(f"{ALERTS}/routes/test", routes.test_route),
)
