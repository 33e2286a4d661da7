"""Hooks of schemathesis for the retail API.

They insert existing ids, and permit refusals that no schema can describe. The process of
schemathesis loads this module. Of the generated calls that are valid according to the OpenAPI
document, three of four get existing ids, cursors and secrets. The hooks write the operations and
the statuses of their replies to the file that the environment variable ``SCHEMATHESIS_SEEN`` names.
"""

import atexit
import itertools
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any, Final

import httpx2
import schemathesis
from schemathesis import Case, HookContext, Response
from schemathesis.core.failures import Failure

from controlplane.retail import routes

NOT_IN_A_SCHEMA: Final = (
    "there is no",  # ids in a body that do not exist
    "initiated_at_to",  # a period that ends before it begins
)
"""Parts of the messages of refusals that no schema can predict."""
_service: Final = httpx2.Client(
    base_url=os.environ["SCHEMATHESIS_URL"],
    headers={"Authorization": f"Bearer {os.environ['SCHEMATHESIS_KEY']}"},
    timeout=120,
)
_seen: Final[Counter[str]] = Counter()
_turns: Final = itertools.count()
_cursors: Final[dict[str, str]] = {}
_refresh_tokens: Final[list[str]] = []


def _items(path: str, name: str = "items") -> list[dict[str, Any]]:
    reply = _service.get(path, params={"status": "completed"} if path == routes.SALES else {})
    reply.raise_for_status()
    items: list[dict[str, Any]] = reply.json()[name]
    return items


_ids: Final = {
    "good_id": [item["id"] for item in _items(routes.GOODS)],
    "sale_id": [item["id"] for item in _items(routes.SALES)],
    "category_id": [item["id"] for item in _items(routes.CATEGORIES)],
    "uom_id": [item["id"] for item in _items(routes.UOMS)],
}
_fees: Final = [item["id"] for item in _items(routes.FEES, "fee_items")]


@schemathesis.hook
def before_call(context: HookContext, case: Case, kwargs: dict[str, Any]) -> None:
    mode = None if case.meta is None else case.meta.generation.mode
    turn = next(_turns)
    if mode is None or not mode.is_positive or not turn % 4:
        return
    for name in case.path_parameters or {}:
        case.path_parameters[name] = _ids[name][turn % len(_ids[name])]
    if "cursor" in (case.query or {}):
        # The known cursors come from listings without filters, so filters are removed.
        case.query = {"status": "completed"} if case.path == routes.SALES else {}
        if case.path in _cursors:
            case.query["cursor"] = _cursors[case.path]
    if isinstance(case.body, dict):
        case.body = case.body | _replacements(case.path, case.body, turn)


@schemathesis.hook
def after_call(context: HookContext, case: Case, response: Response) -> None:
    try:
        reply = json.loads(response.content)
    except ValueError:
        reply = {}
    code = reply.get("code", "") if isinstance(reply, dict) else ""
    _seen[f"{case.method} {case.path} {response.status_code} {code}".strip()] += 1
    if response.status_code == 200 and isinstance(reply, dict):
        if reply.get("cursor") and set(case.query or {}) <= {"status"}:
            _cursors[case.path] = reply["cursor"]
        if "refresh_token" in reply:
            _refresh_tokens.append(reply["refresh_token"])


@schemathesis.hook
def filter_failure(context: HookContext, failure: Failure, case: Case, response: Response) -> bool:
    if type(failure).__name__ != "RejectedPositiveData":
        return True
    reply = json.loads(response.content)
    if reply.get("code") == "invalid_cursor":
        return False
    # Ignore the failure if no schema can express any of the mistakes that the reply names.
    messages = [
        f"{name}: {message}" for name, texts in reply["errors"].items() for message in texts
    ]
    return not all(any(known in message for known in NOT_IN_A_SCHEMA) for message in messages)


@atexit.register
def _write() -> None:
    _service.close()
    Path(os.environ["SCHEMATHESIS_SEEN"]).write_text(json.dumps(_seen))


def _replacements(path: str, body: dict[str, Any], turn: int) -> dict[str, Any]:
    """Return the fields of this body that are replaced, with their new values."""
    if path == routes.TOKENS:
        return {"api_key": os.environ["SCHEMATHESIS_API_KEY"]}
    if path == routes.REFRESH:
        return {"refresh_token": _refresh_tokens.pop() if _refresh_tokens else _new_refresh_token()}
    results: dict[str, Any] = {
        "uom_id": _ids["uom_id"][turn % len(_ids["uom_id"])],
        "vat": {"fee_item_id": _fees[turn % len(_fees)]},
    }
    if body.get("category_id") is not None:
        results["category_id"] = _ids["category_id"][turn % len(_ids["category_id"])]
    return results


def _new_refresh_token() -> str:
    body = {"api_key": os.environ["SCHEMATHESIS_API_KEY"]}
    reply = _service.post(routes.TOKENS, json=body)
    reply.raise_for_status()
    token: str = reply.json()["refresh_token"]
    return token
