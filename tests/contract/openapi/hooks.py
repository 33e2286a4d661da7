"""Hooks of schemathesis for this service.

They insert existing ids, and permit refusals that no schema can describe. The process of
schemathesis loads this module. Three of four generated bodies that the OpenAPI document permits get
ids of existing objects, and all bodies about figures get a location with sales. If an object does
not exist yet, the hooks create it with additional calls. The hooks write the operations and the
statuses of their replies to the file that the environment variable ``SCHEMATHESIS_SEEN`` names.
``SCHEMATHESIS_TOKENS`` contains tokens of support links, which no operation can create.
"""

import atexit
import itertools
import json
import os
import uuid
from collections import Counter, deque
from pathlib import Path
from typing import Any, Final

import httpx2
import schemathesis
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from schemathesis import Case, HookContext, Response
from schemathesis.core.failures import Failure

NOT_IN_A_SCHEMA: Final = {"invalid_cursor", "invalid_signature"}
"""Codes of refusals that no schema can predict: a cursor is opaque, and a signature can be verified
only with the key.
"""
KEPT_MAX: Final = 8
"""Maximum number of challenges, devices, requests and reports that are kept for later calls."""
PREFIX: Final = "/api/public/v1/remoteControl/"

_service: Final = httpx2.Client(
    base_url=os.environ["SCHEMATHESIS_URL"],
    headers={"Authorization": f"Bearer {os.environ['SCHEMATHESIS_KEY']}"},
    timeout=120,
)

_key: Final = Ed25519PrivateKey.generate()
_public_key: Final = (
    _key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo).hex()
)
_seen: Final[Counter[str]] = Counter()
_turns: Final = itertools.count()
_challenges: Final[deque[dict[str, Any]]] = deque(maxlen=KEPT_MAX)
_devices: Final[deque[dict[str, Any]]] = deque(maxlen=KEPT_MAX)
_requests: Final[deque[dict[str, Any]]] = deque(maxlen=KEPT_MAX)
_reports: Final[deque[str]] = deque(maxlen=KEPT_MAX)
_cursors: Final[dict[str, str]] = {}
_tokens: Final = os.environ["SCHEMATHESIS_TOKENS"].split(",")
_tokens_taken: Final = itertools.count()


@schemathesis.hook
def before_call(context: HookContext, case: Case, kwargs: dict[str, Any]) -> None:
    mode = None if case.meta is None else case.meta.generation.mode
    if mode is None or not mode.is_positive or not isinstance(case.body, dict):
        return
    if next(_turns) % 4 or _is_about_figures(case.body, _name(case)):
        is_support = _name(case) in {"inspect", "confirm", "disconnect"}
        fields_of = _support_body if is_support else _replacements
        case.body = case.body | fields_of(_name(case), case.body)


@schemathesis.hook
def after_call(context: HookContext, case: Case, response: Response) -> None:
    try:
        reply = json.loads(response.content)
    except ValueError:
        reply = None
    code = reply.get("code", "") if isinstance(reply, dict) else ""
    _seen[f"{_name(case)} {response.status_code} {code}".strip()] += 1
    if response.status_code == 200 and isinstance(reply, dict) and isinstance(case.body, dict):
        _remember(_name(case), case.body, reply)


@schemathesis.hook
def filter_failure(context: HookContext, failure: Failure, case: Case, response: Response) -> bool:
    if type(failure).__name__ != "RejectedPositiveData":
        return True
    return bool(json.loads(response.content).get("code") not in NOT_IN_A_SCHEMA)


@atexit.register
def _write() -> None:
    _service.close()
    Path(os.environ["SCHEMATHESIS_SEEN"]).write_text(json.dumps(_seen))


def _name(case: Case) -> str:
    return case.path.rpartition("/")[2]


def _replacements(name: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of this body that are replaced, with their new values."""
    if _is_about_figures(body, name):
        return _figures_body(body)
    if name == "challenge":
        return {"publicKey": _public_key}
    if name == "enroll":
        return _answer(_challenges.popleft() if _challenges else _new_challenge())
    if name == "acknowledge" or (name == "submitResult" and "requestId" in body):
        request = _open_request(body.get("kind"))
        ids = {key: request[key] for key in ("requestId", "bindingId")}
        # Each report needs a new id, because the service refuses a repeated id.
        return ids if name == "acknowledge" else ids | {"reportId": str(uuid.uuid4())}
    if name == "reportDetail":
        return {"reportId": _report_id()}
    results: dict[str, Any] = {} if name != "submitResult" else {"reportId": str(uuid.uuid4())}
    results |= {key: _device()[key] for key in ("instanceId", "bindingId") if key in body}
    if "cursor" in body and name in _cursors:
        results["cursor"] = _cursors[name]
    return results


def _is_about_figures(body: dict[str, Any], name: str) -> bool:
    return "locationId" in body and name != "challenge"


def _figures_body(body: dict[str, Any]) -> dict[str, Any]:
    """Return a location that has sales, and a valid period.

    The period "custom" needs two dates in order. A schema could express this only if it repeated
    all other fields.
    """
    parameters: dict[str, Any] = {"locationId": "loc-0001"}
    if "from" in body or "to" in body:
        parameters |= {"period": "custom", "from": "2026-11-01", "to": "2026-11-20"}
    elif body.get("period") == "custom":
        parameters["period"] = "last7"
    return parameters


def _support_body(name: str, _body: dict[str, Any]) -> dict[str, Any]:
    """Return a body with a token. ``confirm`` gets a different token in each call. The other
    operations get the last token.
    """
    if name == "confirm":
        token = _tokens[next(_tokens_taken) % len(_tokens)]
        return {"token": token, "organizationId": "org-0001"}
    return {"token": _tokens[-1]}


def _post(name: str, **body: Any) -> dict[str, Any]:
    response = _service.post(PREFIX + name, json=body)
    response.raise_for_status()
    reply: dict[str, Any] = response.json()
    _remember(name, body, reply)
    return reply


def _new_challenge() -> dict[str, Any]:
    _post(
        "challenge",
        instanceId=str(uuid.uuid4()),
        publicKey=_public_key,
        platform="linux",
        locationId="loc-0001",
        legacyInstallId="till",
        capabilities=[],
    )
    return _challenges.pop()


def _answer(challenge: dict[str, Any]) -> dict[str, Any]:
    signature = _key.sign(challenge["nonce"].encode()).hex()
    return {"challengeId": challenge["challengeId"], "signature": signature}


def _device() -> dict[str, Any]:
    """Return a device that has a binding."""
    if not _devices:
        _post("enroll", **_answer(_new_challenge()))
    return _devices[-1]


def _open_request(kind: str | None) -> dict[str, Any]:
    """Return an unfinished request of this kind, or of any kind if ``kind`` is None."""
    for request in _requests:
        if kind in {None, request["kind"]}:
            return request
    return _post("createRequest", instanceId=_device()["instanceId"], kind=kind or "network")


def _report_id() -> str:
    if not _reports:
        binding = _device()["bindingId"]
        fields = {"kind": "network", "outcome": "failed"}
        _post("submitResult", bindingId=binding, reportId=str(uuid.uuid4()), **fields)
    return _reports[-1]


def _remember(name: str, body: dict[str, Any], reply: dict[str, Any]) -> None:
    if name == "challenge" and body["publicKey"] == _public_key:
        _challenges.append(reply)
    elif name == "enroll":
        _devices.append(reply)
    elif name == "createRequest":
        _requests.append(reply)
    elif name == "submitResult":
        _reports.append(reply["reportId"])
        _forget(_requests, "requestId", reply["requestId"])
    elif name == "revoke":
        for device in [device for device in _devices if device["instanceId"] == body["instanceId"]]:
            _forget(_requests, "bindingId", device["bindingId"])
        _forget(_devices, "instanceId", body["instanceId"])
    if reply.get("nextCursor"):
        _cursors[name] = reply["nextCursor"]


def _forget(records: deque[dict[str, Any]], name: str, value: Any) -> None:
    for record in [each for each in records if each[name] == value]:
        records.remove(record)
