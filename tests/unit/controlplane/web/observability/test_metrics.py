"""Tests of `/metrics`: its content and its listener. Untrusted input adds no metrics."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx2
import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy.exc import OperationalError

from agent.wire import routes
from agent.wire.codec import encode
from controlplane.operation.errors import unavailable
from controlplane.web.app import build_app
from controlplane.web.core import Core
from controlplane.web.observability.listener import COUNTS_CACHED_S, with_metrics
from tests.fixtures.payloads import small_venue
from tests.paths import ROOT
from tests.unit.controlplane.running_service import RunningService

PORT = 9470
REPORT = json.loads(encode(small_venue()))
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]
"""The values of metrics. A key is the name of a metric and its labels."""


@asynccontextmanager
async def metrics_client(core: Core) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client of the listener for metrics."""
    app = with_metrics(build_app(core), core, PORT)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{PORT}") as http:
        yield http


async def read_samples(core: Core) -> Samples:
    async with metrics_client(core) as http:
        return parse_samples((await http.get("/metrics")).text)


def parse_samples(text: str) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(metric_values: Samples, name: str, **labels: str) -> float:
    return metric_values["venue_control_" + name, tuple(sorted(labels.items()))]


async def test_operations_of_the_service_are_counted(service: RunningService) -> None:
    device = await service.device().enrolled()
    request_id = await device.create_request("network")
    assert len(await device.commands()) == 1
    assert (await device.heartbeat()).status_code == 200
    assert (await device.submit(requestId=request_id)).status_code == 200
    report = {"reportId": "0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10"}
    for _ in range(2):
        assert (await device.submit(REPORT, **report)).status_code == 200
    result = await read_samples(service.core)
    heartbeat = {"operation": "remoteControl.heartbeat"}
    assert value(result, "requests_total", status="2xx", **heartbeat) == 1
    assert value(result, "request_duration_seconds_count", **heartbeat) == 1
    assert value(result, "request_duration_seconds_bucket", le="+Inf", **heartbeat) == 1
    assert value(result, "commands_told_total", kind="network", way="reply") == 1
    assert value(result, "commands_told_total", kind="network", way="stream") == 0
    assert value(result, "reports_received_total", kind="network", outcome="failed") == 1
    # A repeated report does not count again.
    assert value(result, "reports_received_total", kind="network", outcome="completed") == 1
    assert value(result, "database_transaction_seconds_count", kind="write") >= 6
    assert value(result, "database_wait_seconds_count", kind="write") >= 6
    assert value(result, "devices", state="online") == 1
    assert value(result, "database_up") == 1
    assert value(result, "tracker_queue") == 0
    assert ("process_resident_memory_bytes", ()) in result


async def test_refusals_are_counted_by_code(service: RunningService) -> None:
    await service.post(routes.CURRENT, api_key="none")
    await service.post(routes.REPORT_DETAIL, b"{}")
    metrics = await read_samples(service.core)
    assert value(metrics, "refusals_total", code="unauthenticated") == 1
    assert value(metrics, "refusals_total", code="validation_error") == 1
    assert value(metrics, "requests_total", operation="remoteControl.current", status="4xx") == 1


async def test_unknown_paths_and_methods_share_one_series(service: RunningService) -> None:
    for number in range(50):
        await service.http.request(f"M{number}", f"/{number}/metrics")
    metric_values = await read_samples(service.core)
    assert value(metric_values, "requests_total", operation="other", status="4xx") == 50
    operations = {dict(labels).get("operation") for _, labels in metric_values}
    assert operations == {None, "other"}


async def test_labels_contain_no_ids_of_customers(service: RunningService) -> None:
    device = await service.device().enrolled()
    await device.create_request()
    async with metrics_client(service.core) as http:
        text = (await http.get("/metrics")).text
    for secret in (
        device.instance_id,
        device.binding_id,
        device.location_id,
        service.write_key,
        str(service.caller(service.write_key).key_id),
        service.caller(service.write_key).organization_id,
    ):
        assert secret not in text


async def test_open_streams_are_counted_while_they_are_open(service: RunningService) -> None:
    device = await service.device().enrolled()
    await device.create_request()
    metrics = service.core.metrics
    with metrics.stream("commands"), metrics.stream("commands"), metrics.stream("console"):
        metric_values = await read_samples(service.core)
        assert value(metric_values, "streams_open", kind="commands") == 2
        assert value(metric_values, "streams_open", kind="console") == 1
    assert value(await read_samples(service.core), "streams_open", kind="commands") == 0


async def test_open_streams_do_not_count_as_slow_calls(service: RunningService) -> None:
    device = await service.device().enrolled()
    await device.create_request()
    headers = {
        "authorization": f"Bearer {service.write_key}",
        "accept": "text/event-stream",
    }
    stream = asyncio.create_task(service.http.post(routes.ON_COMMANDS, json={}, headers=headers))
    labels = {"kind": "network", "way": "stream"}
    async with asyncio.timeout(10):
        while value(await read_samples(service.core), "commands_told_total", **labels) == 0:
            assert not stream.done()
    assert value(await read_samples(service.core), "streams_open", kind="commands") == 1
    service.core.close_feeds()
    assert (await stream).status_code == 200
    metric_values = await read_samples(service.core)
    assert value(metric_values, "streams_open", kind="commands") == 0
    operation = {"operation": "remoteControl.onCommands"}
    assert value(metric_values, "requests_total", status="2xx", **operation) == 1
    assert value(metric_values, "request_duration_seconds_count", **operation) == 0


@pytest.mark.parametrize(
    ("accept", "media_type", "parse"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8", text_string_to_metric_families),
        (
            "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            parse_openmetrics,
        ),
    ],
)
async def test_metrics_are_served_as_text_and_openmetrics(
    service: RunningService, accept: str, media_type: str, parse: Callable[..., object]
) -> None:
    await service.device().enrolled()
    async with metrics_client(service.core) as http:
        response = await http.get("/metrics", headers={"accept": accept})
    assert response.headers["content-type"].startswith(media_type)
    families = {family.name: family for family in parse(response.text)}  # type: ignore[attr-defined]
    assert {"venue_control_devices", "venue_control_request_duration_seconds"} <= set(families)
    assert all(family.documentation for family in families.values())
    assert not [name for name in families if name.endswith("_created")]


async def test_only_the_listener_for_metrics_serves_metrics(service: RunningService) -> None:
    assert (await service.http.get("/metrics")).status_code == 404
    async with metrics_client(service.core) as http:
        for path in ("/", "/healthz", "/openapi.json", routes.CURRENT):
            assert (await http.get(path)).status_code == 404
        assert (await http.post("/metrics")).status_code == 405


@pytest.mark.parametrize("error", [OperationalError("", {}, Exception()), unavailable("busy")])
async def test_a_failed_database_hides_device_metrics_but_not_call_metrics(
    service: RunningService, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def fail(_work: object) -> None:
        raise error

    await service.device().enrolled()
    monkeypatch.setattr(service.core, "read", fail)
    metric_values = await read_samples(service.core)
    assert value(metric_values, "database_up") == 0
    assert (
        value(metric_values, "requests_total", operation="remoteControl.enroll", status="2xx") == 1
    )
    assert "venue_control_devices" not in {name for name, _ in metric_values}


async def test_device_metrics_are_cached(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [1000.0]
    monkeypatch.setattr("controlplane.web.observability.listener.time.monotonic", lambda: now_s[0])
    async with metrics_client(service.core) as http:

        async def online_devices() -> float:
            return value(
                parse_samples((await http.get("/metrics")).text), "devices", state="online"
            )

        assert await online_devices() == 0
        await service.device().enrolled()
        assert await online_devices() == 0
        now_s[0] += COUNTS_CACHED_S
        assert await online_devices() == 1


async def test_the_documentation_lists_every_metric(service: RunningService) -> None:
    document = (ROOT / "docs/metrics.md").read_text()
    async with metrics_client(service.core) as http:
        text = (await http.get("/metrics")).text
    exposed = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in text_string_to_metric_families(text)
        if family.name.startswith("venue_control")
    }
    documented = set(re.findall(r"^\| `(venue_control_[a-z_]+)`", document, re.MULTILINE))
    assert documented == exposed
    mentioned = {
        name.removesuffix("_bucket") for name in re.findall(r"venue_control_[a-z_]+", document)
    }
    assert mentioned <= exposed
