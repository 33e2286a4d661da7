"""Tests of the client: how long it waits before it repeats a call, and which calls it repeats."""

import random
from datetime import UTC, datetime
from uuid import UUID

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.wire.operator_operations import CreateRequestRequest, RevokeRequest
from controlplane.client.errors import CommandError
from controlplane.client.operations import PAGE_SIZE, OperationsClient
from controlplane.client.refusals import RefusedError
from controlplane.client.waiting import WAITED_MAX_S, RetryPolicy, seconds_of

DEVICE = UUID("0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10")
EMPTY: dict[str, object] = {"devices": [], "nextCursor": None}


class Service:
    """A service that returns ``answers`` in order, and the last answer for all further calls.

    ``waits`` records how long the client waits, in seconds. ``reported_waits`` records what the
    client passes to ``on_wait``: each wait, and the status of the reply that caused it.
    """

    def __init__(self, *answers: httpx2.Response) -> None:
        self.answers = list(answers)
        self.calls = 0
        self.waits: list[float] = []
        self.reported_waits: list[tuple[float, int]] = []

    def answer(self, _: httpx2.Request) -> httpx2.Response:
        self.calls += 1
        reply = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return httpx2.Response(reply.status_code, headers=reply.headers, content=reply.content)

    def client(self) -> OperationsClient:
        retry_policy = RetryPolicy(
            on_wait=lambda wait_s, status: self.reported_waits.append((wait_s, status)),
            sleep=self.waits.append,
            rng=random.Random(7),
        )
        transport = httpx2.MockTransport(self.answer)
        http = httpx2.Client(transport=transport, base_url="https://ops.example.com/")
        return OperationsClient(http, retry_policy)


def refusal(status: int, retry_after: str | None = None) -> httpx2.Response:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return httpx2.Response(status, headers=headers, json={"code": "rate_limited", "detail": "no"})


def create_request(client: OperationsClient) -> object:
    return client.create_request(CreateRequestRequest(instance_id=DEVICE, kind="network"))


def test_a_read_waits_for_retry_after_and_at_most_a_quarter_longer() -> None:
    service = Service(
        refusal(429, "3"), refusal(503, "5"), httpx2.Response(200, json=EMPTY)
    )  # fmt: skip
    assert service.client().devices() == ([], False)
    assert 3 <= service.waits[0] <= 3 * 1.25
    assert 5 <= service.waits[1] <= 5 * 1.25
    assert [status for _, status in service.reported_waits] == [429, 503]
    assert [wait_s for wait_s, _ in service.reported_waits] == service.waits


@pytest.mark.parametrize(("status", "calls"), [(429, 2), (503, 1), (500, 1), (409, 1)])
def test_the_creation_of_a_request_is_repeated_only_after_429(status: int, calls: int) -> None:
    reply = {
        "version": 1, "requestId": str(DEVICE), "bindingId": str(DEVICE), "kind": "network",
        "expiresAt": "2026-11-20T12:15:00Z", "status": "queued",
    }  # fmt: skip
    service = Service(refusal(status, "1"), httpx2.Response(200, json=reply))
    client = service.client()
    if calls == 1:
        with pytest.raises(RefusedError, match=f"answered {status}"):
            create_request(client)
    else:
        create_request(client)
    assert service.calls == calls


def test_a_revocation_is_repeated_after_503() -> None:
    service = Service(refusal(503), httpx2.Response(200, json={"revoked": True}))
    service.client().revoke(RevokeRequest(instance_id=DEVICE))
    assert service.calls == 2


@pytest.mark.parametrize("retry_after", ["30", None, "1"])
def test_the_total_wait_of_a_call_is_limited(retry_after: str | None) -> None:
    service = Service(refusal(429, retry_after))
    with pytest.raises(CommandError) as error_info:
        service.client().devices()
    assert "after the longest wait" in error_info.value.hint
    assert WAITED_MAX_S * 0.6 < sum(service.waits) <= WAITED_MAX_S
    assert len(service.waits) < 200


def test_a_call_fails_at_once_if_the_requested_wait_is_too_long() -> None:
    service = Service(refusal(429, "3600"))
    with pytest.raises(CommandError):
        service.client().devices()
    assert (service.calls, service.waits) == (1, [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0.0),
        (" 12 ", 12.0),
        ("Fri, 20 Nov 2026 12:00:30 GMT", 30.0),
        ("Fri, 20 Nov 2026 11:00:00 GMT", 0.0),
        ("-3", None),
        ("1.5", None),
        ("٣", None),
        ("soon", None),
        ("Fri, 20 Nov 2026 12:00:30 +99999999999999", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_a_number_or_a_date(text: str | None, expected: float | None) -> None:
    assert seconds_of(text, datetime(2026, 11, 20, 12, tzinfo=UTC)) == expected


@given(st.text(max_size=40))
def test_any_text_of_retry_after_is_read_as_none_or_as_a_wait_that_is_not_negative(
    text: str,
) -> None:
    result = seconds_of(text)
    assert result is None or result >= 0


def test_reads_use_pages_of_200(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client requests the page size in the header Prefer, which a service can ignore
    (RFC 7240).
    """
    from controlplane.client.connection import connect

    request_headers: list[httpx2.Headers] = []

    def handle(_: object, request: httpx2.Request) -> httpx2.Response:
        request_headers.append(request.headers)
        return httpx2.Response(200, json=EMPTY)

    monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", handle)
    with connect("https://ops.example.com", None, {"VENUE_CONTROL_API_KEY": "k"}) as client:
        client.devices()
    assert request_headers[0]["prefer"] == f"maxpagesize={PAGE_SIZE}" == "maxpagesize=200"
