"""Runs the web framework without the service: it answers each heartbeat with the same constant.

With ``httptools`` it has the HTTP parser and the event loop of the service. The service does more
work for a heartbeat, so it cannot answer more heartbeats per second than this program.

Usage: python -m tests.bench.fleet.bare h11|httptools  (prints the address of the server)
"""

import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.wire import routes
from controlplane.server import bind

REPLY = b'{"lastSeenAt":"2026-11-20T12:00:00.000000Z"}'


async def answer(request: Request) -> Response:
    await request.body()
    return Response(REPLY, media_type="application/json")


def main() -> None:
    is_fast = sys.argv[1] == "httptools"
    listener = bind("127.0.0.1", 0)
    listener.listen(1024)
    sys.stdout.write(f"listening on http://127.0.0.1:{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    app = Starlette(routes=[Route(routes.HEARTBEAT, answer, methods=["POST"])])
    config = uvicorn.Config(
        app,
        http="httptools" if is_fast else "h11",
        loop="uvloop" if is_fast else "asyncio",
        log_config=None,
        access_log=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
