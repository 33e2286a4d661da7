"""Runs the server and the router of the service, with a constant reply to one path.

Usage: python -m tests.bench.calls.bare FILE METHOD PATH
FILE contains the body of the reply. The program prints the address of the server.
"""

import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from controlplane.server import bind
from controlplane.settings import Settings
from controlplane.web.protocol import bounded_protocol


def main(file: str, method: str, path: str) -> None:
    content = Path(file).read_bytes()

    async def answer(request: Request) -> Response:
        await request.body()
        return Response(content, media_type="application/json")

    listener = bind("127.0.0.1", 0)
    listener.listen(1024)
    sys.stdout.write(f"listening on http://127.0.0.1:{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(
        Starlette(routes=[Route(path, answer, methods=[method])]),
        http=bounded_protocol(Settings()),
        log_config=None,
        access_log=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])
