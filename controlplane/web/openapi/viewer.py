"""The page at ``/docs``, which shows the OpenAPI documents with Swagger UI.

All of its files are part of this package (``viewer_files``). Its Content Security Policy permits no
inline script and no other host.
"""

import gzip
from functools import partial
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from controlplane.web.admission import READ, Handler
from controlplane.web.core import Core

PATH: Final = "/docs"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
FILES: Final = {
    PATH: ("index.html", "text/html"),
    f"{PATH}/viewer.css": ("viewer.css", "text/css"),
    f"{PATH}/viewer.js": ("viewer.js", "text/javascript"),
    f"{PATH}/swagger-ui.css": ("swagger-ui.css.gz", "text/css"),
    f"{PATH}/swagger-ui-bundle.js": ("swagger-ui-bundle.js.gz", "text/javascript"),
}
"""The file and the media type of each path."""


def viewer_routes(core: Core) -> list[Route]:
    return [
        Route(path, Handler(core, partial(serve_file, name, media_type), READ))
        for path, (name, media_type) in FILES.items()
    ]


async def serve_file(name: str, media_type: str, _core: Core, request: Request) -> Response:
    """Serve a file. A compressed file is decompressed for clients that do not accept gzip."""
    content, headers = read_file(name), dict(HEADERS)
    if name.endswith(".gz"):
        headers |= {"Cache-Control": "public, max-age=86400", "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
        else:
            content = gzip.decompress(content)
    return Response(content, media_type=media_type, headers=headers)


def read_file(name: str) -> bytes:
    return (files("controlplane.web.openapi") / "viewer_files" / name).read_bytes()
