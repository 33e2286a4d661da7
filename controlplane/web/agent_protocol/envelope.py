"""The JSON-RPC envelope, checked as strictly as the contract requires.

A request has ``jsonrpc``, ``id``, ``method`` and optionally ``params``, and no other key. A
notification has the same keys without ``id``. Everything else is answered with an error. If the
request has no valid ``id``, the error has no ``id`` either.
"""

import json
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from agent.wire import codec
from agent.wire.base import Absent, Exact, Model
from agent.wire.limits import INTEGER_MAX
from agent.wire.validation import ValidationError
from controlplane.operation.bodies import parse_any_json
from controlplane.operation.errors import Refusal

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
NOTIFICATIONS: Final = "notifications/"
DEPTH_MAX: Final = 32
"""Maximum nesting of lists and objects. The arguments of a tool have three levels."""

Json = dict[str, Any]
Id = str | Annotated[int, Field(ge=-INTEGER_MAX, le=INTEGER_MAX)]


class RelatedTask(Model):
    task_id: str = Field(alias="taskId")


class Meta(Model):
    progress_token: Absent[Id] = Field(default=None, alias="progressToken")
    related_task: Absent[RelatedTask] = Field(
        default=None, alias="io.modelcontextprotocol/related-task"
    )


class Params(Model):
    meta: Absent[Meta] = Field(default=None, alias="_meta")


class IdOnly(Model):
    """The ``id`` of a request whose other parts are invalid. The error reply contains this id."""

    id: Absent[Id] = None


class Envelope(Exact):
    """A request or a notification. The MCP SDK validates ``params``, except ``_meta``."""

    jsonrpc: Literal["2.0"]
    id: Absent[Id] = None
    method: Annotated[str, StringConstraints(min_length=1)]
    params: Absent[Params] = None


class RpcError(Exception):
    """A JSON-RPC error. ``request_id`` is None if the id of the request is not known."""

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
    """``request_id`` is None for a notification, which gets no reply."""

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
        raise RpcError(INVALID_REQUEST, "batches are not supported: send one request at a time")
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "the body must be one JSON-RPC request object")
    try:
        return _read(value)
    except RpcError as error:
        error.request_id = _id_of(value)
        raise


def encode_result(request_id: Id, result: bytes) -> bytes:
    """Return the reply for a result that `encode` has encoded."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(request_id), result)


def encode_error(error: RpcError) -> bytes:
    """Return the reply for an error."""
    error_object: Json = {"code": error.code, "message": error.message}
    if error.data is not None:
        error_object["data"] = error.data
    id_field = {} if error.request_id is None else {"id": error.request_id}
    return encode({"jsonrpc": "2.0", **id_field, "error": error_object})


def encode(value: Json | Id) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _read(value: Json) -> RpcRequest:
    if not _is_encodable(value):
        raise RpcError(INVALID_REQUEST, "strings must not contain a lone surrogate")
    try:
        envelope = codec.validate(value, Envelope)
    except ValidationError as error:
        paths = [issue.where for issue in error.issues]
        is_only_meta_invalid = all(path.startswith("params._meta") for path in paths)
        message = f"{error.where[:64] or 'the request'} {error.reason}"
        code = INVALID_PARAMS if is_only_meta_invalid else INVALID_REQUEST
        raise RpcError(code, message) from None
    if envelope.id is None and not envelope.method.startswith(NOTIFICATIONS):
        message = f"id is missing: only methods that begin with {NOTIFICATIONS} have no id"
        raise RpcError(INVALID_REQUEST, message)
    params = value.get("params")
    _require_shallow(params or {})
    return RpcRequest(envelope.id, envelope.method, params)


def _id_of(value: Json) -> Id | None:
    try:
        request_id = codec.validate(value, IdOnly).id
    except ValidationError:
        return None
    return request_id if _is_encodable(request_id) else None


def _require_shallow(params: Json) -> None:
    level: list[Any] = [params]
    for _ in range(DEPTH_MAX):
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise RpcError(INVALID_PARAMS, f"params are nested deeper than {DEPTH_MAX} levels")


def _is_encodable(value: Any) -> bool:
    """Return whether all strings in ``value`` can be encoded in UTF-8.

    JSON can contain lone surrogates as escape sequences. These cannot be encoded.
    """
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
