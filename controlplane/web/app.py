"""The ASGI application: which path leads where."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from http import HTTPStatus

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from controlplane.accounts.oauth.metadata import is_oauth
from controlplane.operation.errors import MEDIA_TYPE, Refusal, problem_body, unavailable
from controlplane.operation.operation import Operation, Procedure
from controlplane.remote_control.registry import HEARTBEAT, ON_COMMANDS
from controlplane.retail.routes import is_retail
from controlplane.web.accounts.joining import joining_routes
from controlplane.web.accounts.own_password import own_password_routes
from controlplane.web.accounts.sign_in import sign_in_routes
from controlplane.web.admission import require_method
from controlplane.web.agent_protocol.endpoint import agent_protocol_routes
from controlplane.web.agent_protocol.refusals import PATH as AGENT_PROTOCOL
from controlplane.web.agent_protocol.refusals import refusal_reply
from controlplane.web.background import background
from controlplane.web.commands import CommandsEndpoint
from controlplane.web.console import console_routes
from controlplane.web.console_api import console_api_routes
from controlplane.web.core import Core
from controlplane.web.heartbeat import HeartbeatEndpoint
from controlplane.web.middleware import CallMiddleware
from controlplane.web.oauth.endpoints import oauth_routes
from controlplane.web.oauth.refusals import oauth_problem
from controlplane.web.openapi.areas import AREAS, OPERATIONS
from controlplane.web.openapi.document import document_bytes
from controlplane.web.pipeline import Endpoint
from controlplane.web.retail.endpoint import retail_routes
from controlplane.web.retail.problems import retail_problem

READY_WITHIN_S = 2


def build_app(core: Core) -> Starlette:
    """Return the application. Its lifespan runs the background tasks and closes ``core``."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        try:
            async with background(core):
                yield
        finally:
            core.close()

    routes = [
        # Looked through in this order: what is called most comes first.
        *(Route(each.path, _endpoint(core, each)) for each in sorted(OPERATIONS, key=_rarity)),
        Route("/openapi.json", DocumentEndpoint()),
        *sign_in_routes(core),
        *joining_routes(core),
        *own_password_routes(core),
        *oauth_routes(core),
        *console_routes(core),
        *console_api_routes(core),
        *retail_routes(core),
        *agent_protocol_routes(core),
        Route("/healthz", _healthz),
        Route("/readyz", ReadyEndpoint(core)),
    ]
    guard = Middleware(
        CallMiddleware,
        clock=core.clock,
        delay_s=core.settings.refusal_delay_s,
        names=_names(routes),
        tell=core.metrics.answered,
        answer=_problem,
    )
    app = Starlette(
        routes=routes,
        middleware=[guard],
        exception_handlers={HTTPException: _refuse},
        lifespan=lifespan,
    )
    # A path is served or it is not: a redirect would go where the caller's Host header says.
    app.router.redirect_slashes = False
    return app


def _names(routes: Iterable[Route]) -> dict[str, str]:
    """Return what metrics and logs call each path."""
    names = {each.path: f"{area.name}.{each.name}" for area in AREAS for each in area.operations}
    names[AGENT_PROTOCOL] = "callMcp"
    for route in routes:
        is_page = route.path == "/" or "." in route.path.rpartition("/")[2]
        plain = "console.page" if is_page else route.path.strip("/.").replace("/", ".")
        names.setdefault(route.path, plain)
    return names


def _endpoint(core: Core, operation: Operation) -> ASGIApp:
    if operation is HEARTBEAT:
        return HeartbeatEndpoint(core)
    if operation is ON_COMMANDS:
        return CommandsEndpoint(core)
    assert isinstance(operation, Procedure), operation.name  # noqa: S101 - a row without an endpoint
    return Endpoint(core, operation)


class DocumentEndpoint:
    """Serves the OpenAPI document, to anybody: it holds nothing but the interface."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        require_method(Request(scope, receive), "GET", "HEAD")
        headers = {"Cache-Control": "public, max-age=300"}
        response = Response(document_bytes(), media_type="application/json", headers=headers)
        await response(scope, receive, send)


def _rarity(operation: Operation) -> bool:
    return operation.path not in {HEARTBEAT.path, ON_COMMANDS.path}


class ReadyEndpoint:
    """Tells whether a call would be served: the database answers, and no end was asked for."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        require_method(Request(scope, receive), "GET", "HEAD")
        if self._core.feeds.is_closed:
            raise unavailable("the service is being stopped")
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                await self._core.read(lambda session: session.execute(text("SELECT 1")))
        except (SQLAlchemyError, TimeoutError) as error:
            raise unavailable("the database does not answer") from error
        await PlainTextResponse("ready\n")(scope, receive, send)


def _problem(refusal: Refusal, path: str, trace_id: str) -> Response:
    """Refuse in the words of the interface that was called."""
    if is_retail(path):
        return retail_problem(refusal, path, trace_id)
    if is_oauth(path):
        return oauth_problem(refusal, path)
    if path == AGENT_PROTOCOL:
        return refusal_reply(refusal)
    body = problem_body(refusal, path=path, trace_id=trace_id)
    return Response(body, refusal.status, refusal.headers, MEDIA_TYPE)


async def _healthz(_request: Request) -> Response:
    return PlainTextResponse("ok\n")


async def _refuse(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - what it is registered for
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        raise Refusal(
            HTTPStatus.METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "the method is not served here",
            headers=dict(error.headers or {}),
        )
    raise Refusal(HTTPStatus(error.status_code), "not_found", "there is nothing at this path")
