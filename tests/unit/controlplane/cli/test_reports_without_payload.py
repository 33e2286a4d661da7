"""Tests of the command line with reports that have no payload, for several outcomes."""

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any
from uuid import UUID

import httpx2
import pytest

from agent.wire.codec import validate
from agent.wire.operator_operations import Device
from controlplane.cli.reports import verbs
from controlplane.cli.requests.batch import DeviceRequest, RequestBatch
from controlplane.cli.requests.results import print_results, result_of
from controlplane.client.errors import CommandError
from controlplane.client.operations import OperationsClient
from tests.contract import golden

REPORT = golden.document_of("reportDetail/reply-without-payload")
DEVICE = validate(golden.document_of("listDevices/reply")["devices"][0], Device)


@pytest.fixture
def reply() -> dict[str, Any]:
    return dict(REPORT)


@pytest.fixture
def client(reply: dict[str, Any]) -> Iterator[OperationsClient]:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, content=json.dumps(reply)))
    with httpx2.Client(base_url="http://127.0.0.1:8470/", transport=transport) as http:
        yield OperationsClient(http)


@pytest.mark.parametrize(
    ("changes", "headline", "severity"),
    [
        ({}, "No report: execution-interrupted.", "bad"),
        ({"failureReason": None}, "No report: it failed.", "bad"),
        (
            {"outcome": "completed", "failureReason": None},
            "The report has no content that can be shown.",
            "muted",
        ),
    ],
)
def test_the_headline_of_a_result_names_the_reason(
    client: OperationsClient,
    reply: dict[str, Any],
    changes: dict[str, Any],
    headline: str,
    severity: str,
) -> None:
    reply |= changes
    request = DeviceRequest(DEVICE, status=reply["outcome"], report_ids=[UUID(REPORT["id"])])
    result = result_of(client, request)
    assert (result.headline, result.severity) == (headline, severity)


@pytest.mark.parametrize(
    ("skip", "outcome"),
    [
        (None, "possibly requested"),
        # The service did not answer whether the device has an open request, so nothing was sent.
        (lambda _device: None, "not requested"),
    ],
)
def test_a_request_that_may_have_been_created_is_counted_as_possibly_requested(
    capsys: pytest.CaptureFixture[str], skip: Callable[[Device], None] | None, outcome: str
) -> None:
    def fail(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("no answer")

    with httpx2.Client(
        base_url="http://127.0.0.1:8470/", transport=httpx2.MockTransport(fail)
    ) as http:
        client = OperationsClient(http)
        batch = RequestBatch(client, "network", skip=skip)
        batch.requests = [DeviceRequest(DEVICE, status="completed")]
        batch.create([DEVICE])
        print_results([result_of(client, request) for request in batch.requests])
    assert f"2 devices: 1 completed, 1 {outcome}" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "has no content: its outcome is failed: execution-interrupted"),
        ({"outcome": "completed", "failureReason": None}, "its outcome is completed"),
    ],
)
def test_a_report_without_a_payload_cannot_be_displayed(
    client: OperationsClient,
    reply: dict[str, Any],
    changes: dict[str, Any],
    text: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reply |= changes
    monkeypatch.setattr(verbs, "client_of", lambda _: nullcontext(client))
    options = argparse.Namespace(
        id=REPORT["id"], latest=None, against=None, html=None, csv=None, json=False
    )
    with pytest.raises(CommandError, match=text):
        verbs.show(options)
