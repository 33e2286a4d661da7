"""The life of a device: enrollment, heartbeats, two requests, their reports, revocation."""

import uuid
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agent.wire import routes
from tests.contract import golden
from tests.contract.service.calls.recorder import UNKNOWN_ID, Json, Recorder
from tests.unit.controlplane.simulated_device import SimulatedDevice

KEY: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
SECONDS_BETWEEN_CALLS: Final = 5
VERSION_1_TITLE: Final = f"POST {routes.REPORT_DETAIL} 1"
"""Title of the example of an application report. The payload of such a report has version 1."""


async def record(recorder: Recorder) -> None:
    device = recorder.service.device()
    device.private_key = KEY
    await _record_enrollment(recorder, device)
    for kind in ("application", "network"):
        await _record_report(recorder, device, kind)
    await _record_operator_calls(recorder, device)
    await _record_refusals(recorder, device)
    await recorder.call("POST", routes.REVOKE, body={"instanceId": device.instance_id})
    heartbeat = {"bindingId": device.binding_id, "foreground": False}
    await recorder.call("POST", routes.HEARTBEAT, body=heartbeat, title="409 binding_revoked")


async def _record_enrollment(recorder: Recorder, device: SimulatedDevice) -> None:
    body = {
        "instanceId": device.instance_id,
        "publicKey": device.public_key,
        "platform": "linux",
        "locationId": device.location_id,
        "legacyInstallId": "till-01",
        "appVersion": "0.1.0",
        "capabilities": ["network", "application"],
    }
    challenge = await recorder.call("POST", routes.CHALLENGE, body=body)
    answer = {
        "challengeId": challenge["challengeId"],
        "signature": device.sign(challenge["nonce"]),
    }
    device.binding_id = (await recorder.call("POST", routes.ENROLL, body=answer))["bindingId"]
    await recorder.call("POST", routes.CURRENT, body={})
    _advance_clock(recorder)
    heartbeat = {"bindingId": device.binding_id, "foreground": True}
    await recorder.call("POST", routes.HEARTBEAT, body=heartbeat)


async def _record_report(recorder: Recorder, device: SimulatedDevice, kind: str) -> None:
    """Make all calls of a request, from its creation to its report.

    ``recorder`` keeps only the last call of each operation as the example for docs/service.md. So
    the document shows the calls for the last kind of report.
    """
    _advance_clock(recorder)
    body = {"instanceId": device.instance_id, "kind": kind}
    request = (await recorder.call("POST", routes.CREATE_REQUEST, body=body))["requestId"]
    await recorder.call("POST", routes.ON_COMMANDS, body={})
    ids = {"requestId": request, "bindingId": device.binding_id}
    for status in ("received", "running"):
        _advance_clock(recorder)
        await recorder.call("POST", routes.ACKNOWLEDGE, body={**ids, "status": status})
    _advance_clock(recorder)
    payload = _payload(kind)
    submission = {
        **ids,
        "reportId": payload["reportId"],
        "kind": kind,
        "outcome": _outcome_of(payload),
        "report": payload,
    }
    await recorder.call("POST", routes.SUBMIT_RESULT, body=submission)


def _outcome_of(payload: Json) -> str:
    return "completed" if payload["completeness"] == "complete" else "partial"


def _payload(kind: str) -> Json:
    """Return the full payload of this kind, with a report id that depends only on the kind."""
    payload: Json = golden.document_of(f"payloads/{kind}-full")
    return payload | {"reportId": str(uuid.uuid5(UNKNOWN_ID, kind))}


async def _record_operator_calls(recorder: Recorder, device: SimulatedDevice) -> None:
    await recorder.call("POST", routes.LIST_DEVICES, body={})
    await recorder.call("POST", routes.DEVICE_DETAIL, body={"instanceId": device.instance_id})
    for kind in ("application", "network"):
        title = VERSION_1_TITLE if kind == "application" else f"POST {routes.REPORT_DETAIL}"
        body: Any = {"reportId": _payload(kind)["reportId"]}
        await recorder.call("POST", routes.REPORT_DETAIL, body=body, title=title)


async def _record_refusals(recorder: Recorder, device: SimulatedDevice) -> None:
    missing = {"instanceId": str(UNKNOWN_ID)}
    reader = recorder.service.make_key(can_write=False)
    other_location = recorder.service.make_key(locations=["loc-0002"])
    device_body = {"instanceId": device.instance_id}
    detail, revoke = routes.DEVICE_DETAIL, routes.REVOKE
    wrong = {"instanceId": "7", "cursor": 1, "instanceID": "x"}
    await recorder.call("POST", detail, body=wrong, title="400 validation_error")
    await recorder.call("POST", detail, body=[], title="400 invalid_request")
    bad_cursor = {**device_body, "cursor": "none"}
    await recorder.call("POST", detail, body=bad_cursor, title="400 invalid_cursor")
    await recorder.call("POST", detail, body=device_body, secret="", title="401 unauthenticated")
    await recorder.call("POST", revoke, body=device_body, secret=reader, title="403 read_only_key")
    await recorder.call(
        "POST", detail, body=device_body, secret=other_location, title="403 foreign_location"
    )
    await recorder.call("POST", detail, body=missing, title="404 device_not_found")
    await recorder.call("GET", detail, title="405 method_not_allowed")
    await recorder.call(
        "POST", detail, body={}, media_type="text/plain", title="415 invalid_request"
    )


def _advance_clock(recorder: Recorder) -> None:
    recorder.service.clock.advance(SECONDS_BETWEEN_CALLS)
