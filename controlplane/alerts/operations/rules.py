"""Operations for the alert rules of an organization and its locations."""

from datetime import timedelta
from typing import Final

from sqlalchemy import select

from agent.wire.device_operations import EmptyRequest
from controlplane.alerts.operations import messages
from controlplane.alerts.rule import DEFAULT_RULES, Rule, check_argument, name_of
from controlplane.alerts.store import rule_of
from controlplane.devices.locations.operations import require_all_locations, require_location
from controlplane.operation.audit_entries import Event, Subject
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import conflict, invalid_field, not_found
from controlplane.storage.monitoring_tables import AlertRule

RULES_MAX: Final = 500
"""Maximum number of rules that an organization can set."""


def rules(context: RequestContext, _body: EmptyRequest) -> messages.RulesReply:
    """Return the rules of the organization, and of the locations that the caller may see.

    They include the default rules that the organization has not replaced.
    """
    query = select(AlertRule).where(AlertRule.organization_id == context.organization_id)
    stored = [rule_of(row) for row in context.session.scalars(query)]
    changed_names = {rule.name for rule in stored if not rule.location_id}
    visible = [
        rule
        for rule in stored
        if not rule.location_id or context.caller.has_access_to(rule.location_id)
    ]
    records = [_record(rule) for rule in visible]
    records += [
        _record(rule, is_default=True)
        for name, rule in DEFAULT_RULES.items()
        if name not in changed_names
    ]
    may_write = context.caller.kind == "session" and context.caller.can_write
    return messages.RulesReply(
        rules=tuple(sorted(records, key=lambda each: (each.location_id or "", each.name))),
        can_write=may_write,
    )


def set_rule(context: RequestContext, body: messages.RuleRequest) -> messages.RuleRecord:
    """Set a rule of the organization, or of a location."""
    _require_access(context, body.location_id)
    try:
        check_argument(body.condition, body.argument)
    except ValueError as error:
        raise invalid_field("argument", str(error)) from None
    is_own = AlertRule.organization_id == context.organization_id
    name, location_id = name_of(body.condition, body.argument), body.location_id or ""
    key = (context.organization_id, location_id, name)
    is_new = context.session.get(AlertRule, key) is None
    names = context.session.scalars(select(AlertRule.name).where(is_own).limit(RULES_MAX)).all()
    if is_new and len(names) >= RULES_MAX:
        raise conflict(
            "too_many_rules", f"an organization can set at most {RULES_MAX} rules. Remove one first"
        )
    minutes = body.for_minutes
    row = AlertRule(
        organization_id=context.organization_id,
        location_id=location_id,
        name=name,
        argument=body.argument,
        severity=body.severity,
        for_minutes=minutes,
        is_enabled=body.enabled,
    )
    row = context.session.merge(row)
    duration = "default duration" if minutes is None else f"for {minutes} min"
    state = "" if body.enabled else ", disabled"
    _note(context, row, f"{body.argument} {body.severity}, {duration}{state}".strip(), is_set=True)
    return _record(rule_of(row))


def remove_rule(context: RequestContext, body: messages.RuleRemoveRequest) -> messages.RemoveReply:
    """Remove a rule. Afterwards, the rule that it had replaced applies again.

    This is the rule of the organization with the same name, or the default rule.
    """
    _require_access(context, body.location_id)
    key = (context.organization_id, body.location_id or "", body.name)
    row = context.session.get(AlertRule, key)
    if row is None:
        raise not_found("rule")
    _note(context, row, "", is_set=False)
    context.session.delete(row)
    return messages.RemoveReply(removed=True)


def _require_access(context: RequestContext, location_id: str | None) -> None:
    if location_id is None:
        require_all_locations(context)
    else:
        require_location(context, location_id)


def _note(context: RequestContext, row: AlertRule, detail: str, *, is_set: bool) -> None:
    scope = row.location_id or "all locations"
    subject = Subject("alert_rule", row.name, scope)
    context.note(Event("alert_rule.set" if is_set else "alert_rule.remove", subject, detail))


def _record(rule: Rule, *, is_default: bool = False) -> messages.RuleRecord:
    fire_after = rule.fire_after
    return messages.RuleRecord(
        name=rule.name,
        condition=rule.condition,
        argument=rule.argument,
        location_id=rule.location_id or None,
        severity=rule.severity,
        for_minutes=None if fire_after is None else fire_after // timedelta(minutes=1),
        enabled=rule.is_enabled,
        is_default=is_default,
    )
