"""The interfaces that have an OpenAPI document: the facade and the retail API.

`AREAS` has the areas of the facade. The service serves and documents each of them.
"""

import json
from functools import cache
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from agent import __version__
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import NetworkPayload
from controlplane.analytics.registry import ANALYTICS, REPORTS
from controlplane.operation.operation import Area, Operation
from controlplane.remote_control.registry import REMOTE_CONTROL
from controlplane.retail.catalog import DUPLICATE_EXTERNAL_ID
from controlplane.retail.registry import RETAIL
from controlplane.retail.routes import TOKENS
from controlplane.retail.texts import FREE_VALUE, FREE_VALUE_SCHEMA
from controlplane.support.operations import SUPPORT
from controlplane.web.accounts.cookies import NAME, SECURE_PREFIX
from controlplane.web.core import Core
from controlplane.web.openapi.document import Interface, Json, document
from controlplane.web.problems import RETAIL_EMPTY, retail_code

AREAS: Final[tuple[Area, ...]] = (REMOTE_CONTROL, SUPPORT, ANALYTICS, REPORTS)
OPERATIONS: Final[tuple[Operation, ...]] = tuple(
    operation for area in AREAS for operation in area.operations
)


def _session_cookie(name: str, transport: str) -> Json:
    return {
        "type": "apiKey",
        "in": "cookie",
        "name": name,
        "description": f"The session of a signed-in user, {transport}. A call that changes anything"
        " needs an `Origin` header that names this service.",
    }


FACADE: Final = Interface(
    title="Venue control",
    version="v1",
    description=f"""\
The reference service of the venue agent, {__version__}.

Every operation is a `POST` with a JSON object; `support.contact` has no body. An operation answers
200 with JSON, or refuses with a problem (RFC 9457) that has a `code`. Lengths of strings are
counted in UTF-16 code units, as in JavaScript: a character outside the Basic Multilingual Plane
counts as two.
Unknown keys are refused. Optional keys are left out, never null. An object must not contain a key
twice.
""",
    areas=AREAS,
    security={
        "apiKey": {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key. Every key can read. Some operations need a key with a write"
            " grant. A key has access to its organization and locations only.",
        },
        "sessionCookie": _session_cookie(NAME, "in plain HTTP"),
        "secureSessionCookie": _session_cookie(SECURE_PREFIX + NAME, "over TLS"),
    },
    models=(NetworkPayload, ApplicationPayload),
)
RETAIL_API: Final = Interface(
    title="Venue control: retail API",
    version="1.0",
    description=f"""\
The retail API of the reference service of the venue agent, {__version__}.

An API key is exchanged for an access token, which is bound to a company and to the grants of the
key. Read operations are `GET`; unknown query parameters are refused. Refusals are problems
(RFC 9457), except for 401, 403 and 404, which have no body. Lengths of strings are counted in
characters.

Money is in AED, the only currency of this API. Sales in other currencies are not listed, and prices
in other currencies are left out. To compare totals, use the figures of the facade: they contain
every currency separately, with its number of sales.
""",
    areas=(RETAIL,),
    security={
        "accessToken": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": f"An access token from `POST {TOKENS}`.",
        }
    },
    components={FREE_VALUE: FREE_VALUE_SCHEMA},
    descriptions={
        401: "The access token, API key or refresh token is missing or invalid. No body.",
        403: "The API key lacks the required permission in this company. No body.",
        404: "The object does not exist, or belongs to another company. No body.",
        503: "The service cannot answer now.",
    },
    statuses_without_body=RETAIL_EMPTY,
    code_of=retail_code,
    reasons={"existing_entity_conflict": DUPLICATE_EXTERNAL_ID},
)


async def serve_document(interface: Interface, _core: Core, _request: Request) -> Response:
    """Serve a document. It requires no credential, because it describes only the interface."""
    headers = {"Cache-Control": "public, max-age=300"}
    content = document_bytes(interface)
    return Response(content, media_type="application/json", headers=headers)


@cache
def document_bytes(interface: Interface = FACADE) -> bytes:
    """Return the document of an interface as JSON."""
    return json.dumps(document(interface), ensure_ascii=False, separators=(",", ":")).encode()
