"""The JSON-RPC envelope, as strictly as the contract has it (contract: JSON-RPC envelope).

A request has ``jsonrpc``, ``id``, ``method`` and maybe ``params``, and no other key; a
notification is the same without ``id``. What is neither is answered with an error, whose ``id`` is
left out where the request's cannot be told.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from agent.wire.limits import INTEGER_MAX
from controlplane.operation.bodies import parse_any_json
from controlplane.operation.errors import Refusal

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
KEYS: Final = frozenset({"jsonrpc", "id", "method", "params"})
NOTIFICATIONS: Final = "notifications/"
RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
DEPTH_MAX: Final = 32
"""Lists and objects within each other. Arguments of a tool have three."""

Json = dict[str, Any]
Id = str | int


class RpcError(Exception):
    """A JSON-RPC error. ``request_id`` None: it is not known which request it answers."""

    def __init__(
        self, code: int, message: str, data: Any = None, request_id: Id | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.request_id = request_id


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """``request_id`` None: a notification, which nobody waits for."""

    request_id: Id | None
    method: str
    params: Json | None


def read_request(body: bytes) -> RpcRequest:
    """Return the request or notification in ``body``. Raises RpcError."""
    try:
        value = parse_any_json(body)
    except Refusal as refusal:
        raise RpcError(PARSE_ERROR, refusal.detail) from None
    if isinstance(value, list):
        raise _invalid("a batch is not served: send one request at a time")
    if not isinstance(value, dict):
        raise _invalid("the body must be one JSON-RPC request object")
    request_id = value.get("id") if is_id(value.get("id")) else None
    try:
        return _read(value)
    except RpcError as error:
        error.request_id = request_id
        raise


def is_id(value: object) -> bool:
    """Tell whether ``value`` is a string or an integer of the contract's range."""
    if isinstance(value, str):
        return _is_text(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= INTEGER_MAX


def write_result(request_id: Id, result: Json) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def write_error(error: RpcError) -> bytes:
    """Return the reply that says what went wrong."""
    said: Json = {"code": error.code, "message": error.message}
    if error.data is not None:
        said["data"] = error.data
    answered = {} if error.request_id is None else {"id": error.request_id}
    return _encode({"jsonrpc": "2.0", **answered, "error": said})


def _read(value: Json) -> RpcRequest:
    if unknown := sorted(set(value) - KEYS):
        names = ", ".join(repr(name[:32]) for name in unknown[:4])
        raise _invalid(f"no other keys than jsonrpc, id, method and params are served: {names}")
    if value.get("jsonrpc") != "2.0":
        raise _invalid('jsonrpc must be "2.0"')
    if "id" in value and not is_id(value["id"]):
        raise _invalid(f"id must be a string or an integer from -{INTEGER_MAX} to {INTEGER_MAX}")
    method = value.get("method")
    if not isinstance(method, str) or not method:
        raise _invalid("method must be a string")
    if "id" not in value and not method.startswith(NOTIFICATIONS):
        raise _invalid(f"id is missing: only methods that begin with {NOTIFICATIONS} go without")
    params = value.get("params")
    if "params" in value:
        if not isinstance(params, dict):
            raise _invalid("params must be an object")
        _require_shallow(params)
        _check_meta(params)
    if not _is_text([method, params]):
        raise _invalid("no text may hold half of a surrogate pair")
    return RpcRequest(value.get("id"), method, params)


def _check_meta(params: Json) -> None:
    if "_meta" not in params:
        return
    meta = params["_meta"]
    if not isinstance(meta, dict):
        raise RpcError(INVALID_PARAMS, "params._meta must be an object")
    if "progressToken" in meta and not is_id(meta["progressToken"]):
        raise RpcError(INVALID_PARAMS, "params._meta.progressToken must be a string or an integer")
    if RELATED_TASK in meta:
        task = meta[RELATED_TASK]
        if not isinstance(task, dict) or not isinstance(task.get("taskId"), str):
            raise RpcError(
                INVALID_PARAMS, f"params._meta.{RELATED_TASK} must be {{taskId: string}}"
            )


def _require_shallow(params: Json) -> None:
    level: list[Any] = [params]
    for _ in range(DEPTH_MAX):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise RpcError(INVALID_PARAMS, f"params are nested deeper than {DEPTH_MAX} levels")


def _is_text(value: Any) -> bool:
    """Tell whether UTF-8 can carry every text in ``value``: JSON can spell what it cannot."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _invalid(message: str) -> RpcError:
    return RpcError(INVALID_REQUEST, message)


def _encode(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
