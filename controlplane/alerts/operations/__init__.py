"""The console's operations for alerts, and for their rules, silences and routes."""

from controlplane.alerts.operations.alerts import alert_operations
from controlplane.alerts.operations.routes import route_operations
from controlplane.alerts.operations.rules import rule_operations
from controlplane.alerts.operations.silences import silence_operations
from controlplane.operation.operation import Procedure


def all_alert_operations() -> tuple[Procedure, ...]:
    return (*alert_operations(), *silence_operations(), *rule_operations(), *route_operations())
