"""One operation as a row: where it is, what it takes and answers, and how it can say no.

The routes, the OpenAPI document and the tests of every operation are made of these rows.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from agent.wire.base import Message
from controlplane.operation.bodies import parse_body, require_no_body
from controlplane.operation.context import RequestContext

Run = Callable[[RequestContext, Any], Message | None]
"""Answers one call inside a transaction. None is null on the wire."""

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
    "manager_needed": (403,),
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
    """``name`` is unique in its area, ``body`` the model of what is sent (None: nothing is),
    ``reply`` the type of the JSON that is answered. ``writes`` tells that the API key needs a write
    grant. ``refusals`` are codes beside those of `ANYWHERE`. ``events`` describes the server-sent
    events that are answered to who prefers them. ``body_schema`` makes the model's JSON Schema as
    narrow as what is taken. ``successor`` is the path of what replaced a deprecated operation.
    """

    name: str
    path: str
    body: type[Message] | None
    reply: Any
    writes: bool
    description: str
    refusals: frozenset[str] = frozenset()
    events: str = ""
    body_schema: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    successor: str | None = None

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

    ``of_person`` tells that only who is signed in may call it, whatever their role.
    ``judges_role`` tells that it judges the role of who is signed in by itself, because it is about
    an organization that its body names; of a key the write grant is asked for as elsewhere.
    ``parse`` makes what ``run`` takes of the body, or refuses it; it needs no database and is done
    first.
    """

    parse: Callable[[bytes], Any]
    run: Run
    of_person: bool = False
    judges_role: bool = False


def procedure(
    path: str,
    body: type[Message] | None,
    reply: Any,
    run: Run,
    *,
    writes: bool = False,
    of_person: bool = False,
    judges_role: bool = False,
    refusals: Iterable[str] = (),
    parse: Callable[[bytes], Any] | None = None,
    body_schema: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    successor: str | None = None,
) -> Procedure:
    """Return a row, named by the end of its path and described by its function's docstring."""
    return Procedure(
        name=path.rpartition("/")[2],
        path=path,
        body=body,
        reply=reply,
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
