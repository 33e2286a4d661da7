"""The web console: its static files, reports as a page or as CSV, and sales as CSV."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from http import HTTPStatus
from importlib.resources import files
from typing import Annotated, Any

from pydantic import StringConstraints
from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent.presentation.page.html import report_page, style_hash
from agent.presentation.report_csv import report_csv, tables_of
from agent.wire.base import Exact, Model
from agent.wire.operator_operations import ReportDetail, ReportDetailRequest
from agent.wire.payloads.by_kind import ReportPayload
from controlplane.analytics.messages import FiguresQuery
from controlplane.analytics.sales_table import sales_table
from controlplane.devices.overview.records import ReportTableRequest
from controlplane.devices.overview.report_changes import compare_reports, previous_report
from controlplane.devices.reading import read_report
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal, invalid_field
from controlplane.storage.tables import Report
from controlplane.web.admission import (
    READ,
    Handler,
    admit,
    read_model,
    read_small,
    require_media_type,
)
from controlplane.web.core import Call, Core
from controlplane.web.pipeline import run_call

MEDIA_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
SCRIPTS_AND_STYLES = sorted(
    path.name
    for path in files("controlplane.console").iterdir()
    if path.name.endswith((".css", ".js"))
)
PAGES = {"/": "index.html"} | {f"/console/{name}": name for name in SCRIPTS_AND_STYLES}
"""The files of the console by path."""
FRAMED_POLICY = "sandbox; default-src 'none'; style-src {style}; frame-ancestors 'none'"


def console_policy() -> str:
    """Return the Content Security Policy of the console.

    The frame that shows a report inherits this policy (HTML, 7.4.3). Therefore the policy also
    permits the style sheet of reports.
    """
    return (
        "default-src 'none'; script-src 'self'; connect-src 'self'; img-src data:; "
        f"style-src 'self' {style_hash()}; frame-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def console_routes(core: Core) -> list[Route]:
    headers = {
        "Content-Security-Policy": console_policy(),
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-cache",
    }
    return [
        *(Route(path, _static(core, name, headers)) for path, name in PAGES.items()),
        Route("/console/report", Handler(core, report_as_page)),
        Route("/console/report-table", Handler(core, report_as_table)),
        Route("/console/sales-table", Handler(core, sales_as_table)),
        Route("/console/sign-in", Handler(core, sign_in)),
    ]


async def serve_file(
    content: bytes, media_type: str, headers: Mapping[str, str], _core: Core, _request: Request
) -> Response:
    """Serve a static file."""
    return Response(content, media_type=media_type, headers=headers)


async def report_as_page(core: Core, request: Request) -> Response:
    """Take the body of `reportDetail` and return the report as HTML."""
    page = await _read(core, request, ReportDetailRequest, _page_of)
    headers = {"Content-Security-Policy": FRAMED_POLICY.format(style=style_hash())}
    return Response(page, media_type="text/html", headers=headers)


async def report_as_table(core: Core, request: Request) -> Response:
    """Take the id of a report and the name of one of its tables. Return the table as CSV.

    The CSV begins with a byte order mark: without one, Excel does not recognize UTF-8.
    """
    table = await _read(core, request, ReportTableRequest, _table_of)
    return Response(table.encode("utf-8-sig"), media_type="text/csv; charset=utf-8")


async def sales_as_table(core: Core, request: Request) -> Response:
    """Take the body of a query for figures. Return the completed sales that it selects, as CSV with
    a byte order mark.
    """
    table = await _read(core, request, FiguresQuery, sales_table)
    return Response(table.encode("utf-8-sig"), media_type="text/csv; charset=utf-8")


async def _read(
    core: Core,
    request: Request,
    model: type[Model],
    work: Callable[[RequestContext, Any], str],
) -> str:
    caller = await admit(core, request, writes=False)
    body = await read_model(core, request, caller, model)
    call = Call(caller, await core.call_state(), work, str, body)
    return await run_call(core, call, writes=False, is_long=True)


SIGN_IN_MAX_BYTES = 1024
"""Maximum size of the body of a sign-in, which contains only a code. The limit is small, because
anyone can send such a body without a credential."""


class SignInRequest(Exact):
    code: Annotated[str, StringConstraints(max_length=64)]


async def sign_in(core: Core, request: Request) -> Response:
    """Return the API key for the code of a sign-in link. Each code can be used once."""
    require_media_type(request.headers)
    body = await read_small(core, request, SignInRequest, SIGN_IN_MAX_BYTES)
    key = core.sign_in_links.take(body.code)
    if key is None:
        reason = "the link is unknown or was already used: request a new one"
        raise Refusal(HTTPStatus.NOT_FOUND, "link_not_found", reason)
    return JSONResponse({"key": key})


def _page_of(context: RequestContext, body: ReportDetailRequest) -> str:
    """Return the report as a page, with the changes since the previous report."""
    payload = _payload_of(read_report(context, body))
    report = context.session.scalars(select(Report).where(Report.id == body.report_id)).one()
    earlier = previous_report(context, report)
    return report_page(payload, None if earlier is None else compare_reports(earlier, payload))


def _table_of(context: RequestContext, body: ReportTableRequest) -> str:
    payload = _payload_of(read_report(context, ReportDetailRequest(report_id=body.report_id)))
    tables = tables_of(payload)
    if body.table not in tables:
        raise invalid_field("table", f"must be one of {', '.join(tables)}")
    return report_csv(payload, body.table)


def _payload_of(report: ReportDetail) -> ReportPayload:
    if report.payload is None:
        raise Refusal(HTTPStatus.NOT_FOUND, "report_empty", "the report has no content")
    return report.payload


def _static(core: Core, name: str, headers: Mapping[str, str]) -> Handler:
    media_type = MEDIA_TYPES[name.rpartition(".")[2]]
    return Handler(core, partial(serve_file, _content(name), media_type, headers), READ)


@cache
def _content(name: str) -> bytes:
    return (files("controlplane.console") / name).read_bytes()
