"""One operation as a row: its path, its body and reply, and the codes of its refusals.

The routes, the OpenAPI documents and the tests of all operations are built from these rows.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Literal, get_type_hints

from agent.wire.base import Model
from controlplane.operation.bodies import parse_body, require_no_body
from controlplane.operation.context import RequestContext

Method = Literal["GET", "POST"]
Run = Callable[[RequestContext, Any], Model | None]
"""Answers one call inside a transaction. The result None is sent as null."""
BodySchema = Callable[[dict[str, Any]], dict[str, Any]]
"""Takes the JSON Schema of a body and returns a narrower schema."""

COMMON_CODES: Final = frozenset(
    {
        "invalid_request",
        "validation_error",
        "unauthenticated",
        "foreign_origin",
        "body_timeout",
        "body_too_large",
        "rate_limited",
        "internal_server_error",
        "unavailable",
    }
)
"""Codes of the refusals that every operation with a body and a credential can return."""

CODES: Final[Mapping[int, tuple[str, ...]]] = {
    400: ("invalid_request", "validation_error", "invalid_cursor", "invalid_signature"),
    401: ("unauthenticated",),
    403: ("foreign_origin", "read_only_key", "manager_required", "foreign_location"),
    404: (
        *("not_found", "device_not_found", "binding_not_found", "challenge_not_found"),
        *("request_not_found", "report_not_found", "report_empty", "link_not_found"),
        *("location_not_found", "token_not_found"),
        *("alert_not_found", "silence_not_found", "rule_not_found", "route_not_found"),
    ),
    405: ("method_not_allowed",),
    408: ("body_timeout",),
    409: (
        *("binding_revoked", "device_revoked", "challenge_used", "challenge_expired"),
        *("device_key_mismatch", "request_finished", "request_expired", "report_conflict"),
        *("too_many_open_requests", "kind_unsupported", "token_used", "token_expired"),
        "existing_entity_conflict",
    ),
    413: ("body_too_large",),
    415: ("invalid_request",),
    429: ("rate_limited",),
    500: ("internal_server_error",),
    503: ("unavailable",),
}
"""The codes of refusals of the facade and the retail API, by HTTP status. Operations outside these
interfaces, such as those of pending requests, have further codes."""

_IMPOSSIBLE_WITHOUT_BODY: Final[Mapping[int, set[str]]] = {
    400: {"validation_error"},
    415: {"invalid_request"},
}
"""Codes that an operation without a body cannot return, by status."""
_IMPOSSIBLE_FOR_GET: Final[Mapping[int, set[str]]] = {
    400: {"invalid_request"},
    408: {"body_timeout"},
    413: {"body_too_large"},
    415: {"invalid_request"},
}
"""Codes that a GET operation cannot return, by status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation of the service.

    Attributes:
        name: unique in its area.
        body: model of the JSON body. For a GET, model of the parameters in path and query. None if
            the operation takes neither a body nor parameters.
        reply: type of the JSON reply.
        writes: whether it needs a write grant.
        is_public: whether it can be called without a credential.
        refusals: codes of refusals in addition to the codes in `COMMON_CODES`.
        events: description of the server-sent events that the operation sends to callers that
            prefer events.
        body_schema: narrows the JSON Schema of the body.
        successor: path of the operation that replaces this deprecated one.
    """

    name: str
    path: str
    method: Method = "POST"
    body: type[Model] | None
    reply: Any
    writes: bool
    is_public: bool = False
    description: str
    status: HTTPStatus = HTTPStatus.OK
    refusals: frozenset[str] = frozenset()
    events: str = ""
    body_schema: BodySchema | None = None
    successor: str | None = None

    @property
    def has_body(self) -> bool:
        return self.method == "POST" and self.body is not None

    @property
    def is_paged(self) -> bool:
        return self.body is not None and "cursor" in self.body.model_fields

    def codes(self) -> dict[int, list[str]]:
        """Return the sorted codes with which a call can be refused, by status."""
        possible = COMMON_CODES | self.refusals
        if self.writes:
            possible |= {"read_only_key"}
        if self.is_paged:
            possible |= {"invalid_cursor"}
        if self.is_public:
            possible -= {"foreign_origin"}
        impossible: Mapping[int, set[str]] = {}
        if self.method == "GET":
            impossible = _IMPOSSIBLE_FOR_GET
        elif self.body is None:
            impossible = _IMPOSSIBLE_WITHOUT_BODY
        results = {
            status: sorted(possible.intersection(codes) - impossible.get(status, set()))
            for status, codes in CODES.items()
        }
        return {status: codes for status, codes in results.items() if codes}


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure(Operation):
    """An operation that one function answers, in one transaction.

    Attributes:
        parse: returns the argument of ``run`` from the body, without the database. Raises a refusal
            if the body is invalid.
        requires_session: whether it requires a signed-in user, of any role.
        is_long: whether it only reads data and can take long, such as an operation for figures.
            Such operations run in separate processes, so that heartbeats do not wait for them.
        checks_role: whether ``run`` checks the role of a signed-in user itself, because the body
            names the organization. An API key still needs a write grant if ``writes`` is set.
    """

    parse: Callable[[bytes], Any]
    run: Run
    is_long: bool = False
    requires_session: bool = False
    checks_role: bool = False


def procedure(
    path: str,
    run: Run,
    *,
    name: str = "",
    body: type[Model] | None = None,
    parse: Callable[[bytes], Any] | None = None,
    refusals: Iterable[str] = (),
    **options: Any,
) -> Procedure:
    """Return the row of an operation.

    Args:
        run: its docstring describes the operation, and its annotations name the models of the body
            and the reply.
        name: by default the last part of the path.
        body: model of the body. Only needed if ``run`` takes a different type, which ``parse``
            returns.
        options: further fields of `Procedure`.
    """
    function = run.func if isinstance(run, partial) else run
    hints = get_type_hints(function)
    reply = hints.pop("return")
    annotation = list(hints.values())[-1]  # the last parameter is the body
    body = body or (None if annotation is type(None) else annotation)
    options.setdefault("writes", False)
    return Procedure(
        name=name or path.rpartition("/")[2],
        path=path,
        body=body,
        reply=reply,
        description=inspect.getdoc(function) or "",
        refusals=frozenset(refusals),
        parse=parse or (partial(parse_body, body) if body else require_no_body),
        run=run,
        **options,
    )


@dataclass(frozen=True, slots=True)
class Area:
    """A group of operations: ``name`` is the first half of their operation ids."""

    name: str
    description: str
    operations: tuple[Operation, ...]
