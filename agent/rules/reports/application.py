"""Builds the version-1 payload of an application report from its facts."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final, get_args

from agent.rules.reports.context import ReportContext
from agent.rules.reports.fit import clip, clip_id
from agent.rules.reports.network import (
    NO_REASON,
    confinement_limitations,
    failures,
    limitation_lines,
)
from agent.wire import limits
from agent.wire.payloads import application as wire
from agent.wire.vocabulary import BrowserFieldKey, Completeness
from collectors import contract as facts

NO_NUMBER: Final = "the value that was read is not a number"
_BROWSER_KEYS: Final = frozenset(get_args(BrowserFieldKey))


def application_report(
    collected: facts.ApplicationFacts, agent_fields: Iterable[facts.Field], context: ReportContext
) -> wire.ApplicationPayload:
    """Build a payload within the contract's limits.

    ``agent_fields`` are the agent's facts about itself (``agent.*``) and the fields of the
    connectivity record (``history.*``).
    """
    browser_fields = _known_browser_fields(collected)
    omitted_count = len(collected.browser_fields) - len(browser_fields)
    lines = (f"browser fields omitted: {omitted_count}",) if omitted_count else ()
    limitations = limitation_lines(
        (*collected.limitations, *lines, *confinement_limitations(collected.confinement))
    )
    return wire.ApplicationPayload(
        version=1,
        report_id=context.report_id,
        started_at=clip(collected.started_at),
        finished_at=context.finished_at,
        completeness=completeness(collected),
        identity=context.identity,
        environment=context.environment,
        failures=failures(collected.failures),
        limitations=limitations,
        report_type="application",
        snapshot=wire.Snapshot(
            version=1,
            collected_at=clip(collected.started_at),
            duration_ms=collected.duration_ms if math.isfinite(collected.duration_ms) else 0.0,
            fields=tuple(map(_field, (*collected.fields, *agent_fields))),
            interfaces=tuple(
                wire.SnapshotInterface(id=clip(i.id), fields=tuple(map(_field, i.fields)))
                for i in collected.interfaces
            ),
            peripherals=tuple(
                wire.Peripheral(id=clip(p.id), kind=p.kind, fields=tuple(map(_field, p.fields)))
                for p in collected.peripherals
            ),
            limitations=limitations,
            truncated=collected.truncated or bool(omitted_count),
        ),
        browser_fields=tuple(_browser_field(f) for f in browser_fields),
    )


def completeness(collected: facts.ApplicationFacts) -> Completeness:
    """Return "partial" after a failure or a cancellation.

    Return "limited" if facts were denied, cut or not tried, and "complete" if none of this is true.
    """
    if collected.cancelled or collected.failures:
        return "partial"
    is_denied = any(f.status == "permission-denied" for f in collected.fields)
    is_cut = collected.truncated or len(_known_browser_fields(collected)) < len(
        collected.browser_fields
    )
    return "limited" if collected.limitations or is_cut or is_denied else "complete"


def _known_browser_fields(collected: facts.ApplicationFacts) -> tuple[facts.Field, ...]:
    """Return the fields that the contract names, up to its limit. Other fields are left out."""
    known_fields = (f for f in collected.browser_fields if f.key in _BROWSER_KEYS)
    return tuple(known_fields)[: limits.BROWSER_FIELDS_MAX]


def _field(field: facts.Field) -> wire.SnapshotField:
    field = _with_finite_number(field)
    return wire.SnapshotField(
        key=clip(field.key),
        source=clip(field.source),
        status=field.status,
        value=None if field.value is None else _value(field.value, limits.PAYLOAD_STRING_MAX),
        reason=None if field.reason is None else clip(field.reason),
    )


def _browser_field(field: facts.Field) -> wire.BrowserField:
    field = _with_finite_number(field)
    common: dict[str, Any] = {
        "key": field.key,
        "source": clip_id(field.source, "unknown", limits.BROWSER_SOURCE_MAX),
    }
    if field.status == "available" and field.value is not None:
        value = _value(field.value, limits.BROWSER_STRING_MAX)
        if isinstance(value, tuple):
            value = value[: limits.BROWSER_ARRAY_MAX]
        return wire.BrowserField(**common, status="available", value=value)
    status = "collection-failed" if field.status == "available" else field.status
    reason = clip_id(field.reason or NO_REASON, NO_REASON, limits.BROWSER_REASON_MAX)
    return wire.BrowserField(**common, status=status, reason=reason)


def _with_finite_number(field: facts.Field) -> facts.Field:
    """Return the fact. If its value is infinite or NaN, return it as failed instead.

    JSON cannot represent these values.
    """
    if not isinstance(field.value, float) or math.isfinite(field.value):
        return field
    return replace(field, status="collection-failed", value=None, reason=NO_NUMBER)


def _value(value: facts.FieldValue, text_max: int) -> facts.FieldValue:
    if isinstance(value, str):
        return clip(value, text_max)
    if isinstance(value, tuple):
        return tuple(clip(v, text_max) for v in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return max(limits.INTEGER_MIN, min(limits.INTEGER_MAX, value))
    return value
