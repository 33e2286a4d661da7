"""Application facts → the version-1 payload."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final, get_args

from agent.rules.reports.context import ReportContext
from agent.rules.reports.fit import clip, clip_id
from agent.rules.reports.network import NO_REASON, failures, limitation_lines, unconfined
from agent.wire import limits
from agent.wire.payloads import application as wire
from agent.wire.vocabulary import BrowserFieldKey, Completeness
from collectors import contract as facts

NO_NUMBER: Final = "the value read is not a number"
_BROWSER_KEYS: Final = frozenset(get_args(BrowserFieldKey))


def application_report(
    found: facts.ApplicationFacts, agent_fields: Iterable[facts.Field], context: ReportContext
) -> wire.ApplicationPayload:
    """Build a payload within the contract's limits.

    ``agent_fields`` are the daemon's facts about itself (``agent.*``).
    """
    browser_fields = _browser_fields_kept(found)
    omitted = len(found.browser_fields) - len(browser_fields)
    lines = (f"{omitted} browser fields are omitted",) if omitted else ()
    limitations = limitation_lines((*found.limitations, *lines, *unconfined(found.confinement)))
    return wire.ApplicationPayload(
        version=1,
        report_id=context.report_id,
        started_at=clip(found.started_at),
        finished_at=context.finished_at,
        completeness=completeness(found),
        identity=context.identity,
        environment=context.environment,
        failures=failures(found.failures),
        limitations=limitations,
        report_type="application",
        snapshot=wire.Snapshot(
            version=1,
            collected_at=clip(found.started_at),
            duration_ms=found.duration_ms if math.isfinite(found.duration_ms) else 0.0,
            fields=tuple(_field(f) for f in (*found.fields, *agent_fields)),
            interfaces=tuple(
                wire.SnapshotInterface(id=clip(i.id), fields=_fields(i.fields))
                for i in found.interfaces
            ),
            peripherals=tuple(
                wire.Peripheral(id=clip(p.id), kind=p.kind, fields=_fields(p.fields))
                for p in found.peripherals
            ),
            limitations=limitations,
            truncated=found.truncated or bool(omitted),
        ),
        browser_fields=tuple(_browser_field(f) for f in browser_fields),
    )


def completeness(found: facts.ApplicationFacts) -> Completeness:
    """Return "partial" if a source failed, "limited" if one was denied or cut."""
    if found.cancelled or found.failures:
        return "partial"
    is_denied = any(f.status == "permission-denied" for f in found.fields)
    is_cut = found.truncated or len(_browser_fields_kept(found)) < len(found.browser_fields)
    return "limited" if found.limitations or is_cut or is_denied else "complete"


def _browser_fields_kept(found: facts.ApplicationFacts) -> tuple[facts.Field, ...]:
    """Return the fields that the contract names: the child may be of another version."""
    known = (f for f in found.browser_fields if f.key in _BROWSER_KEYS)
    return tuple(known)[: limits.BROWSER_FIELDS_MAX]


def _fields(found: Iterable[facts.Field]) -> tuple[wire.SnapshotField, ...]:
    return tuple(_field(f) for f in found)


def _field(found: facts.Field) -> wire.SnapshotField:
    found = _with_a_number(found)
    return wire.SnapshotField(
        key=clip(found.key),
        source=clip(found.source),
        status=found.status,
        value=None if found.value is None else _value(found.value, limits.PAYLOAD_STRING_MAX),
        reason=None if found.reason is None else clip(found.reason),
    )


def _browser_field(found: facts.Field) -> wire.BrowserField:
    found = _with_a_number(found)
    common: dict[str, Any] = {
        "key": found.key,
        "source": clip_id(found.source, "unknown", limits.BROWSER_SOURCE_MAX),
    }
    if found.status == "available" and found.value is not None:
        value = _value(found.value, limits.BROWSER_STRING_MAX)
        if isinstance(value, tuple):
            value = value[: limits.BROWSER_ARRAY_MAX]
        return wire.BrowserField(**common, status="available", value=value)
    status = "collection-failed" if found.status == "available" else found.status
    reason = clip_id(found.reason or NO_REASON, NO_REASON, limits.BROWSER_REASON_MAX)
    return wire.BrowserField(**common, status=status, reason=reason)


def _with_a_number(found: facts.Field) -> facts.Field:
    """Return the fact, marked as failed if its value is infinity or NaN, which JSON lacks."""
    if not isinstance(found.value, float) or math.isfinite(found.value):
        return found
    return replace(found, status="collection-failed", value=None, reason=NO_NUMBER)


def _value(value: facts.FieldValue, text_max: int) -> facts.FieldValue:
    if isinstance(value, str):
        return clip(value, text_max)
    if isinstance(value, tuple):
        return tuple(clip(v, text_max) for v in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return max(limits.INTEGER_MIN, min(limits.INTEGER_MAX, value))
    return value
