"""Tests of the typed client of the retail API: tokens, pages, and errors of a service."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

import httpx2
import pytest

from agent.wire.codec import to_plain
from controlplane.client import refusals
from controlplane.client.retail import RENEWED_BEFORE_S, RetailClient
from controlplane.client.waiting import WAITED_MAX_S, RetryPolicy
from controlplane.retail import routes
from controlplane.retail.models import Code, GivenGood, GivenVariation, GivenVat, Money

EMPTY = {"cursor": None, "items": []}
ID = UUID(int=1)
GOOD = GivenGood(
    name="Tea", uom_id=ID, vat=GivenVat(fee_item_id=ID), variations=(GivenVariation(),)
)


@dataclass
class Service:
    """A service that returns the replies that are queued for a path.

    If no reply is queued, it returns new tokens or an empty page.
    """

    queued: dict[str, list[httpx2.Response | Exception]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    tokens: int = 0
    waits: list[float] = field(default_factory=list)
    now_s: float = 0

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path
        self.requests.append(f"{path} {request.headers.get('authorization', '')}".strip())
        if self.queued.get(path):
            answer = self.queued[path].pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        if path in {routes.TOKENS, routes.REFRESH}:
            self.tokens += 1
            return httpx2.Response(
                200,
                json={
                    "access_token": f"access-{self.tokens}",
                    "expires_in": 3600,
                    "refresh_token": f"refresh-{self.tokens}",
                    "token_type": "Bearer",
                },
            )
        return httpx2.Response(200, json=EMPTY)

    def calls(self, path: str) -> int:
        return sum(request.split()[0] == path for request in self.requests)


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def client(service: Service) -> Iterator[RetailClient]:
    with RetailClient(
        "http://127.0.0.1:8470/api/v1/",
        "venue_test_key",
        retry_policy=RetryPolicy(sleep=service.waits.append),
        monotonic=lambda: service.now_s,
        transport=httpx2.MockTransport(service),
    ) as client:
        yield client


def refusal(status: int, **headers: str) -> httpx2.Response:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, headers=fields, content=b"")


def test_a_token_is_used_until_shortly_before_it_expires(
    client: RetailClient, service: Service
) -> None:
    list(client.goods())
    service.now_s = 3600 - RENEWED_BEFORE_S - 1
    list(client.goods())
    assert (service.calls(routes.TOKENS), service.calls(routes.REFRESH)) == (1, 0)
    service.now_s += 1
    list(client.goods())
    assert (service.calls(routes.TOKENS), service.calls(routes.REFRESH)) == (1, 1)
    assert service.requests[-1].endswith("Bearer access-2")


def test_a_refused_token_is_renewed_once(client: RetailClient, service: Service) -> None:
    service.queued[routes.GOODS] = [refusal(401)]
    assert list(client.goods()) == []
    assert service.requests[-1].endswith("Bearer access-2")
    service.queued[routes.GOODS] = [refusal(401), refusal(401)]
    with pytest.raises(refusals.UnauthenticatedError):
        list(client.goods())


def test_a_refused_refresh_falls_back_to_the_api_key(
    client: RetailClient, service: Service
) -> None:
    list(client.goods())
    service.now_s = 3600
    service.queued[routes.REFRESH] = [refusal(401)]
    list(client.goods())
    assert service.calls(routes.TOKENS) == 2
    service.now_s = 7200
    service.queued[routes.REFRESH] = [httpx2.ReadTimeout("late")]
    list(client.goods())
    # The service might have accepted the refresh token, so the client does not send it again.
    assert (service.calls(routes.REFRESH), service.calls(routes.TOKENS)) == (2, 3)


def test_a_read_waits_at_least_as_long_as_the_header_retry_after_specifies(
    client: RetailClient, service: Service
) -> None:
    service.queued[routes.GOODS] = [refusal(429, retry_after="7"), refusal(503), refusal(503)]
    assert list(client.goods()) == []
    first, second, third = service.waits
    assert 7 <= first <= 8.75
    assert 0.5 <= second <= 1
    assert 1 <= third <= 2


def test_a_retry_after_beyond_the_limit_raises_an_error(
    client: RetailClient, service: Service
) -> None:
    service.queued[routes.GOODS] = [refusal(429, retry_after=str(int(WAITED_MAX_S) + 1))]
    with pytest.raises(refusals.RateLimitedError):
        list(client.goods())
    assert service.waits == []


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, refusals.InvalidError),
        (401, refusals.UnauthenticatedError),
        (403, refusals.ForbiddenError),
        (404, refusals.NotFoundError),
        (409, refusals.ConflictError),
        (415, refusals.InvalidError),
        (429, refusals.RateLimitedError),
        (500, refusals.FailedError),
        (503, refusals.FailedError),
    ],
)
def test_the_creation_of_a_good_is_repeated_only_after_401(
    client: RetailClient, service: Service, status: int, kind: type[Exception]
) -> None:
    service.queued[routes.GOODS] = [refusal(status)] * 2
    if status == 429:  # the client does not wait 1000 s
        service.queued[routes.GOODS] = [refusal(429, retry_after="1000")]
    with pytest.raises(kind):
        client.create_good(GOOD)
    # A reply 401 means that no good was created, so the client repeats the call with a new token.
    assert service.calls(routes.GOODS) == (2 if status == 401 else 1)
    assert service.waits == []


def test_fields_without_a_value_are_left_out_except_the_category() -> None:
    fields = to_plain(GOOD)
    assert fields["variations"] == [{"status": "active", "codes": []}]
    assert set(fields) == {"name", "category_id", "uom_id", "vat", "variations"}


def test_a_creation_whose_reply_is_lost_is_not_repeated(
    client: RetailClient, service: Service
) -> None:
    service.queued[routes.GOODS] = [httpx2.ReadTimeout("late")]
    with pytest.raises(refusals.UnreachableError):
        client.create_good(GOOD)
    assert service.calls(routes.GOODS) == 1


def test_an_error_contains_the_problem_details(client: RetailClient, service: Service) -> None:
    problem = {
        "title": "Bad Request",
        "code": "validation_error",
        "detail": "it does not fit",
        "trace_id": "abc",
        "errors": {"variations[1].name": ["is required"]},
    }
    service.queued[routes.GOODS] = [httpx2.Response(400, content=json.dumps(problem))]
    with pytest.raises(refusals.InvalidError) as error_info:
        client.create_good(GOOD)
    assert str(error_info.value) == (
        "the service answered 400 validation_error: it does not fit; "
        "variations[1].name: is required"
    )
    assert (error_info.value.code, error_info.value.trace_id) == ("validation_error", "abc")
    assert error_info.value.errors == {"variations[1].name": ("is required",)}


def test_all_pages_of_a_list_are_read(client: RetailClient, service: Service) -> None:
    employee = {"id": "emp-1", "name": "Ana"}
    service.queued[routes.EMPLOYEES] = [
        httpx2.Response(200, json={"cursor": "next", "items": [employee]}),
        httpx2.Response(200, json={"cursor": None, "items": [employee, employee]}),
    ]
    assert len(list(client.employees())) == 3


def test_a_reply_that_does_not_fit_the_contract_raises_an_error(
    client: RetailClient, service: Service
) -> None:
    service.queued[routes.SALES] = [httpx2.Response(200, json={"items": 7})]
    with pytest.raises(refusals.UnexpectedReplyError, match="does not fit"):
        list(client.sales())


def test_unknown_fields_of_a_newer_service_are_ignored(
    service: Service, client: RetailClient
) -> None:
    new = {"new_field": 1}
    vat = {"fee_item_id": str(ID), "fee_item_name": "VAT", **new}
    variation = {
        "id": str(ID), "name": None, "status": "active",
        "default_price": {"value": 500, "currency_code": "AED", **new},
        "codes": [{"type": "sku", "value": "tea-1", **new}], **new,
    }  # fmt: skip
    uom = {"id": str(ID), "name": "piece", "symbol": "pc", "exponent": 0, **new}
    good = {
        "id": str(ID), "name": "Tea", "status": "active", "uom": uom, "vat": vat,
        "variations": [variation], **new,
    }  # fmt: skip
    service.queued[routes.GOODS] = [httpx2.Response(200, json=EMPTY | new | {"items": [good]})]
    ((variation_read,),) = (each.variations for each in client.goods())
    assert variation_read.default_price == Money(value=500, currency_code="AED")
    assert variation_read.codes == (Code(type="sku", value="tea-1"),)
