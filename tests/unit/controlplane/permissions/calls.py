"""The calls that the permission tests make: at least one of every operation of the service.

The tests fail if an operation of the service has no calls in `call_tables.py`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from controlplane.accounts.oauth.metadata import RESOURCE_PATH as AGENT_PROTOCOL
from controlplane.agent_protocol.tools.registry import TOOLS
from controlplane.analytics import routes as figures
from controlplane.retail import routes as retail
from controlplane.retail.registry import OPERATIONS as RETAIL
from controlplane.web.console_api import PREFIX as CONSOLE
from controlplane.web.openapi.interfaces import AREAS
from tests.unit.controlplane.permissions.call_tables import (
    ADMINISTRATION_READS,
    CONSOLE_CALLS,
    DEVICE_CALLS,
    LIST,
    LOCATION_CALLS,
    LOCATION_WITH_SALES,
    MEMBER_CALLS,
    NOTHING,
    OPERATOR_CALLS,
    PROFILE_CALLS,
    PROFILE_LAST,
    RETAIL_CALLS,
    SUPPORT_CALLS,
    TOOL_CALLS,
    Body,
    Json,
    Mark,
    location_body,
    location_of,
)

PUBLIC_PREFIXES: Final = ("/.well-known/", "/api/auth/", "/api/v1/auth/")
PUBLIC: Final = {
    "/",
    "/healthz",
    "/readyz",
    "/openapi.json",
    "/docs",
    retail.DOCUMENT,
    "/console/sign-in",
    "/sign-in",
    "/sign-in/code",
    "/sign-in/end",
}
"""Paths that need no credential, or exchange one credential for another.

Other tests cover these paths.
"""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operation.

    Args:
        operations: The row of ``permission_tables.OPERATIONS`` for this call.
        rule: The row of ``permission_tables.LOCATIONS`` for this call.
        path: The path. For GET, values of ``body`` replace the placeholders in the path, and
            arguments whose name begins with ``?`` are the query string.
        body: Returns the arguments of the call for a target: the own location, another location of
            the organization, or a foreign one (``permission_tables.TARGETS``).
        mark: For a call that returns a list: returns a text that the reply contains if the object
            of the target is in the list. The text is, for example, the id of this object.
        tool: For a tool of the agent protocol: its name.
        is_stream: Whether the reply is a stream of events, which does not end by itself.
        writes: Whether the call may change the database.
    """

    name: str
    operations: str
    rule: str
    path: str
    body: Body
    mark: Mark | None = None
    method: str = "POST"
    tool: str = ""
    is_stream: bool = False
    writes: bool = False


FACADE_CALLS: Final = {
    "device": DEVICE_CALLS, "operator": OPERATOR_CALLS, "support": SUPPORT_CALLS,
}  # fmt: skip


def all_calls() -> Iterator[Call]:
    """Return every call of every operation."""
    yield from _facade_calls()
    yield from _figure_lists()
    for path, rows in CONSOLE_CALLS.items():
        for group, rule, body, mark in rows:
            yield Call(
                path.rpartition("/")[2], f"console {group}", rule, path, body, mark,
                is_stream=path.endswith("/changes"), writes=group == "writes",
            )  # fmt: skip
    yield from _administration()
    for path, profile_rows in (PROFILE_CALLS | PROFILE_LAST).items():
        for operations, rule, body in profile_rows:
            name, writes = path.removeprefix(CONSOLE), rule != NOTHING or path in PROFILE_LAST
            yield Call(name, operations, rule, path, body, writes=writes)
    for tool in TOOLS.values():
        group = "tools that write" if tool.writes else "tools that read"
        for rule, body, mark in TOOL_CALLS[tool.name]:
            yield Call(
                tool.name, group, rule, AGENT_PROTOCOL, body, mark,
                tool=tool.name, writes=tool.writes,
            )  # fmt: skip
    for operation in RETAIL:
        rule, body, mark = RETAIL_CALLS[operation.method, operation.path]
        group = "retail writes" if operation.writes else "retail reads"
        yield Call(
            operation.name,
            group,
            rule,
            operation.path,
            body,
            mark,
            operation.method,
            writes=operation.writes,
        )


def _administration() -> Iterator[Call]:
    """Return the calls of `MEMBER_CALLS` and `LOCATION_CALLS`."""
    groups = {"members, audit log": MEMBER_CALLS, "location settings": LOCATION_CALLS}
    for group, calls in groups.items():
        for path, rows in calls.items():
            for rule, body in rows:
                writes = path not in ADMINISTRATION_READS
                yield Call(path.removeprefix(CONSOLE), group, rule, path, body, writes=writes)


def _facade_calls() -> Iterator[Call]:
    for area in AREAS:
        for operation in area.operations:
            access = "writes" if operation.writes else "reads"
            if area.name in {"analytics", "reports"}:
                yield Call(
                    operation.name, "figures", LOCATION_WITH_SALES, operation.path, location_body()
                )
                continue
            kind = next(name for name, group in FACADE_CALLS.items() if operation.path in group)
            for rule, body, mark in FACADE_CALLS[kind][operation.path]:
                yield Call(
                    operation.name,
                    f"{kind} {access}",
                    rule,
                    operation.path,
                    body,
                    mark,
                    writes=operation.writes,
                )


def _figure_lists() -> Iterator[Call]:
    all_locations, path = location_body(locationMode="all"), figures.FINANCIAL_SUMMARY
    yield Call("financialSummary of all", "figures", LOCATION_WITH_SALES, path, all_locations)
    yield Call(
        "financialSummary lists",
        "figures",
        LIST,
        path,
        lambda c, _t: all_locations(c, "own"),
        location_of,
    )


def is_public(path: str) -> bool:
    is_file = "." in path.rpartition("/")[2]
    return path in PUBLIC or is_file or path.startswith(PUBLIC_PREFIXES)


def content_of(call: Call, values: Json) -> tuple[str, str, bytes]:
    """Return the path, the query string and the body of a call with these arguments."""
    if call.tool:
        params = {"name": call.tool, "arguments": values}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return call.path, "", json.dumps(body).encode()
    if call.method == "GET":
        query = "&".join(f"{name[1:]}={value}" for name, value in values.items() if name[0] == "?")
        path = call.path
        for name, value in values.items():
            path = path.replace(f"{{{name}}}", str(value))
        return path, query, b""
    return call.path, "", json.dumps(values).encode()
