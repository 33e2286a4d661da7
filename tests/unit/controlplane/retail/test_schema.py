"""Tests of the schemas of the retail API in `tests/fakes/schemas`.

The schemas refuse replies that the contract does not define.
"""

import json
from typing import Any

import httpx2
import pytest

from tests.fakes.schemas.retail import NotFittingError, require_fitting

UOM = {"id": "0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10", "name": "Piece", "symbol": "pc", "exponent": 0}
PROBLEM = {"title": "Bad", "type": "urn:x", "instance": "/", "trace_id": "t", "status": 400}


def reply(path: str, status: int, body: Any, kind: str = "application/json") -> httpx2.Response:
    content = b"" if body is None else json.dumps(body).encode()
    request = httpx2.Request("GET", f"http://service/api/v1{path}")
    return httpx2.Response(status, content=content, headers={"content-type": kind}, request=request)


def problem(status: int, **changes: Any) -> httpx2.Response:
    body = PROBLEM | {"status": status} | changes
    return reply("/uoms", status, body, "application/problem+json")


def test_valid_replies_fit_the_schema() -> None:
    require_fitting(reply("/uoms", 200, {"items": [UOM], "cursor": None}))
    require_fitting(reply("/uoms", 401, None))
    require_fitting(problem(400, code="validation_error", errors={"name": ["is required"]}))
    require_fitting(problem(503))


@pytest.mark.parametrize(
    "invalid_reply",
    [
        reply("/uoms", 200, {"items": [UOM | {"exponent": 4}]}),
        reply("/uoms", 200, {"items": [UOM | {"colour": 1}]}),
        reply("/uoms", 200, {"items": [{**UOM, "id": "7"}]}),
        reply("/uoms", 200, {"items": [UOM] * 21}),
        reply("/uoms", 200, {"items": [UOM]}, "text/plain"),
        reply("/uoms", 201, {"items": [UOM]}),
        reply("/sales", 200, {"items": []}),
        reply("/nothing", 200, {}),
        reply("/uoms", 404, {"title": "no"}),
        problem(400, code="unknown"),
        problem(400, code="validation_error"),
        problem(400, code="invalid_request", errors={"a": ["b"]}),
        problem(409, code="existing_entity_conflict"),
        problem(503, code="unavailable"),
        reply("/uoms", 400, PROBLEM | {"code": "invalid_request"}),
    ],
)
def test_replies_that_violate_the_schema_do_not_fit(invalid_reply: httpx2.Response) -> None:
    with pytest.raises(NotFittingError):
        require_fitting(invalid_reply)
