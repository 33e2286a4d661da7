"""Tests of the schemas of support in `tests/fakes/support/schema.py`.

The schemas refuse bodies and replies that the contract does not define.
"""

import copy
from typing import Any

import httpx2
import pytest

from controlplane.operation.bodies import parse_body
from controlplane.operation.errors import Refusal
from controlplane.support.messages import ConfirmRequest, TokenRequest
from tests.contract.openapi.conformance import document
from tests.fakes.support import schema
from tests.unit.controlplane.support.support_client import UNKNOWN_TOKEN

WAITING: dict[str, Any] = {
    "id": "0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10",
    "channel": "telegram @venue",
    "requestedBy": "Ada",
    "requestedAt": "2026-11-20T12:00:00Z",
    "expiresAt": "2026-11-21T12:00:00Z",
    "state": "waiting",
    "organizationId": None,
    "confirmedAt": None,
    "confirmedById": None,
    "disconnectedAt": None,
}
CONFIRMED = WAITING | {
    "state": "confirmed",
    "organizationId": "org-0001",
    "confirmedAt": "2026-11-20T12:00:00Z",
    "confirmedById": "0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a11",
}
ENDED = CONFIRMED | {"state": "disconnected", "disconnectedAt": "2026-11-20T12:00:00Z"}
DECLINED = WAITING | {"state": "disconnected", "disconnectedAt": "2026-11-20T12:00:00Z"}


def reply(name: str, body: Any, status: int = 200, method: str = "POST") -> httpx2.Response:
    request = httpx2.Request(method, f"http://service{schema.PREFIX}{name}")
    return httpx2.Response(status, json=body, request=request)


@pytest.mark.parametrize("link", [WAITING, CONFIRMED, ENDED, DECLINED])
def test_valid_replies_fit_the_schema(link: dict[str, Any]) -> None:
    schema.require_fitting(reply("confirm", link))
    schema.require_fitting(reply("inspect", link | {"organizations": []}))


@pytest.mark.parametrize(
    "invalid_reply",
    [
        reply("confirm", WAITING | {"state": "confirmed"}),
        reply("confirm", WAITING | {"organizationId": "org-0001"}),
        reply("confirm", WAITING | {"more": 1}),
        reply("confirm", CONFIRMED | {"confirmedAt": None}),
        reply("confirm", CONFIRMED | {"confirmedAt": "2026-11-20T12:00:00+00:00"}),
        reply("confirm", CONFIRMED | {"state": "expired"}),
        reply("confirm", ENDED | {"disconnectedAt": None}),
        reply("confirm", WAITING | {"organizations": []}),
        reply("confirm", WAITING, 201),
        reply("confirm", WAITING, method="GET"),
        reply("confirm", {"code": "token_used"}, 404),
        reply("inspect", WAITING),
        reply("contact", {"channels": []}),
        reply("contact", {"channels": [], "links": [WAITING]}),
        reply("contact", {"channels": [{"kind": "phone", "address": "1"}], "links": []}),
    ],
)
def test_replies_that_violate_the_schema_do_not_fit(invalid_reply: httpx2.Response) -> None:
    with pytest.raises(schema.NotFittingError):
        schema.require_fitting(invalid_reply)


@pytest.mark.parametrize(
    ("name", "body", "fits"),
    [
        ("inspect", {"token": UNKNOWN_TOKEN}, True),
        ("inspect", {"token": "-_" * 21 + "Z"}, True),
        ("inspect", {"token": UNKNOWN_TOKEN, "organizationId": "org-1"}, False),
        ("inspect", {"token": UNKNOWN_TOKEN + "A"}, False),
        ("inspect", {"token": UNKNOWN_TOKEN + "\n"}, False),
        ("inspect", {"token": "+" * 43}, False),
        ("inspect", {"token": None}, False),
        ("inspect", {}, False),
        ("disconnect", {"token": UNKNOWN_TOKEN}, True),
        ("disconnect", {"token": UNKNOWN_TOKEN, "more": 1}, False),
        ("confirm", {"token": UNKNOWN_TOKEN, "organizationId": "o"}, True),
        ("confirm", {"token": UNKNOWN_TOKEN, "organizationId": ""}, False),
        ("confirm", {"token": UNKNOWN_TOKEN}, False),
    ],
)
def test_schema_and_service_accept_the_same_bodies(name: str, body: Any, fits: bool) -> None:
    assert (not list(schema.mistakes(name, body, is_request=True))) is fits
    model: type[Any] = ConfirmRequest if name == "confirm" else TokenRequest
    try:
        parse_body(model, httpx2.Request("POST", "http://service", json=body).content)
    except Refusal:
        assert not fits
    else:
        assert fits


def test_the_openapi_document_has_the_pattern_of_a_token() -> None:
    schemas = copy.deepcopy(document()["components"]["schemas"])
    for name in ("TokenRequest", "ConfirmRequest"):
        token = schemas[name]["properties"]["token"]
        assert token == {"pattern": "^[A-Za-z0-9_-]{43}$", "type": "string"}
