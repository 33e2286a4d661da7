"""The web console: its static files, and a report rendered as a page for its frame."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from importlib.resources import files
from typing import Annotated

from pydantic import StringConstraints
from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agent.presentation.page.html import report_page, style_hash
from agent.presentation.report_csv import report_csv, tables_of
from agent.wire.base import Exact
from agent.wire.operator_operations import ReportDetail, ReportDetailRequest
from agent.wire.payloads.by_kind import ReportPayload
from controlplane.devices.overview.records import ReportTableRequest
from controlplane.devices.overview.report_changes import compared, earlier_than
from controlplane.devices.reading import read_report
from controlplane.operation.bodies import parse_body
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal, invalid_field
from controlplane.storage.tables import Report
from controlplane.web.admission import admit, require_json, require_method
from controlplane.web.bodies import read_body, read_model
from controlplane.web.core import Core
from controlplane.web.pipeline import run

MEDIA_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
PAGES = {
    "/": "index.html",
    "/console/console.css": "console.css",
    "/console/monitoring.css": "monitoring.css",
    "/console/figures.css": "figures.css",
    "/console/accounts.css": "accounts.css",
    "/console/signing_in.js": "signing_in.js",
    "/console/routes.js": "routes.js",
    "/console/joining.js": "joining.js",
    "/console/accounts.js": "accounts.js",
    "/console/profile.js": "profile.js",
    "/console/members.js": "members.js",
    "/console/audit.js": "audit.js",
    "/console/support.js": "support.js",
    "/console/forms.js": "forms.js",
    "/console/oauth.css": "oauth.css",
    "/console/figures.js": "figures.js",
    "/console/venue.js": "venue.js",
    "/console/venue_parts.js": "venue_parts.js",
    "/console/charts.js": "charts.js",
    "/console/amounts.js": "amounts.js",
    "/console/pending_requests.js": "pending_requests.js",
    "/console/timeline.js": "timeline.js",
    "/console/main.js": "main.js",
    "/console/facade.js": "facade.js",
    "/console/elements.js": "elements.js",
    "/console/devices.js": "devices.js",
    "/console/device_names.js": "device_names.js",
    "/console/device.js": "device.js",
    "/console/home.js": "home.js",
    "/console/request_dialog.js": "request_dialog.js",
    "/console/downloads.js": "downloads.js",
    "/console/report.js": "report.js",
    "/console/changes.js": "changes.js",
    "/console/announcements.js": "announcements.js",
    "/console/dialogs.js": "dialogs.js",
}
FRAMED_POLICY = "sandbox; default-src 'none'; style-src {style}; frame-ancestors 'none'"


def console_policy() -> str:
    """Return the Content Security Policy of the console.

    A report's frame inherits it (HTML, 7.4.3), so the one style sheet of reports is named too.
    """
    return (
        "default-src 'none'; script-src 'self'; connect-src 'self'; img-src data:; "
        f"style-src 'self' {style_hash()}; frame-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def console_routes(core: Core) -> list[Route]:
    policy = console_policy()
    headers = {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-cache",
    }
    return [
        *(
            Route(path, Page(_content(name), _media_type(name), headers))
            for path, name in PAGES.items()
        ),
        Route("/console/report", ReportPageEndpoint(core)),
        Route("/console/report-table", ReportTableEndpoint(core)),
        Route("/console/sign-in", SignInEndpoint(core)),
    ]


@dataclass(frozen=True, slots=True)
class Page:
    """An ASGI endpoint for one static file."""

    content: bytes
    media_type: str
    headers: Mapping[str, str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        require_method(Request(scope, receive), "GET", "HEAD")
        response = Response(self.content, media_type=self.media_type, headers=self.headers)
        await response(scope, receive, send)


class ReportPageEndpoint:
    """Takes the body of `reportDetail` and answers with the report as HTML."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        caller = await admit(self._core, request, writes=False)
        body = await read_model(self._core, request, caller, ReportDetailRequest)
        page = await run(
            self._core, caller, lambda context: _page_of(context, body), str, writes=False
        )
        policy = FRAMED_POLICY.format(style=style_hash())
        response = Response(
            page, media_type="text/html", headers={"Content-Security-Policy": policy}
        )
        await response(scope, receive, send)


class ReportTableEndpoint:
    """Takes a report and the name of one of its tables, and answers with CSV for a spreadsheet.

    It begins with a byte order mark: without one Excel reads UTF-8 as the system's old code page.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        caller = await admit(self._core, request, writes=False)
        body = await read_model(self._core, request, caller, ReportTableRequest)
        table = await run(
            self._core, caller, lambda context: _table_of(context, body), str, writes=False
        )
        response = Response(table.encode("utf-8-sig"), media_type="text/csv; charset=utf-8")
        await response(scope, receive, send)


SIGN_IN_MAX_BYTES = 1024
"""It holds one code, and comes from anybody."""


class SignInRequest(Exact):
    code: Annotated[str, StringConstraints(max_length=64)]


class SignInEndpoint:
    """Takes the code of a link and answers with the API key, once."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        require_method(request, "POST")
        require_json(request.headers)
        body = parse_body(SignInRequest, await read_body(self._core, request, SIGN_IN_MAX_BYTES))
        key = self._core.sign_in_links.take(body.code)
        if key is None:
            reason = "the link was used already, or is none of this service"
            raise Refusal(HTTPStatus.NOT_FOUND, "link_not_found", reason)
        await JSONResponse({"key": key})(scope, receive, send)


def _page_of(context: RequestContext, body: ReportDetailRequest) -> str:
    """Return the report as a page, with what changed since the one before."""
    payload = _payload_of(read_report(context, body))
    report = context.session.scalars(select(Report).where(Report.id == body.report_id)).one()
    earlier = earlier_than(context, report)
    return report_page(payload, None if earlier is None else compared(earlier, payload))


def _table_of(context: RequestContext, body: ReportTableRequest) -> str:
    payload = _payload_of(read_report(context, ReportDetailRequest(report_id=body.report_id)))
    tables = tables_of(payload)
    if body.table not in tables:
        raise invalid_field("table", f"is none of {', '.join(tables)}")
    return report_csv(payload, body.table)


def _payload_of(report: ReportDetail) -> ReportPayload:
    if report.payload is None:
        raise Refusal(HTTPStatus.NOT_FOUND, "report_empty", "the report has no content")
    return report.payload


def _content(name: str) -> bytes:
    return (files("controlplane.console") / name).read_bytes()


def _media_type(name: str) -> str:
    return MEDIA_TYPES[name.rpartition(".")[2]]
