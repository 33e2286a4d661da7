"""The ASGI application: the endpoint of each path."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from controlplane.accounts.oauth.metadata import RESOURCE_PATH
from controlplane.operation.errors import Refusal, unavailable
from controlplane.operation.operation import Operation, Procedure
from controlplane.remote_control.registry import HEARTBEAT, ON_COMMANDS
from controlplane.retail.routes import SALES
from controlplane.web.accounts.code_form import code_routes
from controlplane.web.accounts.forms import form_routes
from controlplane.web.accounts.joining import joining_routes
from controlplane.web.accounts.oidc.endpoints import oidc_routes
from controlplane.web.accounts.sign_in import SIGN_IN, sign_in_routes
from controlplane.web.admission import READ, Handler
from controlplane.web.agent_protocol.endpoint import agent_protocol_routes
from controlplane.web.background import background
from controlplane.web.commands import CommandsEndpoint
from controlplane.web.console import console_routes
from controlplane.web.console_api import console_api_routes
from controlplane.web.core import Core
from controlplane.web.heartbeat import HeartbeatEndpoint
from controlplane.web.middleware import CallMiddleware
from controlplane.web.oauth.endpoints import oauth_routes
from controlplane.web.openapi.interfaces import AREAS, FACADE, OPERATIONS, serve_document
from controlplane.web.openapi.viewer import viewer_routes
from controlplane.web.pipeline import Endpoint
from controlplane.web.retail import retail_routes

READY_WITHIN_S = 2
FREQUENT_PATHS = {HEARTBEAT.path, ON_COMMANDS.path, RESOURCE_PATH, SALES, SIGN_IN}
"""The paths of frequent calls. They are compared first. Sign-in is included: it needs no
credential, so anyone can send a flood of attempts, and refusing each attempt must cost little.
"""


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
        *(Route(operation.path, _endpoint(core, operation)) for operation in OPERATIONS),
        Route("/openapi.json", Handler(core, partial(serve_document, FACADE), READ)),
        *viewer_routes(core),
        *sign_in_routes(core),
        *form_routes(core),
        *code_routes(core),
        *oidc_routes(core),
        *joining_routes(core),
        *oauth_routes(core),
        *console_routes(core),
        *console_api_routes(core),
        *retail_routes(core),
        *agent_protocol_routes(core),
        Route("/healthz", Handler(core, _healthz, READ)),
        Route("/readyz", Handler(core, _readyz, READ)),
    ]
    # Paths are compared in this order, so the most frequent calls come first.
    routes.sort(key=lambda route: route.path not in FREQUENT_PATHS)
    middleware = Middleware(
        CallMiddleware,
        clock=core.clock,
        delay_s=core.settings.refusal_delay_s,
        names=_operation_names(routes),
        count=core.metrics.count_call,
    )
    app = Starlette(
        routes=routes,
        middleware=[middleware],
        exception_handlers={HTTPStatus.NOT_FOUND: _refuse_path},
        lifespan=lifespan,
    )
    # Redirects are off: their Location header would contain the Host header of the caller.
    app.router.redirect_slashes = False
    return app


def _operation_names(routes: Iterable[Route]) -> dict[str, str]:
    """Return, for each path, the name of its operation in metrics and logs."""
    names = {
        operation.path: f"{area.name}.{operation.name}"
        for area in AREAS
        for operation in area.operations
    }
    names[RESOURCE_PATH] = "callMcp"
    for route in routes:
        is_page = route.path == "/" or "." in route.path.rpartition("/")[2]
        default_name = "console.page" if is_page else route.path.strip("/.").replace("/", ".")
        names.setdefault(route.path, default_name)
    return names


def _endpoint(core: Core, operation: Operation) -> ASGIApp:
    if operation is HEARTBEAT:
        return HeartbeatEndpoint(core)
    if operation is ON_COMMANDS:
        return CommandsEndpoint(core)
    assert isinstance(operation, Procedure), operation.name  # noqa: S101 - all others are procedures
    return Endpoint(core, operation)


async def _readyz(core: Core, _request: Request) -> Response:
    """Reply with 200 if the service is not stopping and the database answers, otherwise 503."""
    if core.feeds.is_closed:
        raise unavailable("the service is being stopped")
    try:
        async with asyncio.timeout(READY_WITHIN_S):
            await core.read(lambda session: session.execute(text("SELECT 1")))
    except (SQLAlchemyError, TimeoutError) as error:
        raise unavailable("the database does not answer") from error
    return PlainTextResponse("ready\n")


async def _healthz(_core: Core, _request: Request) -> Response:
    return PlainTextResponse("ok\n")


async def _refuse_path(_request: Request, _error: Exception) -> Response:
    raise Refusal(HTTPStatus.NOT_FOUND, "not_found", "there is nothing at this path")
