"""docs/service.md: an example of each operation of the service, and the tests that cover it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agent.wire import routes as devices
from controlplane.agent_protocol.tools.registry import TOOLS
from controlplane.analytics import routes as figures
from controlplane.operation.operation import Operation
from controlplane.retail import routes as retail
from controlplane.retail.registry import OPERATIONS as RETAIL
from controlplane.support import routes as support
from controlplane.web.openapi.interfaces import OPERATIONS
from tests.contract.service.calls import agents
from tests.contract.service.coverage.tables import coverage_tables
from tests.paths import ROOT

PATH: Final = ROOT / "docs" / "service.md"

INTRODUCTION: Final = """\
# Every operation of the service, by example

What `venue-control serve` answers, operation by operation, and which test saw it. A test asks a
running service every call below and fails if a reply differs from this text; `make service-doc`
writes it anew. Where the contract is silent: [controlplane.md](controlplane.md),
[figures.md](figures.md), [support.md](support.md) and [agent-protocol.md](agent-protocol.md).

| at | is | credential | described by |
|---|---|---|---|
| `/api/public/v1/remoteControl/…` | devices and operators | key or session | `/openapi.json` |
| `/api/public/v1/support/…` | support | key or session | `/openapi.json` |
| `/api/public/v1/analytics/…`, `reports/…` | figures | key or session | `/openapi.json` |
| `/api/v1/…` | the retail API | an access token | `/api/v1/openapi.json` |
| `/api/mcp/v1` | the agent protocol | an API key | `tools/list` |

A key or token is sent as `Authorization: Bearer …`, a session as a cookie
([accounts.md](accounts.md)), a body as `Content-Type: application/json`; the examples leave them
out. Of a list they show the first element, and `"…"` for more. Ids stand for
those that a run draws, and `…` for what is secret or random. The merchant is the sandbox's
([figures.md](figures.md#a-merchant-to-try-it-with)), and it is 2026-11-20, 12:00 UTC. API keys are
made by `venue-control keys create`, those of the retail API by `venue-control retail keys create`.
"""
_DEVICE_SIDE: Final = (
    devices.CHALLENGE,
    devices.ENROLL,
    devices.CURRENT,
    devices.HEARTBEAT,
    devices.ON_COMMANDS,
    devices.ACKNOWLEDGE,
    devices.SUBMIT_RESULT,
)
_OPERATOR_SIDE: Final = (
    devices.CREATE_REQUEST,
    devices.LIST_DEVICES,
    devices.DEVICE_DETAIL,
    devices.REPORT_DETAIL,
    devices.REVOKE,
)
_SUPPORT: Final = (support.CONTACT, support.INSPECT, support.CONFIRM, support.DISCONNECT)
_CURRENT_FIGURES: Final = (
    figures.DASHBOARD,
    figures.FINANCIAL_SUMMARY,
    figures.VENUE_FINANCIAL_PULSE,
)
_RETAIL: Final = (
    ("POST", retail.GOODS),
    ("GET", retail.GOOD),
    ("GET", retail.GOODS),
    ("GET", retail.CATEGORIES),
    ("GET", retail.UOMS),
    ("GET", retail.FEES),
    ("GET", retail.SALES),
    ("GET", retail.SALE),
    ("GET", retail.EMPLOYEES),
    ("GET", retail.POINTS_OF_SALE),
)
_TOKENS: Final = {
    retail.TOKENS: "Exchange an API key for an access token, which lives for an hour.",
    retail.REFRESH: "Exchange a refresh token for the next tokens. It is used once: a second use"
    " ends all that came of the same key's exchange.",
}
_FACADE_REFUSALS: Final = (
    "400 validation_error", "400 of a period", "400 invalid_request", "400 invalid_cursor",
    "401 unauthenticated", "403 read_only_key", "403 foreign_location", "403 manager_required",
    "404 device_not_found", "404 location_not_found", "404 token_not_found",
    "405 method_not_allowed", "409 binding_revoked", "409 token_used", "409 token_expired",
    "415 invalid_request", "500", "503",
)  # fmt: skip
_RETAIL_REFUSALS: Final = (
    "400 of a good", "400 of a parameter", "400 of no object", "400 of a cursor", "401 of retail",
    "403 of retail", "404 of retail", "409 existing_entity_conflict", "415 of retail",
    "429 of retail", "500 of retail", "503 of retail",
)  # fmt: skip
_AGENTS_REFUSALS: Final = (
    agents.MISTAKE, agents.FOREIGN, agents.MALFORMED, agents.NOBODY, agents.OTHER_METHOD,
)  # fmt: skip
VERSION_1: Final = f"POST {devices.REPORT_DETAIL} 1"


def operations() -> tuple[str, ...]:
    """Return the method and path of every operation that the service serves."""
    facade = (f"POST {each.path}" for each in OPERATIONS)
    tokens = (f"POST {path}" for path in _TOKENS)
    tools = (f"{agents.TOOL}{name}" for name in TOOLS)
    return (*facade, *tokens, *(f"{each.method} {each.path}" for each in RETAIL), *tools)


def written(examples: Mapping[str, str]) -> str:
    """Return the document. ``examples`` maps the name of each example to its Markdown."""
    return "\n".join(_parts(examples))


def _parts(examples: Mapping[str, str]) -> Iterator[str]:
    yield INTRODUCTION
    by_path = {each.path: each for each in OPERATIONS}
    deprecated = tuple(each.path for each in OPERATIONS if each.successor)
    others = (*_DEVICE_SIDE, *_OPERATOR_SIDE, *_SUPPORT, *_CURRENT_FIGURES, *deprecated)
    for title, paths in (
        ("Devices", _DEVICE_SIDE),
        ("Operators", _OPERATOR_SIDE),
        ("Support", _SUPPORT),
        ("Figures", _CURRENT_FIGURES),
        ("Figures: deprecated operations", deprecated),
        ("Further operations", tuple(path for path in by_path if path not in others)),
    ):
        if paths:
            yield f"## {title}\n"
        for path in paths:
            yield from _operation(by_path[path], examples)
    yield from _retail(examples)
    yield from _agents(examples)
    for title, names in (
        ("Refusals", _FACADE_REFUSALS),
        ("Refusals of the retail API", _RETAIL_REFUSALS),
        ("Refusals of the agent protocol", _AGENTS_REFUSALS),
    ):
        yield f"## {title}\n"
        yield from (examples[name] for name in names)
    yield from coverage_tables()


def _operation(operation: Operation, examples: Mapping[str, str]) -> Iterator[str]:
    name = operation.path.removeprefix("/api/public/v1/").replace("/", ".")
    yield f"### {name}\n"
    yield f"{operation.description}\n"
    yield examples[f"POST {operation.path}"]
    if operation.path == devices.REPORT_DETAIL:
        yield "A report of kind application has a payload of version 1:\n"
        yield examples[VERSION_1]


def _retail(examples: Mapping[str, str]) -> Iterator[str]:
    yield "## Retail: tokens\n"
    for path, words in _TOKENS.items():
        yield f"### POST {path}\n"
        yield f"{words}\n"
        yield examples[f"POST {path}"]
    yield "## Retail: catalog, sales, structure\n"
    rows: dict[tuple[str, str], Any] = {(each.method, each.path): each for each in RETAIL}
    for method, path in (*_RETAIL, *(key for key in rows if key not in _RETAIL)):
        yield f"### {method} {path}\n"
        yield f"{rows[method, path].description}\n"
        yield examples[f"{method} {path}"]


def _agents(examples: Mapping[str, str]) -> Iterator[str]:
    yield "## Agents\n"
    for name, tool in TOOLS.items():
        yield f"### {name}\n"
        yield f"{tool.description}\n"
        yield examples[f"{agents.TOOL}{name}"]
