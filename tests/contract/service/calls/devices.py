"""The life of a device: enrollment, heartbeats, two requests, their reports, revocation."""

import uuid
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agent.wire import routes
from tests.contract import golden
from tests.contract.service.calls.recorder import NEVER, Json, Recorder
from tests.unit.controlplane.simulated_device import SimulatedDevice

KEY: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
SECONDS_BETWEEN: Final = 5


async def record(kept: Recorder) -> None:
    device = kept.service.device()
    device.private_key = KEY
    await _enrolment(kept, device)
    for kind in ("application", "network"):
        await _report(kept, device, kind)
    await _operator(kept, device)
    await _refusals(kept, device)
    await kept.call("POST", routes.REVOKE, sent={"instanceId": device.instance_id})
    gone = {"bindingId": device.binding_id, "foreground": False}
    await kept.call("POST", routes.HEARTBEAT, sent=gone, of="409 binding_revoked")


async def _enrolment(kept: Recorder, device: SimulatedDevice) -> None:
    described = {
        "instanceId": device.instance_id,
        "publicKey": device.public_key,
        "platform": "linux",
        "locationId": device.location_id,
        "legacyInstallId": "till-01",
        "appVersion": "0.1.0",
        "capabilities": ["network", "application"],
    }
    challenge = await kept.call("POST", routes.CHALLENGE, sent=described)
    answer = {
        "challengeId": challenge["challengeId"],
        "signature": device.sign(challenge["nonce"]),
    }
    device.binding_id = (await kept.call("POST", routes.ENROLL, sent=answer))["bindingId"]
    await kept.call("POST", routes.CURRENT, sent={})
    _later(kept)
    heartbeat = {"bindingId": device.binding_id, "foreground": True}
    await kept.call("POST", routes.HEARTBEAT, sent=heartbeat)


async def _report(kept: Recorder, device: SimulatedDevice, kind: str) -> None:
    """Make all calls of a request, from its creation to its report.

    The examples of each kind replace the examples of the previous kind, so that the document shows
    the last kind.
    """
    _later(kept)
    requests = {"instanceId": device.instance_id, "kind": kind}
    request = (await kept.call("POST", routes.CREATE_REQUEST, sent=requests))["requestId"]
    await kept.call("POST", routes.ON_COMMANDS, sent={})
    named = {"requestId": request, "bindingId": device.binding_id}
    for status in ("received", "running"):
        _later(kept)
        await kept.call("POST", routes.ACKNOWLEDGE, sent={**named, "status": status})
    _later(kept)
    payload = _payload(kind)
    sent = {
        **named,
        "reportId": payload["reportId"],
        "kind": kind,
        "outcome": payload_outcome(payload),
        "report": payload,
    }
    await kept.call("POST", routes.SUBMIT_RESULT, sent=sent)


def payload_outcome(payload: Json) -> str:
    return "completed" if payload["completeness"] == "complete" else "partial"


def _payload(kind: str) -> Json:
    """Return the full payload of this kind, with a report id that depends on the kind only."""
    payload: Json = golden.document_of(f"payloads/{kind}-full")
    return payload | {"reportId": str(uuid.uuid5(NEVER, kind))}


async def _operator(kept: Recorder, device: SimulatedDevice) -> None:
    await kept.call("POST", routes.LIST_DEVICES, sent={})
    await kept.call("POST", routes.DEVICE_DETAIL, sent={"instanceId": device.instance_id})
    for kind in ("application", "network"):
        of = f"POST {routes.REPORT_DETAIL}" + (" 1" if kind == "application" else "")
        queries: Any = {"reportId": _payload(kind)["reportId"]}
        await kept.call("POST", routes.REPORT_DETAIL, sent=queries, of=of)


async def _refusals(kept: Recorder, device: SimulatedDevice) -> None:
    missing = {"instanceId": str(NEVER)}
    reader = kept.service.make_key(can_write=False)
    elsewhere = kept.service.make_key(locations=["loc-0002"])
    of_device = {"instanceId": device.instance_id}
    detail, revoke = routes.DEVICE_DETAIL, routes.REVOKE
    wrong = {"instanceId": "7", "cursor": 1, "instanceID": "x"}
    await kept.call("POST", detail, sent=wrong, of="400 validation_error")
    await kept.call("POST", detail, sent=[], of="400 invalid_request")
    again = {**of_device, "cursor": "none"}
    await kept.call("POST", detail, sent=again, of="400 invalid_cursor")
    await kept.call("POST", detail, sent=of_device, secret="", of="401 unauthenticated")
    await kept.call("POST", revoke, sent=of_device, secret=reader, of="403 read_only_key")
    await kept.call("POST", detail, sent=of_device, secret=elsewhere, of="403 foreign_location")
    await kept.call("POST", detail, sent=missing, of="404 device_not_found")
    await kept.call("GET", detail, of="405 method_not_allowed")
    await kept.call("POST", detail, sent={}, media_type="text/plain", of="415 invalid_request")


def _later(kept: Recorder) -> None:
    kept.service.clock.advance(SECONDS_BETWEEN)
