"""One operation as a row: where it is, what it takes and answers, and how it can say no.

The routes, the OpenAPI document and the tests of every operation are made of these rows.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Literal

from agent.wire import codec
from agent.wire.base import Model
from agent.wire.validation import ValidationError
from controlplane.operation.bodies import parse_body, refusal_of, require_no_body
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import validation_error

Method = Literal["GET", "POST"]
Run = Callable[[RequestContext, Any], Model | None]
"""Answers one call inside a transaction. None is null on the wire."""
WRONG_PARAMETER: Final = "a parameter does not fit the contract"

ANYWHERE: Final = frozenset(
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
"""Refusals that every operation with a body and an API key can give."""

STATUSES: Final[Mapping[str, tuple[int, ...]]] = {
    "invalid_request": (400, 415),
    "validation_error": (400,),
    "invalid_cursor": (400,),
    "invalid_signature": (400,),
    "unauthenticated": (401,),
    "foreign_origin": (403,),
    "read_only_key": (403,),
    "manager_required": (403,),
    "foreign_location": (403,),
    "not_found": (404,),
    "device_not_found": (404,),
    "binding_not_found": (404,),
    "challenge_not_found": (404,),
    "request_not_found": (404,),
    "report_not_found": (404,),
    "report_empty": (404,),
    "link_not_found": (404,),
    "location_not_found": (404,),
    "token_not_found": (404,),
    "method_not_allowed": (405,),
    "body_timeout": (408,),
    "binding_revoked": (409,),
    "device_revoked": (409,),
    "challenge_used": (409,),
    "challenge_expired": (409,),
    "device_key_mismatch": (409,),
    "request_finished": (409,),
    "request_expired": (409,),
    "report_conflict": (409,),
    "too_many_open_requests": (409,),
    "kind_unsupported": (409,),
    "token_used": (409,),
    "token_expired": (409,),
    "body_too_large": (413,),
    "rate_limited": (429,),
    "internal_server_error": (500,),
    "unavailable": (503,),
}
"""The statuses under which each code of a refusal is sent."""

_OF_BODIES: Final = {("validation_error", 400), ("invalid_request", 415)}
"""What of `ANYWHERE` no operation gives that takes no body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation of the service.

    Attributes:
        name: unique in its area.
        body: model of the JSON body, or of path and query of a GET; None if there is neither.
        reply: type of the JSON reply.
        writes: whether it needs a write grant.
        refusals: codes beside those of `ANYWHERE`.
        events: description of the server-sent events that it sends to callers that prefer them.
        body_schema: narrows the JSON Schema of the body.
        successor: path of the operation that replaces this deprecated one.
    """

    name: str
    path: str
    method: Method = "POST"
    body: type[Model] | None
    reply: Any
    writes: bool
    description: str
    status: HTTPStatus = HTTPStatus.OK
    refusals: frozenset[str] = frozenset()
    events: str = ""
    body_schema: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    successor: str | None = None

    @property
    def has_body(self) -> bool:
        return self.method == "POST" and self.body is not None

    def codes(self) -> dict[int, list[str]]:
        """Return the codes with which a call can be refused, sorted, by status."""
        found: dict[int, list[str]] = {}
        grants = {"read_only_key"} if self.writes else set()
        for code in sorted(ANYWHERE | self.refusals | grants):
            for status in STATUSES[code]:
                if self.body or (code, status) not in _OF_BODIES:
                    found.setdefault(status, []).append(code)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure(Operation):
    """An operation that one function answers, in one transaction.

    Attributes:
        parse: returns the argument of ``run`` from the body, without the database. Raises the
            refusal of a wrong body.
        of_person: whether it requires a signed-in user, of any role.
        judges_role: whether it checks the role of a signed-in user itself, because its body names
            the organization. An API key needs the write grant as elsewhere.
    """

    parse: Callable[[bytes], Any]
    run: Run
    of_person: bool = False
    judges_role: bool = False

    def parse_parameters(self, path: Mapping[str, Any], query: Iterable[tuple[str, str]]) -> Any:
        """Return path and query as the model. Raises the refusal of wrong parameters."""
        values = dict(path)
        for name, value in query:
            if name in values:
                raise validation_error({name[:128]: ("must be given once",)}, WRONG_PARAMETER)
            values[name] = value
        assert self.body is not None  # noqa: S101 - a GET has a model of its parameters
        try:
            return codec.validate(values, self.body)
        except ValidationError as error:
            errors = refusal_of(error.issues).errors or {}
            raise validation_error(errors, WRONG_PARAMETER) from None


def procedure(
    path: str,
    body: type[Model] | None,
    reply: Any,
    run: Run,
    *,
    method: Method = "POST",
    name: str = "",
    status: HTTPStatus = HTTPStatus.OK,
    writes: bool = False,
    of_person: bool = False,
    judges_role: bool = False,
    refusals: Iterable[str] = (),
    parse: Callable[[bytes], Any] | None = None,
    body_schema: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    successor: str | None = None,
) -> Procedure:
    """Return the row of an operation.

    Args:
        run: its docstring describes the operation.
        name: default: the end of the path.
    """
    return Procedure(
        name=name or path.rpartition("/")[2],
        path=path,
        method=method,
        body=body,
        reply=reply,
        status=status,
        writes=writes,
        description=inspect.getdoc(run.func if isinstance(run, partial) else run) or "",
        refusals=frozenset(refusals),
        body_schema=body_schema,
        successor=successor,
        parse=parse or (partial(parse_body, body) if body else require_no_body),
        run=run,
        of_person=of_person,
        judges_role=judges_role,
    )


@dataclass(frozen=True, slots=True)
class Area:
    """A group of operations: ``name`` is the first half of their operation ids."""

    name: str
    description: str
    operations: tuple[Operation, ...]
