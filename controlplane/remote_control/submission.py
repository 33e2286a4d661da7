"""Submission of reports by devices, with or without a request.

The report can be any JSON value (contract: submitResult). An object that has at least one field of
the network or application payload must be a valid payload of the submitted kind. Any other value is
stored unchanged, and the report counts as a report without a payload.

A repeated submission gets the same reply. A submission with a known report id and different content
is refused. The report id is checked before the binding. Therefore a device whose binding has ended
still gets the confirmation that its report arrived.
"""

import hashlib
import json
import math
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, get_args

from sqlalchemy import select

from agent.wire.codec import to_plain
from agent.wire.device_operations import SubmitResultReply, SubmitResultRequest
from agent.wire.payloads.by_kind import PAYLOADS, ReportPayload
from agent.wire.vocabulary import Kind, Outcome
from controlplane.devices.overview.report_contents import store_content
from controlplane.devices.overview.summaries import Summary, summary_of
from controlplane.devices.priority import record_report
from controlplane.devices.records import is_payload, payload_fields
from controlplane.devices.requests import lifecycle
from controlplane.devices.requests.requests import expire_due, lock_request, refusal_of
from controlplane.operation.bodies import parse_json, parse_part, require_unique_keys
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import conflict, invalid_field
from controlplane.operation.records import record_of
from controlplane.remote_control.report_volume import add_volume
from controlplane.storage.tables import Device, Report, Request

DEPTH_MAX: Final = 64
"""Maximum depth of lists and objects in a report that is not a payload."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A valid report.

    Attributes:
        body: the body without its report. The report is only in ``payload``, so that the process
            that parses large bodies does not return it twice.
        body_hash: SHA-256 of the whole body as canonical JSON.
        payload: the report as canonical JSON, or ``null`` if the body has no report.
        payload_hash: SHA-256 of ``payload``.
    """

    body: SubmitResultRequest
    body_hash: str
    payload: bytes
    payload_hash: str
    summary: Summary


def parse_submission(content: bytes) -> Submission:
    body = parse_part(SubmitResultRequest, parse_json(content))
    report = _payload_of(body)
    require_unique_keys(content)
    payload = canonical_json(body.report if report is None else to_plain(report))
    body_without_report = body.model_copy(update={"report": None})
    body_hash = _sha256(canonical_json(to_plain(body_without_report) | {"report": body.report}))
    is_empty = body.report is None and body.outcome == "failed"
    summary = summary_of(report, is_empty=is_empty)
    return Submission(body_without_report, body_hash, payload, _sha256(payload), summary)


def submission_schema(model: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of the bodies that `parse_submission` accepts.

    Each combination of kind and outcome has its own schema. ``model`` is the schema of a body of
    any kind and outcome.
    """
    schemas = [
        _schema_of(model, kind, outcome) for kind in get_args(Kind) for outcome in get_args(Outcome)
    ]
    return {"description": model.get("description", ""), "oneOf": schemas}


def submit_result(context: RequestContext, submission: Submission) -> SubmitResultReply:
    """Store a report. A repeated report gets the same reply."""
    body = submission.body
    context.lock_binding(body.binding_id)
    known_report = _find_known_report(context, body)
    if known_report is not None:
        if known_report.body_hash != submission.body_hash:
            raise conflict("report_conflict", "a different report was submitted with this reportId")
        return _reply(known_report)
    device = context.bound_device(body.binding_id)
    request = _finish_request(context, body, device)
    report = _new_report(context, submission, device, request)
    context.session.add(report)
    context.stored_reports.append((report.kind, report.outcome))
    record_report(context, device, report)
    if submission.summary.content is not None:
        store_content(context.session, device, report, submission.summary.content, context.now)
    add_volume(context, report, len(submission.payload))
    return _reply(report)


def _find_known_report(context: RequestContext, body: SubmitResultRequest) -> Report | None:
    report = context.session.scalars(select(Report).where(Report.id == body.report_id)).first()
    if report is None:
        return None
    context.require_access(report.organization_id, report.location_id, "report")
    return report


def _payload_of(body: SubmitResultRequest) -> ReportPayload | None:
    """Return the report as a model of its kind, or None if it is not a payload."""
    if body.failure_reason is not None and body.outcome == "completed":
        raise invalid_field("failureReason", "must be absent if the outcome is completed")
    if is_payload(body.report):
        return parse_part(PAYLOADS[body.kind], body.report, "report")
    _require_storable(body.report)
    return None


def _require_storable(value: Any) -> None:
    """Refuse a report that cannot be stored as text and read again."""
    level = [value]  # level 0 is the report itself
    for _ in range(DEPTH_MAX + 1):
        if any(isinstance(item, float) and not math.isfinite(item) for item in level):
            raise invalid_field("report", "must not contain a number that is too large")
        level = [inner for item in level for inner in _children(item)]
        if not level:
            break
    else:
        raise invalid_field(
            "report", f"must not nest lists and objects more than {DEPTH_MAX} levels deep"
        )
    try:
        canonical_json(value).decode()
    except UnicodeDecodeError:
        raise invalid_field("report", "must not contain a lone surrogate") from None


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _finish_request(
    context: RequestContext, body: SubmitResultRequest, device: Device
) -> Request | None:
    if body.request_id is None:
        return None
    expire_due(context.session, context.now, device.instance_id)
    request = lock_request(context, body.request_id, body.binding_id)
    if request.kind != body.kind:
        raise invalid_field("kind", f"the request is for a report of kind {request.kind}")
    try:
        request.status = lifecycle.move(request.status, lifecycle.result_event(body.outcome))
    except lifecycle.TransitionRefusedError as refused:
        raise refusal_of(refused) from None
    # If a request has expired and its result arrives late, the status of the request changes, but
    # ``finished_at`` remains the time of the expiry.
    request.finished_at = request.finished_at or context.now
    request.updated_at = context.now
    return request


def _new_report(
    context: RequestContext, submission: Submission, device: Device, request: Request | None
) -> Report:
    body = submission.body
    has_tracker = context.settings.tracker_url is not None
    return Report(
        id=body.report_id,
        request_id=None if request is None else request.id,
        instance_id=device.instance_id,
        binding_id=device.binding_id,
        organization_id=device.organization_id,
        location_id=device.location_id,
        user_id=device.user_id,
        kind=body.kind,
        outcome=body.outcome,
        failure_reason=body.failure_reason,
        payload=submission.payload.decode(),
        payload_hash=submission.payload_hash,
        body_hash=submission.body_hash,
        tracker_status="pending" if has_tracker else "disabled",
        tracker_event_id=str(uuid.uuid4()),
        tracker_attempts=0,
        tracker_due_at=context.now if has_tracker else None,
        headline=submission.summary.headline,
        severity=submission.summary.severity,
        created_at=context.now,
        updated_at=context.now,
    )


def _reply(report: Report) -> SubmitResultReply:
    return record_of(SubmitResultReply, report, report_id=report.id)


def canonical_json(value: Any) -> bytes:
    """Return JSON with sorted keys and no spaces (similar to RFC 8785), for hashing."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode("utf-8", "surrogatepass")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _schema_of(model: dict[str, Any], kind: Kind, outcome: Outcome) -> dict[str, Any]:
    payload = {"$ref": f"#/components/schemas/{PAYLOADS[kind].__name__}"}
    fields = [{"required": [name]} for name in sorted(payload_fields())]
    properties = model["properties"] | {
        "kind": {"const": kind},
        "outcome": {"const": outcome},
        "report": {
            "description": "An object that has at least one field of the network or application"
            " payload must be a valid payload of the kind. Any other value is stored unchanged, and"
            " the report counts as a report without a payload.",
            "oneOf": [payload, {"not": {"type": "object", "anyOf": fields}}],
        },
    }
    if outcome == "completed":
        del properties["failureReason"]
    return {
        "type": "object",
        "title": f"{outcome} {kind} report",
        "properties": properties,
        "required": model["required"],
        "additionalProperties": False,
    }
